package simulator

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
	"xtimer/engine/verify"
	"xtimer/tier/local"
)

// remains is what is durable when all is over.
type remains struct {
	wall   int64 // Unix ms
	lives  []engine.Life
	tasks  []*engine.Task
	owed   []engine.Owed
	shards []engine.Shard
}

// look reads what is durable, without an engine.
func (m *machine) look() *remains {
	ctx := context.Background()
	cache := pebble.NewCache(1 << 20)
	defer cache.Unref()
	s := local.New(local.Config{Dir: "/data/cold", FS: m.disk, Cache: cache, MemTableBytes: 1 << 20})
	if err := s.Open(ctx); err != nil {
		m.wrong("cannot open what is left: %v", err)
		return &remains{wall: m.now().UnixMilli()}
	}
	defer s.Close()
	return m.readLeft(s)
}

// readLeft reads what a cold tier has.
func (m *machine) readLeft(s engine.Cold) *remains {
	r := &remains{wall: m.now().UnixMilli()}
	ctx := context.Background()
	fail := func(err error) *remains {
		m.wrong("cannot read what is left: %v", err)
		return r
	}
	for after := engine.TimerID(0); ; {
		ls, err := s.Lives(ctx, after, 1000)
		if err != nil {
			return fail(err)
		}
		if len(ls) == 0 {
			break
		}
		for _, l := range ls {
			if err := wholeVersions(ctx, s, l); err != nil {
				return fail(err)
			}
		}
		r.lives = append(r.lives, ls...)
		after = ls[len(ls)-1].ID
	}
	for before := (engine.Key{}); ; {
		ts, next, err := s.Tasks(ctx, engine.TaskFilter{}, before, 1000)
		if err != nil {
			return fail(err)
		}
		r.tasks = append(r.tasks, ts...)
		if before = next; before == (engine.Key{}) {
			break
		}
	}
	err := s.Owed(ctx, engine.AllShards, -1, engine.MaxDue, func(os []engine.Owed) error {
		r.owed = append(r.owed, os...)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if r.shards, err = s.Shards(ctx); err != nil {
		return fail(err)
	}
	if len(m.steps) > 0 {
		return r // verify knows of no steps
	}
	v := verify.Request{From: m.begin.Add(-23 * time.Hour).UnixMilli(), To: r.wall}
	_, err = verify.Offline(ctx, s, v, r.wall, 7*24*time.Hour, func(f *verify.Finding) error {
		if m.wasSet && f.Kind == verify.Early {
			return nil
		}
		m.wrong("verify: %s: %v of %s to %s (%d): %s", f.Name, f.Kind, stamp(f.Due), stamp(f.DueLast), f.Count, f.Detail)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return r
}

// wholeVersions reads the versions of which a life has the heads.
func wholeVersions(ctx context.Context, s engine.Cold, l engine.Life) error {
	for i, v := range l.Versions {
		if v.Omitted == 0 {
			continue
		}
		if i == len(l.Versions)-1 && l.Deleted == 0 {
			t, err := s.Timer(ctx, l.ID)
			if err != nil {
				return err
			}
			l.Versions[i] = t
			continue
		}
		ts, err := s.Versions(ctx, l.ID, v.Version+1, 1)
		if err != nil {
			return err
		}
		l.Versions[i] = ts[0]
	}
	return nil
}

// final is the record that covers a due of a generation.
func (t *timer) final(due int64, generation uint32) *engine.Task {
	var run *engine.Task
	for _, k := range t.records {
		if k.Key.Due == due {
			return k
		}
		if k.Key.Due < due && due <= k.DueLast && (generation == 0 || k.Generation == generation) {
			run = k
		}
	}
	return run
}

// resting are the dues of t whose next attempt lies ahead, since the clock was set
// back after the last one: it must not be early either.
func (r *remains) resting(t *timer, upTo int64) map[int64]bool {
	dues := map[int64]bool{}
	for _, o := range r.owed {
		if o.Key.Timer == t.id && o.Task != nil && len(o.Task.Attempts) > 0 && o.NotBefore > upTo {
			dues[o.Key.Due] = true
		}
	}
	return dues
}
