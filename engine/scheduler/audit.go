package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/process"
)

const (
	auditEvery = 5 * time.Minute
	// auditShare is how much of the time it may work.
	auditShare = 100 // 1 %
)

// audit compares what the cold tier says is due in the coming hour with what
// the warm tier and the wheel hold, at the start and every few minutes, paced to
// 1 % of a core. What is missing is put there and counted: a violation is a bug,
// or a warm tier that lost something.
func (e *Scheduler) audit(ctx context.Context) error {
	for {
		for e.migrator.warmed.Load() == 0 || e.migrator.sealed() == 0 { // the first fill comes first
			if process.Sleep(ctx, time.Second); ctx.Err() != nil {
				return nil
			}
		}
		if n, err := e.auditOnce(ctx); err != nil && ctx.Err() == nil {
			e.log.Error("cannot audit the coming hour", "error", err)
		} else if n > 0 {
			e.log.Error("the audit found timers missing from memory or the warm tier and put them there", "count", n)
		}
		if process.Sleep(ctx, auditEvery); ctx.Err() != nil {
			return nil
		}
	}
}

// auditOnce goes through the coming window minute by minute.
func (e *Scheduler) auditOnce(ctx context.Context) (missing int, err error) {
	for at := e.memory.Loaded.Load() / minute * minute; at < e.migrator.sealed(); at += minute {
		n, err := e.auditMinute(ctx, at)
		if err != nil {
			return missing, fmt.Errorf("the minute of %s: %w", time.UnixMilli(at).UTC().Format(time.RFC3339), err)
		}
		missing += n
	}
	e.metrics.audit.Add(missing)
	return missing, nil
}

func (e *Scheduler) auditMinute(ctx context.Context, at int64) (missing int, err error) {
	started := time.Now()
	pace := func() { // after each page: rest 99 times as long as it took
		process.Sleep(ctx, min(time.Since(started)*(auditShare-1), 5*time.Second))
		started = time.Now()
	}
	if at < e.memory.Loaded.Load() {
		return 0, nil // in the wheel by now
	}
	of := e.memory.Owned() // first: the warm tier may not have the timers of a shard that is gained later
	held, err := e.inWarmTier(ctx, of, at)
	if errors.Is(err, engine.ErrGap) || e.migrator.gaps.has(at) {
		return 0, nil // the migrator reads that minute from the cold tier
	}
	if err != nil {
		return 0, err
	}
	err = e.cfg.Cold.Due(ctx, of, at-1, at+minute-1, func(cs []engine.Candidate) error {
		var lost []engine.Entry
		for _, c := range cs {
			if _, ok := held[c.ID]; ok {
				continue
			}
			due, ok, err := firstDue(&c, at, at+minute)
			if err != nil {
				e.leaveOut(c.ID, err)
				continue
			}
			if ok && !e.memory.Scheduled(c.ID) {
				lost = append(lost, engine.Entry{ID: c.ID, Due: due})
			}
		}
		if len(lost) > 0 {
			if lost, err = e.stillThere(ctx, of, lost, at); err != nil {
				return err
			}
			missing += len(lost)
			e.addWarm(ctx, lost, false)
		}
		pace()
		return ctx.Err()
	})
	return missing, err
}

// inWarmTier are the timers of shards that the warm tier has in a minute.
func (e *Scheduler) inWarmTier(ctx context.Context, of engine.Set, at int64) (map[engine.TimerID]struct{}, error) {
	held := map[engine.TimerID]struct{}{}
	err := e.cfg.Warm.Load(ctx, of, at, func(es []engine.Entry) error {
		for _, x := range es {
			held[x.ID] = struct{}{}
		}
		return nil
	})
	return held, err
}

// firstDue is the candidate's first due in [from, to).
func firstDue(c *engine.Candidate, from, to int64) (due int64, ok bool, err error) {
	if c.Definition == nil {
		return c.Due, c.Due >= from && c.Due < to, nil
	}
	t, err := engine.DecodeTimer(c.Definition)
	if err != nil {
		return 0, false, err
	}
	if t.Status != engine.Enabled {
		return 0, false, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return 0, false, err
	}
	due, ok = p.Next(from - 1)
	return due, ok && due < to, nil
}

// stillThere looks again at what seems lost: a change or a create that was
// under way during the first look is no violation.
func (e *Scheduler) stillThere(ctx context.Context, of engine.Set, lost []engine.Entry, at int64) ([]engine.Entry, error) {
	process.Sleep(ctx, time.Second)
	ids := make([]engine.TimerID, len(lost))
	for i := range lost {
		ids[i] = lost[i].ID
	}
	defs, err := e.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	held, err := e.inWarmTier(ctx, of, at)
	if err != nil && !errors.Is(err, engine.ErrGap) {
		return nil, err
	}
	kept := lost[:0]
	for i, x := range lost {
		if _, ok := held[x.ID]; ok || defs[i] == nil || e.memory.Scheduled(x.ID) || e.memory.Owns(x.ID) != nil {
			continue
		}
		c := engine.Candidate{ID: x.ID, Definition: defs[i]}
		if _, ok, err := firstDue(&c, at, at+minute); ok && err == nil {
			kept = append(kept, x)
		}
	}
	return kept, nil
}
