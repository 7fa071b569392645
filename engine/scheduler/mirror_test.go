package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// glass is a mirror that all nodes share, and that may lose something.
type glass struct {
	mirror atomic.Pointer[memory.Mirror]
	away   atomic.Bool                      // it takes nothing, and tells nothing
	loses  func(g *engine.MirrorGroup) bool // nil: nothing
}

func (g *glass) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	if g.away.Load() {
		return false, engine.ErrUnavailable
	}
	var kept []engine.MirrorGroup
	for i := range groups {
		if g.loses == nil || !g.loses(&groups[i]) {
			kept = append(kept, groups[i])
		}
	}
	_, err = g.mirror.Load().Append(ctx, life, kept, first, last)
	return true, err // nobody is told of what is lost
}

func (g *glass) Read(ctx context.Context, life uint64, yield func([]byte) error) error {
	if g.away.Load() {
		return engine.ErrUnavailable
	}
	return g.mirror.Load().Read(ctx, life, yield)
}

// mortalMirror is the mirror as one life sees it.
type mortalMirror struct {
	*glass
	l *life
}

func (m *mortalMirror) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	if dead := m.l.do(func() { whole, err = m.glass.Append(ctx, life, groups, first, last) }); dead != nil {
		return false, dead
	}
	return whole, err
}

// One of several nodes is killed between two settles. What it had finished 50 ms before is in
// its mirror, and is not called again; an at_most_once task of it has its end. Where the mirror
// is away, was flushed or has holes, more is called again, and nothing is missing.
func TestMirrorSparesRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
		has   bool           // the mirror has all of it
		begin func(g *glass) // before the start
		end   func(g *glass) // at the kill
	}{
		{name: "whole", nodes: 2, has: true},
		{name: "two take over", nodes: 3, has: true},
		{name: "none", nodes: 2},
		{name: "away", nodes: 2, begin: func(g *glass) { g.away.Store(true) }},
		{name: "away at the kill", nodes: 2, end: func(g *glass) { g.away.Store(true) }},
		{name: "flushed", nodes: 3, end: func(g *glass) { g.mirror.Store(memory.NewMirror()) }},
		{name: "has holes", nodes: 2, begin: func(g *glass) { g.loses = func(g *engine.MirrorGroup) bool { return g.N%3 == 0 } }},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws, g := w.nodes(c.nodes), &glass{}
				g.mirror.Store(memory.NewMirror())
				defer endNodes(ws)
				if c.begin != nil {
					c.begin(g)
				}
				for _, n := range ws {
					if c.name != "none" {
						n.node.glass = g
					}
					n.start()
				}
				killedBetweenSettles(t, ws, c.has, func() {
					if c.end != nil {
						c.end(g)
					}
				})
			})
		})
	}
}

