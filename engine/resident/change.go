package resident

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Changes remembers which versions this process has made of late, so that a
// definition read from a tier before a change is not put into force after it.
// Entries live for changesKept, far longer than any read takes.
type Changes struct {
	mu       sync.Mutex
	versions map[engine.TimerID]ChangeNote
	order    []ChangeNote // oldest first
}

type ChangeNote struct {
	id      engine.TimerID
	version uint32
	at      int64 // see ticks
}

const changesKept = 5 * minute

func (c *Changes) note(id engine.TimerID, version uint32, ticks int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.order) && ticks-c.order[n].at > changesKept {
		n++
	}
	for _, o := range c.order[:n] {
		if c.versions[o.id] == o {
			delete(c.versions, o.id)
		}
	}
	x := ChangeNote{id, version, ticks}
	c.order = append(c.order[n:], x)
	c.versions[id] = x
}

// made tells whether a version was made at an instant of ticks or later.
func (c *Changes) made(id engine.TimerID, ticks int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[id].at >= ticks
}

// newer tells whether a later version than this one was made.
func (c *Changes) newer(id engine.TimerID, version uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.versions[id].version > version
}

// Claim lets one change at a time at a timer; release ends it.
func (m *Memory) Claim(ctx context.Context, id engine.TimerID) (release func(), err error) {
	sh := m.shardOf(id)
	for {
		sh.mu.Lock()
		ch := sh.changing[id]
		if ch == nil {
			ch = make(chan struct{})
			sh.changing[id] = ch
			sh.mu.Unlock()
			return func() {
				sh.mu.Lock()
				delete(sh.changing, id)
				sh.mu.Unlock()
				close(ch)
			}, nil
		}
		sh.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ClaimNew claims timers that nobody else knows yet; but for one whose id is taken, by
// a clock that had stepped back: that is claimed by whoever changes it.
func (m *Memory) ClaimNew(cs []*engine.Change) (release func()) {
	ch := make(chan struct{})
	for _, c := range cs {
		sh := m.shardOf(c.ID)
		sh.mu.Lock()
		if sh.changing[c.ID] == nil {
			sh.changing[c.ID] = ch
		}
		sh.mu.Unlock()
	}
	return func() {
		for _, c := range cs {
			sh := m.shardOf(c.ID)
			sh.mu.Lock()
			if sh.changing[c.ID] == ch {
				delete(sh.changing, c.ID)
			}
			sh.mu.Unlock()
		}
		close(ch)
	}
}

// TryClaim is claim for a caller that does not wait: change is the one that is under way.
func (m *Memory) TryClaim(id engine.TimerID) (release func(), change chan struct{}) {
	sh := m.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if ch := sh.changing[id]; ch != nil {
		return nil, ch
	}
	ch := make(chan struct{})
	sh.changing[id] = ch
	return func() {
		sh.mu.Lock()
		delete(sh.changing, id)
		sh.mu.Unlock()
		close(ch)
	}, nil
}

// Cancel adds to a change what becomes of the dues of the standing generation that have
// come: each that is not finished and not in a call is cancelled. A task that has a row
// is left to Replace. waited reports whether there was any. The timer is frozen.
func (m *Memory) Cancel(c *engine.Change, end *policy.Ending, p *plan.Plan) (inFlight int, waited bool) {
	t := end.Former
	sh := m.shardOf(t.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	after, behind := max(sh.watermark, sh.decided[t.ID]), false
	if lv := sh.timers[t.ID]; lv != nil {
		after, behind = max(after, lv.judged), lv.behind // then its range has what came
		for k := lv.tasks; k != nil; k = k.later {
			came := k.Key.Due <= end.UpTo || k.used()
			switch {
			case k.State == Sending:
				inFlight++
				if !k.HasRow || k.rowStale { // for a crash: no plan derives it any more
					k.HasRow = true
					c.Owe = append(c.Owe, k.row())
				}
				continue
			case k.HasRow && came:
				waited = true
				continue
			case k.HasRow:
				c.Pay = append(c.Pay, k.Key)
			}
			if k.cancelled = true; came {
				rec := k.snapshot()
				rec.Status, rec.Reason, rec.Ended, rec.NotBefore = engine.Cancelled, end.Reason, end.At, 0
				if len(rec.Attempts) == 0 {
					rec.Lateness = -1
				}
				c.Tasks = append(c.Tasks, rec)
			}
		}
	}
	if t.Status == engine.Enabled && !behind {
		c.Tasks = append(c.Tasks, sh.cancelledDues(t, p, after, end.UpTo, nil, end.Reason, end.At)...)
	}
	return inFlight, waited || len(c.Tasks) > 0
}

// Freeze stops attempts of the timer from starting, waits until no settle that
// names one of its tasks is under way, no decision of its misfires, and no write of
// a first byte. With a cold tier that does not answer it waits for freezeFor.
func (m *Memory) Freeze(ctx context.Context, id engine.TimerID) error {
	sh := m.shardOf(id)
	limited, cancel := context.WithTimeout(ctx, freezeFor)
	defer cancel()
	for {
		settled := m.Settled.Wait()
		sh.mu.Lock()
		lv, busy := sh.timers[id], false
		if lv != nil {
			lv.frozen = true
			busy = lv.deciding
			for t := lv.tasks; t != nil; t = t.later {
				busy = busy || t.settling || t.writing != nil
			}
		}
		sh.mu.Unlock()
		if !busy {
			return nil
		}
		select {
		case <-settled:
		case <-limited.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("cannot change timer %s: what was due of it cannot be stored: %w", id, engine.ErrUnavailable)
		}
	}
}

// freezeFor is how long a change waits for what is being stored of its timer.
const freezeFor = 10 * time.Second

// Thaw lets frozen tasks go on, late.
func (m *Memory) Thaw(id engine.TimerID) {
	sh := m.shardOf(id)
	var ready []*Task
	sh.mu.Lock()
	if lv := sh.timers[id]; lv != nil && lv.frozen {
		lv.frozen = false
		for t := lv.tasks; t != nil; t = t.later {
			t.cancelled, t.rowStale = false, true
			if t.State == Frozen {
				t.await(m.now())
				ready = append(ready, t)
			}
		}
		if lv.late {
			m.Late.poke()
		}
		slices.Reverse(ready) // the list has the newest first
		sh.dismiss(lv)
	}
	sh.mu.Unlock()
	m.Enqueue(ready)
}

// Revise puts a definition into force whose dues stay what they were.
func (m *Memory) Revise(t *engine.Timer, now int64) {
	m.changes.note(t.ID, t.Version, m.ticks())
	var ready []*Task
	sh := m.shardOf(t.ID)
	sh.mu.Lock()
	if lv := sh.timers[t.ID]; lv != nil {
		m.Bodies.define(lv, t)
		m.assign(lv)
		if t.Overlap == engine.OverlapAllow {
			ready = lv.unpark(now)
		}
	}
	sh.mu.Unlock()
	m.Enqueue(ready)
}

// Replace ends the generation of was for a reason, and puts next into force; nil: the
// timer is deleted. Its dues come with Add.
func (m *Memory) Replace(was, next *engine.Timer, reason string, now int64) {
	m.changes.note(was.ID, was.Version+1, m.ticks())
	sh := m.shardOf(was.ID)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if lv := sh.timers[was.ID]; lv != nil {
		m.retire(sh, lv, next, reason, now)
	}
}

// retire ends the standing generation of a live timer: of its tasks that are not in a
// call those go that the change recorded, and those that have a row end here, as does
// a call that ended meanwhile and would be repeated. Its due leaves the wheel. mu is held.
func (m *Memory) retire(sh *shard, lv *Timer, next *engine.Timer, reason string, now int64) {
	m.unschedule(lv)
	delete(sh.decided, lv.def.ID)
	clear(lv.parked)
	lv.parked, lv.frozen, lv.late, lv.behind, lv.judged, lv.rangeTo, lv.spent, lv.gone = nil, false, false, false, 0, 0, nil, reason
	for t := lv.tasks; t != nil; {
		later := t.later
		switch {
		case t.State == Sending:
			t.rowStale = true
		case !t.cancelled && (t.HasRow || len(t.Attempts) > 0):
			// Its row tells by now that it has ended; the journal need not, unless it has
			// to tell how the task stands.
			stands := t.HasRow && !t.rowStale && t.State != Preparing
			if len(t.Attempts) == 0 {
				t.Lateness = -1
			}
			m.ends(sh, t, engine.Cancelled, reason, now)
			if !stands {
				t.inJournal(m.cfg.Journal.Finish(t.encoded))
			}
		default:
			m.forget(sh, t)
			t.State = Done
			if t.begun {
				t.begun = false
				lv.busy--
			}
		}
		t = later
	}
	if next == nil {
		lv.deleted = true
		delete(sh.timers, lv.def.ID)
		m.Bodies.leave(lv)
		return
	}
	p, err := plan.Of(next)
	if err != nil {
		panic("BUG: a timer was stored whose schedule does not parse: " + err.Error())
	}
	m.Bodies.define(lv, next)
	lv.plan = p
	m.assign(lv)
	sh.timers[lv.def.ID] = lv
	sh.dismiss(lv)
}
