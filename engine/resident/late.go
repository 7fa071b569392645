package resident

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/policy"
	"xtimer/engine/process"
)

// LateTimers are those of which dues have come that the wheel is not to go through one by
// one (Timer.Late): the clock was set forward, or the timer falls behind. What becomes of all of them up to an instant is one
// decision, whose cost goes with what is called or recorded. It is made off the wheel's
// goroutine, for it is committed before the first of them is sent, and each timer keeps
// the watermark back until then.
type LateTimers struct {
	Inbox[LateTimer]
	Waiting atomic.Int64 // entries without behind, in the list or being decided
}

// LateTimer is one of them.
type LateTimer struct {
	id         engine.TimerID
	generation uint32
	due        int64
	pin        *Pin
	mark       *fair.Mark[*Task] // nil: the lane has no gates
	// at is when the clock had been set (Unix ms): by that it is judged, however late
	// it is found for another reason, and however often its commit is tried: one that
	// seemed to fail may have been made.
	at int64
	// behind: no step of the clock made it late, so all of it is called: its dues become
	// a range without end; see engine/scheduler/unfold.go.
	behind bool
	within bool  // its timer is behind: what is called stays in the range, see Step
	paused int64 // from which due on a pause holds them, by the first try
	alone  bool  // a one-shot that its lane has no room for: it is called when its row's turn comes
	after  int64 // records of dues in (after, at] are stored before the watermark passes these; at: none are
	goesOn bool  // it has dues that are not decided
	upTo   int64 // … else: up to when they are
}

// addLate leaves a timer that is behind from a due on to run. Never blocks. Mu of its shard
// is held.
func (m *Memory) addLate(lv *Timer, x LateTimer) {
	l := &m.Late
	lv.leaveWheel()
	lv.late, lv.falling = true, x.behind
	// The decision begins at the present watermark: dues from there on may be admitted while
	// the timer waits for its decision, and are left to the decision.
	x.id, x.generation = lv.def.ID, lv.def.Generation
	x.pin = m.Pins.Pin(min(x.due-1, x.over(m.shardOf(x.id), lv)))
	if !x.behind {
		l.Waiting.Add(1)
	}
	if lv.queueLane().IsGated() && !x.within {
		x.mark = m.Queue.Mark(lv.queueLane(), x.due)
	}
	l.Add(x)
}

// over is up to when the dues of the timer are over: up to the watermark, for minutes may have been admitted in any order.
// Earlier dues are owed by a range: the one that the wheel goes through, or, of a timer that falls behind, perhaps one that
// is not in memory. mu is held.
func (x *LateTimer) over(sh *shard, lv *Timer) int64 {
	if x.due <= sh.watermark && (x.behind || lv.rangeTo() != 0) {
		return x.due - 1
	}
	return max(sh.watermark, sh.decided[x.id])
}

// Step notes that the clock was set forward, from one instant to another (Unix ms). The caller runs judge
// in the background: judge leaves to run what the step made late of the timers that are behind. A timer whose
// rows are claimed, or whose decision is under way, is put off until that is over. Until a timer was looked at, its
// ranges are not unfolded and its shard is not given; and until all were, the watermarks stay before the step: if
// judge is cut short, the next start decides.
//
// What a range without end held before the step waits on. Of its dues that the clock has skipped, those that are
// not called get records; the others lie in the range as before.
func (m *Memory) Step(from, to int64) (judge func(context.Context)) {
	m.stepping.Add(1)
	pin := m.Pins.Pin(from)
	return func(ctx context.Context) {
		var later []engine.TimerID
		for i := range m.shards {
			sh := m.lockShard(i)
			for id, lv := range sh.timers {
				if !m.judgeBehind(sh, lv, from, to) {
					later = append(later, id)
				}
			}
			sh.mu.Unlock()
		}
		m.stepping.Add(-1)
		for len(later) > 0 {
			if process.Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
				return
			}
			later = slices.DeleteFunc(later, func(id engine.TimerID) bool {
				sh := m.lock(id)
				defer sh.mu.Unlock()
				lv := sh.timers[id]
				return lv == nil || m.judgeBehind(sh, lv, from, to)
			})
		}
		m.Pins.Release(pin)
	}
}

// judgeBehind leaves a timer to run if it is behind. ok is false if the timer has to be looked at again. mu is held.
func (m *Memory) judgeBehind(sh *shard, lv *Timer, from, to int64) (ok bool) {
	lv.unjudged = false
	switch claimed := sh.changing[lv.def.ID].over != nil; {
	case sh.stay == closed:
	case lv.late && (lv.behind || lv.falling), lv.behind && claimed:
		lv.unjudged = true
		return false
	case lv.behind && lv.next == 0:
		if due, ok := lv.plan.Next(from); ok && to-due > policy.MisfireAfter {
			m.addLate(lv, LateTimer{due: due, at: to, within: true})
		}
	}
	return true
}

