package resident

import (
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// A shard of the roster: what this process knows of the timers that have
// something in the wheel or under way. Everything else is in the tiers.
type Shard struct {
	Bodies *Bodies
	Mu     sync.Mutex // guards all below

	Timers map[engine.TimerID]*Timer
	// tasks in memory: those not finished, and those finished and not settled.
	Tasks     Index
	Done      int   // how many of them are finished
	DoneBytes int64 // of their records
	// order has the same tasks (and some that are out), oldest first: history
	// goes through them twice a second.
	Order []*Task
	// latest is the latest due that a task in memory ever had: a timer that comes
	// into the roster knows no better.
	latest int64
	// left are the tasks that left memory with a row in owed, and when (see ticks), for
	// owedKept: a row that was read before is not how they stand.
	EvictedAt map[engine.Key]int64
	// paid are ranges in owed that are over.
	paid []engine.Key
	// changing holds the timers that a change is being made of; the channel is
	// closed when it has ended.
	Changing map[engine.TimerID]chan struct{}
	// decided: up to when the misfires of a timer were decided, while that is
	// later than the watermark.
	Decided map[engine.TimerID]int64

	Watermark int64 // as settled
	Settling  int64 // the highest that a settle may have set: its answer is still to come, or was lost
	Fence     uint64
	Marked    int64 // when the watermark was last written (Unix ms)
}

// Open are the records that cancel the dues in (after, to] that are not in memory
// and not among those with a record of their own. Mu is held.
//
// It goes from one of those to the next, and counts the dues between them: of a timer
// of 10 ms there are 8,640,000 a day, and what fires waits for mu.
func (sh *Shard) Open(t *engine.Timer, p *plan.Plan, after, to int64, own policy.Spans, reason string, now int64) (recs []*engine.Task) {
	if first, ok := p.Next(after); !ok || first > to {
		return nil
	}
	but := slices.Clone(own)
	for _, k := range sh.Order {
		if due := k.Key.Due; k.Key.Timer == t.ID && !k.Evicted && after < due && due <= to {
			but = append(but, [2]int64{due, due})
		}
	}
	slices.SortFunc(but, policy.CompareSpans)
	run := func(to int64) { // of (after, to]
		first, ok := p.Next(after)
		if !ok || first > to {
			return
		}
		rec := policy.NotCalled(t, first, engine.Cancelled, reason, now)
		rec.DueLast, _ = p.Prev(to)
		rec.Count = p.Count(after, to)
		recs = append(recs, rec)
	}
	for _, b := range but {
		if due, ok := p.Next(max(b[0]-1, after)); !ok || due > min(b[1], to) {
			continue // no due, or none that is left: a run goes on over it
		}
		run(min(b[0]-1, to))
		after = max(after, b[1])
	}
	run(to)
	return recs
}

// InMemory are the dues of a timer in (after, to] that have a task in memory, and those
// that are spent, whenever they are. Mu is held.
func (sh *Shard) InMemory(lv *Timer, after, to int64) (s policy.Spans) {
	s = slices.Clone(lv.Spent)
	if lv.Latest <= after {
		return s
	}
	for _, t := range sh.Order {
		if due := t.Key.Due; t.Key.Timer == lv.Def.ID && !t.Evicted && after < due && due <= to {
			s = append(s, [2]int64{due, due})
		}
	}
	slices.SortFunc(s, policy.CompareSpans)
	return s
}

func (m *Memory) ShardOf(id engine.TimerID) *Shard { return &m.Shards[id.Shard()] }

// Ticks are the ms since the engine was made, by a clock that nobody sets, and one
// more: what is kept for a while is kept for as long when the wall clock is set.
func (m *Memory) Ticks() int64 { return m.TicksAt(time.Now()) }

func (m *Memory) TicksAt(at time.Time) int64 { return 1 + at.Sub(m.made).Milliseconds() }

// Coming appends the first due in [from, end) of each timer in the wheel.
func (sh *Shard) Coming(es []engine.Entry, from, end int64, app string) []engine.Entry {
	sh.Mu.Lock()
	defer sh.Mu.Unlock()
	for id, lv := range sh.Timers {
		due := lv.Next
		if due == 0 || due >= end || app != "" && lv.Def.App != app {
			continue
		}
		if due < from {
			var ok bool
			if due, ok = lv.Plan.Next(from - 1); !ok || due >= end {
				continue
			}
		}
		es = append(es, engine.Entry{ID: id, Due: due})
	}
	return es
}
