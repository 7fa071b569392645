package scheduler

import (
	"context"
	"fmt"
	"maps"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// startParts are the parts of the shards that a start recovers one after the other; a
// variable for tests.
var startParts = []engine.Set{engine.AllShards}

// recover has a process that is alone take all shards, and recover them before it fires.
func (e *Scheduler) recover(ctx context.Context) error {
	started := time.Now()
	shards, newest, err := e.cfg.Cold.Take(ctx, e.cfg.Node) // may wait for a former owner: first
	if err != nil {
		return fmt.Errorf("cannot take the shards: %w", err)
	}
	e.process.StartsWith("it recovers what was under way")
	if waited := time.Since(started); waited > time.Second/2 {
		e.log.Info("took the timers over", "waited", waited.Round(time.Millisecond))
	}
	e.IDs.Above(newest)
	failpoint.Hit("take-before-recovery")
	j, err := readFormer(e.cfg.Journal, false)
	if err == nil {
		err = e.readKept(engine.AllShards, shards, j)
	}
	if err != nil {
		return err
	}
	now := e.now()
	for _, of := range startParts {
		part := *j
		if of != engine.AllShards {
			part = j.in(of)
		}
		r, err := e.recoverShards(ctx, of, engine.Set{}, shards, part)
		if err != nil {
			return err
		}
		e.early = append(e.early, r.early...)
		if err := e.waitInLanes(ctx, of, r.now); err != nil {
			return err
		}
		now = min(now, r.now) // what is due later is read with the next minute
	}
	failpoint.Hit("recovery-before-forget")
	if err := e.cfg.Journal.Forget(e.cfg.Journal.Next(), e.memory.AllWatermarks()); err != nil {
		return fmt.Errorf("cannot forget in the journal: %w", err)
	}
	e.beginAt(now)
	return nil
}

// beginAt has the migrator load what is due, and what may be tried, after an instant.
func (e *Scheduler) beginAt(now int64) {
	e.memory.StartedAt = now
	e.memory.Resuming.Store(now + 1)
	e.memory.Loaded.Store(now + 1)
	e.memory.TellLoaded()
	e.memory.Horizon.Store(now + 1)
}

// waitInLanes has refill read the rows of shards that may be tried by an instant.
func (e *Scheduler) waitInLanes(ctx context.Context, of engine.Set, upTo int64) error {
	waiting, err := e.cfg.Cold.Lanes(ctx, of, upTo)
	if err != nil {
		return fmt.Errorf("cannot see what waits: %w", err)
	}
	for _, id := range waiting {
		e.memory.Lanes.Of(id).WaitsIn(of)
	}
	e.memory.Known(of)
	return nil
}

// former is what the journal tells of the former process.
type former struct {
	finished map[engine.Key]*engine.Task // by the last record
	begun    map[engine.Key]engine.Begun // attempts without a finish
}

// readFormer reads the journal, before the first Begin; kept: see engine.Journal.
func readFormer(j engine.Journal, kept bool) (*former, error) {
	f := &former{map[engine.Key]*engine.Task{}, map[engine.Key]engine.Begun{}}
	err := j.Replay(kept, func(b engine.Begun) error {
		f.begun[b.Key] = b
		return nil
	}, func(b []byte) error {
		t, err := engine.DecodeTask(append([]byte(nil), b...))
		if err == nil {
			f.finished[t.Key] = t
			delete(f.begun, t.Key)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot replay the journal: %w", err)
	}
	return f, nil
}

// readKept adds to j what the journal keeps of the shards, if the watermark of one of them is earlier than the
// journal has noted: the cold tier has lost results, so all are as if not settled yet. The results of another shard
// may be lost, too: a settle moves no watermark past a task that is not finished. found is how the shards stand.
func (e *Scheduler) readKept(of engine.Set, found []engine.Shard, j *former) error {
	settled, isBack := e.cfg.Journal.Settled(), false
	if settled == nil {
		return nil
	}
	for i := range of.All() {
		isBack = isBack || found[i].Watermark < settled[i]
	}
	if !isBack {
		return nil
	}
	all, err := readFormer(e.cfg.Journal, true)
	if err != nil {
		return err
	}
	for k, t := range all.finished {
		if of.Has(k.Timer.Shard()) {
			j.finished[k] = t
		}
	}
	for k, b := range all.begun {
		if of.Has(k.Timer.Shard()) {
			j.begun[k] = b
		}
	}
	e.log.Warn("the database has lost results that were stored: those that the journal keeps are stored again", "tasks", len(all.finished))
	return nil
}

// hasEnded takes a begin out whose attempt has an end elsewhere, in a row or in the mirror of another life. Another
// life made the attempt again, and the node has the shard back: its journal may be as old as its last time there.
func (f *former) hasEnded(t *engine.Task) {
	if b, ok := f.begun[t.Key]; ok && t.LastAttempt() >= int(b.Attempt) {
		delete(f.begun, t.Key)
	}
}

// in returns what the journal tells of some shards, in maps of its own. A nil former tells
// nothing.
func (f *former) in(of engine.Set) former {
	if f == nil {
		return former{map[engine.Key]*engine.Task{}, map[engine.Key]engine.Begun{}}
	}
	part := former{maps.Clone(f.finished), maps.Clone(f.begun)}
	maps.DeleteFunc(part.finished, func(k engine.Key, _ *engine.Task) bool { return !of.Has(k.Timer.Shard()) })
	maps.DeleteFunc(part.begun, func(k engine.Key, _ engine.Begun) bool { return !of.Has(k.Timer.Shard()) })
	return part
}
