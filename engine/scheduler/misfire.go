package scheduler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// maxDecided is how many rows and records are stored in one transaction, and those of
// one timer more: one of MySQL has ten seconds, in which 140,000 were too many.
const maxDecided = 20_000

// records encodes tasks for a settlement.
func records(ts []*engine.Task) []engine.Record {
	rs := make([]engine.Record, len(ts))
	for i, t := range ts {
		rs[i] = engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t)}
	}
	return rs
}

// announce counts tasks that were stored as ended without a call, and tells
// those who watch.
func (e *Scheduler) announce(ts []*engine.Task) {
	for _, t := range ts {
		e.metrics.endedMany(t.Status, max(t.Count, 1))
		e.followers.tell(t)
	}
}

// misfires are timers that a forward step of the clock found late (live.late):
// decided off
// the wheel's goroutine, for the decision is committed before the first of them
// is sent. Each keeps the watermark back until then.
type misfires struct {
	mu   sync.Mutex
	list []misfire
	more chan struct{}
}

type misfire struct {
	id         engine.TimerID
	generation uint32
	due        int64
	hold       *hold
	// at is when the clock had been set (Unix ms): by that it is judged, however late
	// it is found for another reason, and however often its commit is tried: one that
	// seemed to fail may have been made.
	at int64
}

// add leaves a timer with a due that is a misfire to run. Never blocks.
func (m *misfires) add(e *Scheduler, def *engine.Timer, due, at int64) {
	h := e.holds.take(due - 1)
	m.mu.Lock()
	m.list = append(m.list, misfire{def.ID, def.Generation, due, h, at})
	m.mu.Unlock()
	m.poke()
}

// of is the timer, while it is as it was when it was added: a change says itself what
// becomes of what was late before it, and a later generation is late by an entry of
// its own. The mu of its shard is held.
func (m *misfire) of(sh *shard) *live {
	if lv := sh.timers[m.id]; lv != nil && lv.late && lv.def.Generation == m.generation {
		return lv
	}
	return nil
}

// run decides what was added until ctx ends. What is not decided then keeps its
// hold, so that the next start decides it.
func (m *misfires) run(ctx context.Context, e *Scheduler) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.more:
		}
		m.mu.Lock()
		list := m.list
		m.list = nil
		m.mu.Unlock()
		again, err := e.decideMisfires(ctx, list)
		if err != nil && ctx.Err() == nil {
			e.log.Error("cannot store which dues a step of the clock made misfires; trying again", "error", err)
		}
		if len(again) == 0 {
			continue
		}
		sleep(ctx, 100*time.Millisecond)
		m.mu.Lock()
		m.list = append(again, m.list...)
		m.mu.Unlock()
		m.poke()
	}
}

func (m *misfires) poke() {
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// decideMisfires decides the dues of timers from the first one that is late,
// commits that, and lets the timers go on. again are those that could not be
// decided yet: a change is being made of them, or the cold tier is away.
func (e *Scheduler) decideMisfires(ctx context.Context, list []misfire) (again []misfire, err error) {
	var d policy.Triage
	var pay []engine.Key
	rest := map[engine.TimerID]engine.Owed{} // ranges
	decided := list[:0:0]
	for _, m := range list {
		if len(d.Records)+len(d.Owe)+len(pay) > maxDecided {
			again = append(again, m) // with the next
			continue
		}
		sh := e.shardOf(m.id)
		sh.mu.Lock()
		switch lv := m.of(sh); {
		case lv == nil:
			e.holds.give(m.hold) // a change has cancelled them
		case lv.held && !lv.deciding:
			again = append(again, m)
		default:
			d.Now = m.at
			// From the watermark on: minutes may have been admitted in any order.
			after := m.due - 1
			if m.due > sh.watermark {
				after = max(sh.watermark, sh.decided[m.id])
			}
			d.Decide(lv.def, &lv.plan, after, func(due int64) bool { return sh.tasks.find(engine.Key{Timer: m.id, Due: due}) != nil })
			if lv.owedTo != 0 { // what is decided of a range leaves it
				pay = append(pay, engine.Key{Timer: m.id, Due: lv.owedFrom})
				os, _ := ranges(lv.def, &lv.plan, m.at, lv.owedTo, func(k engine.Key) (bool, error) {
					is := sh.tasks.find(k) != nil || slices.ContainsFunc(d.Owe, func(o engine.Owed) bool { return o.Key == k })
					return is, nil
				})
				if n := len(os) - 1; n >= 0 && os[n].To != 0 {
					rest[m.id] = os[n]
					os = os[:n]
				}
				d.Owe = append(d.Owe, os...)
			}
			lv.deciding = true
			decided = append(decided, m)
		}
		sh.mu.Unlock()
	}
	owe := slices.AppendSeq(slices.Clone(d.Owe), maps.Values(rest))
	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: records(d.Records), Owe: owe, Pay: pay}
	if err := e.cfg.Cold.Settle(ctx, s); err != nil {
		return append(decided, again...), err
	}
	stored := time.Now() // before a change that waits for it goes on
	e.announce(d.Records)
	for _, m := range decided {
		sh := e.shardOf(m.id)
		sh.mu.Lock()
		if lv := m.of(sh); lv != nil {
			if lv.owedTo != 0 {
				o, ok := rest[m.id]
				if lv.owedFrom = o.Key.Due; !ok {
					lv.owedTo = 0
				}
			}
			lv.deciding, lv.judged = false, m.at
		}
		sh.mu.Unlock()
	}
	e.settled.broadcast()
	if err := e.resumeAll(ctx, d.Owe, stored, false); err != nil {
		return nil, err // the process ends, and the holds stay
	}
	for _, m := range decided {
		sh := e.shardOf(m.id)
		sh.mu.Lock()
		if lv := m.of(sh); lv != nil {
			sh.decided[m.id] = m.at
			lv.late, lv.judged = false, 0
			e.schedule(lv, m.at) // also when it is held: its change may fail
			sh.dismiss(lv)
		}
		sh.mu.Unlock()
		e.holds.give(m.hold)
	}
	return again, nil
}

// onStep hears from the wheel that the wall clock was set by delta.
func (e *Scheduler) onStep(delta time.Duration) {
	e.steps.Add(1)
	now := e.now()
	e.metrics.clockSteps.Inc()
	e.log.Warn("the wall clock was set", "by", delta)
	if delta > 0 {
		raise(&e.stepped, now)
	}
	select {
	case e.wakeMigrator <- struct{}{}:
	default:
	}
}
