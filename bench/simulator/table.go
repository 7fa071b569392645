package simulator

import (
	"context"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// sharedTable is the table of the nodes as one life sees it. A call that was given up may be
// carried out later.
type sharedTable struct {
	*memory.Members
	l *life
}

// call makes a call of a life that is not dead when it is carried out.
func (t *sharedTable) call(ctx context.Context, do func() error) error {
	n := t.l.node
	answer := make(chan error, 1)
	n.gate(t.l)
	n.sent.Go(func() {
		answer <- t.l.cross(context.WithoutCancel(ctx), func() error {
			n.writing.Lock()
			defer n.writing.Unlock()
			if t.l.isOver() {
				return errDead
			}
			return do()
		}, &n.all, &n.mysql)
	})
	defer n.gate(t.l)
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return errLost
	}
}

func (t *sharedTable) Join(ctx context.Context, r engine.Node, was engine.Pulse) error {
	return t.call(ctx, func() error {
		err := t.Members.Join(ctx, r, was)
		if err == nil && was.Life != r.Life {
			t.l.node.died(was.Life, "its node has begun another")
		}
		if err == nil {
			t.l.node.mu.Lock()
			t.l.node.joined[t.l.n] = t.l.node.since()
			delete(t.l.node.graves, t.l.n) // a Join in doubt was carried out, that life was evicted, and joins again
			t.l.node.mu.Unlock()
		}
		return err
	})
}

func (t *sharedTable) Beat(ctx context.Context, r engine.Node) error {
	defer t.l.reach("after a beat")
	return t.call(ctx, func() error { return t.Members.Beat(ctx, r) })
}

func (t *sharedTable) Look(ctx context.Context, moves uint64) (seen engine.Membership, err error) {
	read := make(chan engine.Membership, 1) // a call that was given up must not write what was returned
	err = t.call(ctx, func() error {
		seen, err := t.Members.Look(ctx, moves)
		read <- seen
		return err
	})
	if err != nil {
		return engine.Membership{}, err
	}
	return <-read, nil
}

func (t *sharedTable) Evict(ctx context.Context, life uint64, dead engine.Pulse) error {
	t.l.reach("before an eviction")
	defer t.l.reach("after an eviction")
	return t.call(ctx, func() error {
		err := t.Members.Evict(ctx, life, dead)
		if err == nil {
			t.l.node.died(dead.Life, "it was silent")
		}
		return err
	})
}

func (t *sharedTable) Take(ctx context.Context, life uint64, shards engine.Set) error {
	t.l.reach("before a take")
	defer t.l.reach("after a take")
	return t.call(ctx, func() error {
		err := t.Members.Take(ctx, life, shards)
		if err == nil {
			t.l.node.fleet.took(int(life), shards)
		}
		return err
	})
}

// took notes which shards a life took, and which got an owner with another journal in a time that MySQL loses.
func (f *fleet) took(life int, shards engine.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.since()
	f.taken[life] = f.taken[life].Union(shards)
	for _, b := range f.backs {
		for i := range shards.All() {
			if b.from <= now && now <= b.to && f.disks[life] != f.disks[int(b.shards[i].Holder)] {
				b.moved = b.moved.Union(engine.SetOf(i))
			}
		}
	}
}

func (t *sharedTable) Give(ctx context.Context, life uint64, shards []engine.Handover) error {
	t.l.reach("before a release")
	defer t.l.reach("after a release")
	return t.call(ctx, func() error {
		f := t.l.node.fleet
		if t.l.settled > f.settled[t.l.n] { // MySQL has lost some
			return engine.ErrFenced
		}
		err := t.Members.Give(ctx, life, shards)
		if err == nil {
			f.mu.Lock()
			for i := range shards {
				f.gives = append(f.gives, give{f.since(), shards[i].Shard, int(life)})
			}
			f.mu.Unlock()
		}
		return err
	})
}

func (t *sharedTable) Leave(ctx context.Context, life uint64) error {
	return t.call(ctx, func() error {
		err := t.Members.Leave(ctx, life)
		if err == nil {
			t.l.node.died(life, "it has left")
		}
		return err
	})
}

func (t *sharedTable) Newest(ctx context.Context) (id engine.TimerID, err error) {
	err = t.l.read(ctx, func() (err error) { id, err = t.Members.Newest(ctx); return err })
	return id, err
}