// IsJudged reports whether all is decided of the dues of a timer that a step of the clock made late while the
// timer was behind. The caller has claimed the timer or its rows, and has read the clock before.
func (m *Memory) IsJudged(id engine.TimerID) bool {
	stepping := m.isStepping()
	sh := m.lock(id)
	defer sh.mu.Unlock()
	lv := sh.timers[id]
	return lv == nil || !lv.unjudged && (!lv.behind || !lv.late && !stepping)
}

// isStepping reports whether the clock was set and the wheel has not noticed that yet, or not all timers were
// looked at since.
func (m *Memory) isStepping() bool {
	return m.Wheel.IsSet() || m.stepping.Load() > 0 // in this order: Step is called before IsSet is false
}

// Unfolded notes that no due of a timer up to an instant lies in a range of the timer any more. The timer is claimed.
func (m *Memory) Unfolded(t *engine.Timer, upTo int64) {
	sh := m.lock(t.ID)
	defer sh.mu.Unlock()
	if lv := sh.timers[t.ID]; lv != nil && lv.behind && lv.def.Generation == t.Generation {
		sh.decided[t.ID] = max(sh.decided[t.ID], upTo)
	}
}

// of is the timer, while it is as it was when it was added: a change says itself what
// becomes of what was late before it, and a later generation is late by an entry of
// its own. The Mu of its shard is held.
func (m *LateTimer) of(sh *shard) *Timer {
	if lv := sh.timers[m.id]; lv != nil && lv.late && lv.def.Generation == m.generation {
		return lv
	}
	return nil
}

// CaughtUp lets the dues of a timer come through the wheel again that was behind: those
// after an instant.
func (m *Memory) CaughtUp(t *engine.Timer, after int64) {
	sh := m.lock(t.ID)
	defer sh.mu.Unlock()
	lv := sh.timers[t.ID]
	if lv == nil || !lv.behind || lv.def.Generation != t.Generation {
		return
	}
	lv.behind = false
	sh.decided[t.ID] = after
	m.schedule(lv, after)
	sh.dismiss(lv)
}

// Decisions are what becomes of the dues of late timers, in one commit:
//
//	Decide → commit → Stored → rows into memory → Done
//	             └──→ Failed
type Decisions struct {
	policy.Triage
	Pay []engine.Key

	m       *Memory
	rest    map[engine.TimerID]engine.Owed // what is left of ranges
	decided []LateTimer
	again   []LateTimer // not decided: a change is being made of them
}

// Decide decides the dues of timers from the first one that is late: as many timers as
// most rows and records have. It answers the others.
func (m *Memory) Decide(list []LateTimer, most int) (d *Decisions, left []LateTimer) {
	d = &Decisions{m: m, rest: map[engine.TimerID]engine.Owed{}}
	for i := range list {
		if len(d.Records)+len(d.Owe)+len(d.Pay) > most {
			return d, list[i:]
		}
		x := &list[i]
		sh := m.lock(x.id)
		switch lv := x.of(sh); {
		case lv == nil: // a change has cancelled them
			m.Pins.Release(x.pin)
			d.over(x)
		case !lv.deciding && (lv.frozen || sh.needsRange(lv)):
			d.again = append(d.again, *x)
		default:
			if !lv.deciding {
				x.paused = m.PausedFrom(lv.def)
			}
			d.decide(sh, lv, x)
			lv.deciding = true
			d.decided = append(d.decided, *x)
		}
		sh.mu.Unlock()
	}
	return d, nil
}

// needsRange reports whether tasks of a timer have no other row than that of the range which the wheel goes
// through. A decision removes that row, so it waits for the next settle, which stores the rows of these tasks
// or their ends. mu is held.
func (sh *shard) needsRange(lv *Timer) bool {
	return lv.rangeTo() != 0 && slices.ContainsFunc(sh.order, func(t *Task) bool {
		return t.timer == lv && t.lacksRow()
	})
}