// killedBetweenSettles kills the first of nodes. has: all that it finished until 50 ms before
// can be known.
func killedBetweenSettles(t *testing.T, ws []*world, has bool, killed func()) {
	a, b := ws[0], ws[1]
	time.Sleep(1300 * time.Millisecond)
	type made struct {
		name  string
		id    engine.TimerID
		from  int64
		every int64
		once  bool
		owner *world // when it was disabled, and when that was
		to    int64
	}
	var all []made
	for i := range 24 {
		x := made{name: fmt.Sprint("every-", i), every: int64(170 + 10*i), once: i%4 == 1, from: a.now()}
		d := timer(x.name, every(time.Duration(x.every)*time.Millisecond), misfire(engine.MisfireAll, time.Hour))
		switch {
		case x.once:
			atMostOnce(&d)
		case i%4 == 2: // each task has two attempts
			retry(3, 250*time.Millisecond, 1)(&d)
			for _, w := range ws {
				w.behave(x.name, func(c *call) reply {
					if c.attempt < 2 {
						return fail
					}
					return ok
				})
			}
		case i%4 == 3:
			behaveAll(ws, x.name, slow(120*time.Millisecond))
		}
		x.id = a.make(d)
		all = append(all, x)
	}
	time.Sleep(5*time.Second + 783*time.Millisecond)
	o := takenOver{killed: a.now(), within: 3000, unknown: 2500}
	a.kill()
	killed()
	time.Sleep(8 * time.Second)
	for i := range all {
		x := &all[i]
		x.owner = b
		for _, w := range ws[1:] {
			if _, err := w.Timer(t.Context(), x.id); err == nil {
				x.owner = w
			}
		}
		if _, err := x.owner.Disable(t.Context(), x.id, 0, "", 0); err != nil {
			t.Fatal(err)
		}
		x.to = a.now()
	}
	time.Sleep(time.Second)
	b.settle()
	repeats, early, unknown := 0, 0, 0
	for _, x := range all {
		first, attempts := map[[2]int64]call{}, map[int64]int{}
		for _, c := range ofAll(ws, x.name) {
			k := [2]int64{c.key.Due, int64(c.attempt)}
			if was, is := first[k]; is {
				repeats++
				if was.ended > 0 && was.ended < o.killed-50 {
					early++
				}
				if !c.redelivered || x.once {
					t.Errorf("%s, due %s, was called again, once %v, redelivered %v", x.name, stamp(c.key.Due), x.once, c.redelivered)
				}
			} else {
				first[k] = c
			}
			if attempts[c.key.Due] > c.attempt {
				if has {
					t.Errorf("%s, due %s, has attempt %d after attempt %d", x.name, stamp(c.key.Due), c.attempt, attempts[c.key.Due])
				}
			}
			attempts[c.key.Due] = max(attempts[c.key.Due], c.attempt)
		}
		for _, due := range grid(x.from, x.to, x.every, x.from) {
			if attempts[due] == 0 && !x.once {
				t.Errorf("%s, due %s, was not called", x.name, stamp(due))
			}
		}
		for _, r := range x.owner.records(x.id) {
			switch {
			case r.Status == engine.Unknown && x.once:
				unknown++
				if c := first[[2]int64{r.Key.Due, 1}]; c.ended > 0 && c.ended < o.killed-50 {
					early++
				}
			case r.Status == engine.Cancelled && r.Key.Due > x.to-1000: // it was to be tried again when the timer was disabled
			case r.Status != engine.Succeeded || attempts[r.Key.Due] == 0:
				t.Errorf("%s, due %s, ended as %v after attempt %d", x.name, stamp(r.Key.Due), r.Status, attempts[r.Key.Due])
			}
		}
	}
	t.Logf("%d calls were made again, %d tasks are unknown; %d of them had ended 50 ms before", repeats, unknown, early)
	if has && early > 0 || !has && early == 0 || repeats == 0 {
		t.Errorf("%d of %d repeats and %d unknown are of what had ended 50 ms before", early, repeats, unknown)
	}
}

// A node gives its first shards while it cannot store their results, has nothing to store of its other shards, and is
// killed: the mirror still has the results of the shards that were closed, and nothing is called again.
func TestKillDuringAHandOverThatCannotBeStored(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws, g := w.nodes(2), &glass{}
		g.mirror.Store(memory.NewMirror())
		defer endNodes(ws)
		for _, n := range ws {
			n.node.glass = g
			n.start()
		}
		a := ws[0]
		time.Sleep(1300 * time.Millisecond)
		due, names := a.now()+5_000, []string(nil)
		for i := range 1000 {
			name := fmt.Sprint("x-", i)
			if id := a.make(timer(name, at(due))); id.Shard() < 16 { // of those that are given first
				names = append(names, name)
			} else if _, err := a.Delete(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(due-a.now()-10) * time.Millisecond)
		a.before.set(func(op string, _ any) error {
			if op == "Settle" {
				return engine.ErrUnavailable
			}
			return nil
		})
		time.Sleep(110 * time.Millisecond)
		seen, err := a.node.table.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range seen.Nodes {
			if n.Name == a.node.Node.Name {
				err = a.node.table.Wish(t.Context(), n.Life, engine.WishDrain)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		a.kill()
		time.Sleep(10 * time.Second)
		for _, name := range names {
			if cs := ofAll(ws, name); len(cs) != 1 {
				t.Errorf("%s was called %d times", name, len(cs))
			}
		}
		if len(names) < 20 {
			t.Errorf("only %d timers", len(names))
		}
	})
}