// decide decides the dues of one timer up to x.at that are not in memory. mu is held.
func (d *Decisions) decide(sh *shard, lv *Timer, x *LateTimer) {
	if x.within {
		d.judge(sh, lv, x)
		return
	}
	after := x.over(sh, lv)
	d.Now, x.after = x.at, x.at
	if lv.rangeTo() != 0 { // what is decided of a range leaves it
		d.Pay = append(d.Pay, engine.Key{Timer: x.id, Due: lv.turning.from})
	}
	if x.alone {
		if open := sh.duesOf(lv, x.due-1, x.due).Open(&lv.plan, max(after, x.due-1), x.due); len(open) > 0 {
			o := policy.Row(lv.def, x.due)
			o.Held = 1
			d.Owe = append(d.Owe, o)
		}
		return
	}
	if x.behind {
		end := int64(engine.Endless)
		if to := lv.rangeTo(); to != 0 && (to < sh.watermark || lv.behind) {
			end = to // what follows rests, up to the watermark, or lies in the range without end
		}
		// The range begins behind all dues that have, or had, a task.
		begin := min(max(lv.latest, x.due-1), end)
		for _, s := range sh.duesOf(lv, after, begin).Open(&lv.plan, after, begin) {
			d.Call(lv.def, &lv.plan, s[0], s[1])
		}
		x.goesOn, x.upTo = false, end
		// Not with a spent due, which may have a row under its key.
		if open := sh.duesOf(lv, begin, end).Open(&lv.plan, begin, end); len(open) > 0 {
			begin = open[0][0] - 1
		} else {
			begin = end
		}
		if first, ok := lv.plan.Next(begin); ok && first <= end {
			o := policy.Row(lv.def, first)
			o.To = end
			if lv.queueLane().IsGated() {
				o.Held = 1
			}
			d.Owe = append(d.Owe, o)
			x.goesOn = end == engine.Endless
		}
		return
	}
	n := len(d.Records)
	d.Judge(lv.def, &lv.plan, sh.duesOf(lv, after, x.at).Open(&lv.plan, after, x.at).Cut(sh.watermark), x.paused)
	if len(d.Records) > n {
		x.after = max(after, sh.watermark)
	}
	if lv.rangeTo() == 0 {
		return
	}
	os, _ := policy.Ranges(lv.def, &lv.plan, x.at, lv.rangeTo(), func(k engine.Key) (bool, error) {
		return sh.tasks.find(k) != nil || d.Owes(k), nil
	})
	if n := len(os) - 1; n >= 0 && os[n].To != 0 {
		d.rest[x.id] = os[n]
		os = os[:n]
	}
	d.Owe = append(d.Owe, os...)
}

// judge records what is not called of the dues that a step made late while their timer was behind. mu is held.
func (d *Decisions) judge(sh *shard, lv *Timer, x *LateTimer) {
	if !lv.deciding { // a settle that is under way may be stored by the next try
		x.after = max(x.due-1, sh.watermark, sh.settling, sh.decided[x.id])
	}
	t := policy.Triage{Now: x.at}
	t.Judge(lv.def, &lv.plan, sh.duesOf(lv, x.after, x.at).Open(&lv.plan, x.after, x.at), x.paused)
	d.Records = append(d.Records, t.Records...)
}

// IsEmpty reports whether nothing was decided.
func (d *Decisions) IsEmpty() bool { return len(d.decided) == 0 }

// Rows are the rows that are to be stored: Owe, and what is left of ranges.
func (d *Decisions) Rows() []engine.Owed {
	return slices.AppendSeq(slices.Clone(d.Owe), maps.Values(d.rest))
}

// Failed gives all timers back: the commit may have been made, and they are decided
// again.
func (d *Decisions) Failed() []LateTimer { return append(d.again, d.decided...) }

// Stored notes that the commit was made.
func (d *Decisions) Stored() {
	d.each(func(sh *shard, lv *Timer, x *LateTimer) {
		if lv.falling = false; x.within {
			lv.deciding, lv.late = false, false
			return
		}
		if lv.rangeTo() != 0 {
			o := d.rest[x.id] // its To is 0 where nothing is left
			lv.turns(&o, lv.spent())
		}
		lv.deciding, lv.judged = false, x.at
		if x.behind {
			stands := lv.behind && x.upTo != engine.Endless // the range without end: it owes what follows a range that has no room
			lv.late, lv.behind, lv.judged = false, x.goesOn || stands, 0
			if !x.goesOn {
				d.m.schedule(lv, max(x.upTo, sh.watermark))
			}
		}
	})
	d.m.Settled.Broadcast()
}

// Done lets the timers go on, and gives those back that were not decided.
func (d *Decisions) Done() []LateTimer {
	d.each(func(sh *shard, lv *Timer, x *LateTimer) {
		if x.behind || x.within {
			return // refill goes through its dues
		}
		sh.decided[x.id] = x.at
		lv.late, lv.judged = false, 0
		d.m.schedule(lv, x.at) // also when it is frozen: its change may fail
		sh.dismiss(lv)
	})
	d.m.Settled.Broadcast()
	for i := range d.decided {
		x := &d.decided[i]
		if x.after < x.at {
			sh := d.m.lock(x.id)
			sh.leaps = sh.leaps.add(x.after, x.at)
			sh.mu.Unlock()
		}
		d.m.Pins.Release(x.pin)
	}
	for i := range d.decided {
		d.over(&d.decided[i])
	}
	return d.again
}

// over counts a timer that is done with.
func (d *Decisions) over(x *LateTimer) {
	d.m.Queue.Move(x.mark, fair.None)
	if !x.behind {
		d.m.Late.Waiting.Add(-1)
	}
}

// each calls f for each timer that was decided and was not changed since, with the lock
// of its shard.
func (d *Decisions) each(f func(sh *shard, lv *Timer, x *LateTimer)) {
	for i := range d.decided {
		x := &d.decided[i]
		sh := d.m.lock(x.id)
		if lv := x.of(sh); lv != nil {
			f(sh, lv, x)
		}
		sh.mu.Unlock()
	}
}
