package resident

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Reads are the reads of the cold and the warm tier under way whose results are to come
// into memory. What makes such a result out of date is noted while there is one:
//
//	a row was removed, or its task left memory with it    shard.removed
//	a change of a timer is in force                       shard.changed
//
// Each note has a number. A note that is later than a read began says that what was read
// is to be read again; one that is made after a commit concerns no read that begins later.
type Reads struct {
	number atomic.Uint64
	active atomic.Int64

	mu   sync.Mutex
	list []*Read
}

// Read is one of them.
type Read struct {
	of    *Reads
	from  uint64 // notes up to here are no later
	place int
}

// Begin begins a read: the tier is asked after it.
func (rs *Reads) Begin() *Read {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	r := &Read{rs, rs.number.Load(), len(rs.list)}
	rs.list = append(rs.list, r)
	rs.active.Add(1)
	return r
}

// End ends it: what was read is in memory, or given up.
func (r *Read) End() {
	rs := r.of
	rs.mu.Lock()
	defer rs.mu.Unlock()
	last := len(rs.list) - 1
	rs.list[r.place] = rs.list[last]
	rs.list[r.place].place = r.place
	rs.list[last] = nil
	rs.list = rs.list[:last]
	rs.active.Add(-1)
}

// oldest is the number up to which notes concern no read.
func (rs *Reads) oldest() uint64 {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	n := rs.number.Load()
	for _, r := range rs.list {
		n = min(n, r.from)
	}
	return n
}

// note is the number of a note; 0: none is needed.
func (rs *Reads) note() uint64 {
	if rs.active.Load() == 0 {
		return 0
	}
	return rs.number.Add(1)
}

// noteRemoved notes that a row was removed, or that its task left memory. mu is held.
func (m *Memory) noteRemoved(sh *shard, k engine.Key) {
	if n := m.Reads.note(); n != 0 {
		sh.removed[k] = n
		sh.toSettle.Store(true)
	}
}

// NoteRemoved notes that rows were removed.
func (m *Memory) NoteRemoved(ks []engine.Key) {
	for _, k := range ks {
		sh := m.lock(k.Timer)
		m.noteRemoved(sh, k)
		sh.mu.Unlock()
	}
}

// NoteChanged notes that a change of a timer is in force in all tiers. Its claim is still
// held.
func (m *Memory) NoteChanged(id engine.TimerID) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	if n := m.Reads.note(); n != 0 {
		sh.changed[id] = n
		sh.toSettle.Store(true)
	}
}

// Had reports whether the task of a row that was read is in memory, or was since then.
func (m *Memory) Had(k engine.Key, r *Read) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	return sh.tasks.find(k) != nil || sh.removed[k] > r.from
}

// claim is that of a timer which is being changed, or whose rows are.
type claim struct {
	over chan struct{} // closed when it has ended
	rows bool          // the definition stays what it is
}

// Claim lets one change at a time at a timer; release ends it. ErrElsewhere: see Owns.
func (m *Memory) Claim(ctx context.Context, id engine.TimerID) (release func(), err error) {
	return m.claim(ctx, id, false)
}

// ClaimRows is Claim for a change of rows: the timer can be loaded meanwhile. A commit of
// rows may be in doubt for as long as the cold tier cannot be written.
func (m *Memory) ClaimRows(ctx context.Context, id engine.TimerID) (release func(), err error) {
	return m.claim(ctx, id, true)
}

// claimFor is how long a request waits for another change of its timer.
const claimFor = 10 * time.Second

func (m *Memory) claim(ctx context.Context, id engine.TimerID, rows bool) (release func(), err error) {
	limited, cancel := context.WithTimeout(ctx, claimFor)
	defer cancel()
	for {
		if err := m.Owns(id); err != nil {
			return nil, err
		}
		release, change := m.tryClaim(id, rows)
		if change == nil {
			return release, nil
		}
		select {
		case <-change:
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("cannot change timer %s: another change of it is not stored yet: %w", id, engine.ErrUnavailable)
		}
	}
}

// ClaimNew claims timers that no other request knows yet. A timer whose id is taken, because
// the clock had stepped back, is claimed by the request that changes it. ok is false, and none
// is claimed, if a timer lies in a shard that has been ceded since its id was made.
func (m *Memory) ClaimNew(cs []*engine.Change) (release func(), ok bool) {
	ch := make(chan struct{})
	ok = true
	for _, c := range cs {
		sh := m.lock(c.ID)
		if sh.stay != here {
			ok = false
		} else if sh.changing[c.ID].over == nil {
			sh.changing[c.ID] = claim{over: ch}
		}
		sh.mu.Unlock()
	}
	release = func() {
		for _, c := range cs {
			sh := m.lock(c.ID)
			if sh.changing[c.ID].over == ch {
				delete(sh.changing, c.ID)
			}
			sh.mu.Unlock()
		}
		close(ch)
	}
	if !ok {
		release()
		return nil, false
	}
	return release, true
}

// TryClaimRows is ClaimRows for a caller that does not wait: change is the one that is
// under way. Of a shard that leaves memory it is over when the shard has left.
func (m *Memory) TryClaimRows(id engine.TimerID) (release func(), change <-chan struct{}) {
	return m.tryClaim(id, true)
}

func (m *Memory) tryClaim(id engine.TimerID, rows bool) (release func(), change <-chan struct{}) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	if c := sh.changing[id]; c.over != nil {
		return nil, c.over
	}
	if left := sh.whenLeft(); left != nil {
		return nil, left
	}
	ch := make(chan struct{})
	sh.changing[id] = claim{over: ch, rows: rows}
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
	sh := m.lock(t.ID)
	defer sh.mu.Unlock()
	after, behind := max(sh.watermark, sh.decided[t.ID]), false
	if lv := sh.timers[t.ID]; lv != nil {
		lv.ending = true
		after, behind = max(after, lv.judged), lv.behind // then its range has what came
		for k := lv.newest; k != nil; k = k.older {
			came := k.Key.Due <= end.UpTo || k.used()
			switch {
			case k.inCall():
				inFlight++
				if k.row != rowCurrent { // for a crash: no plan derives it any more
					sh.part(k.shared)
					k.row, k.shared = rowStale, nil
					c.Owe = append(c.Owe, m.owed(k))
				}
				continue
			case k.HasOpenRow() && came && !k.lacksRow():
				waited = true
				continue
			case k.HasOpenRow():
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
		c.Tasks = append(c.Tasks, sh.cancelledDues(end, p, after, end.UpTo, nil)...)
	}
	return inFlight, waited || len(c.Tasks) > 0
}

// Revise puts a definition into force whose dues stay what they were.
func (m *Memory) Revise(t *engine.Timer, now int64) {
	var ready []*Task
	sh := m.lock(t.ID)
	if lv := sh.timers[t.ID]; lv != nil {
		ready = m.endUntold(sh, lv, t, now)
		m.Bodies.define(lv, t)
		m.assign(lv)
		if t.Overlap == engine.OverlapAllow {
			ready = append(ready, lv.unpark(now)...)
		}
	}
	sh.mu.Unlock()
	m.Enqueue(ready)
}

// endUntold ends the tasks that may be called at most once, and whose calls may have been sent, where the next definition
// would have them called again. freed are to be queued. mu is held.
func (m *Memory) endUntold(sh *shard, lv *Timer, next *engine.Timer, now int64) (freed []*Task) {
	if next.Delivery == engine.AtMostOnce {
		return nil
	}
	for t := lv.newest; t != nil; {
		older := t.older
		if t.mayNotRepeat() && t.state != Done && !t.inCall() {
			policy.PerhapsSent(&t.Task)
			if x := m.conclude(sh, t, engine.Unknown, engine.ReasonMayHaveBeen, now); x != nil {
				freed = append(freed, x)
			}
		}
		t = older
	}
	return freed
}

// Replace ends the generation of was for a reason, and puts next into force; nil: the
// timer is deleted. Its dues come with Add.
func (m *Memory) Replace(was, next *engine.Timer, reason string, now int64) {
	sh := m.lock(was.ID)
	defer sh.mu.Unlock()
	// Also of a timer that is not in memory, while refill has the row of its due. The clock was set back: the
	// next generation may have the due again.
	delete(sh.decided, was.ID)
	if lv := sh.timers[was.ID]; lv != nil {
		m.retire(sh, lv, next, reason, now)
	}
}

// retire ends the standing generation of a live timer: of its tasks that are not in a
// call those go that the change recorded, and those that have a row end here, as does
// a call that ended meanwhile and would be repeated. Its due leaves the wheel. mu is held.
func (m *Memory) retire(sh *shard, lv *Timer, next *engine.Timer, reason string, now int64) {
	m.unschedule(lv)
	lv.unpark(now) // no task of this generation gets the turn any more
	lv.frozen, lv.ending, lv.late, lv.behind, lv.falling, lv.unjudged = false, false, false, false, false, false
	lv.judged, lv.turning, lv.gone = 0, nil, reason
	for t := lv.newest; t != nil; {
		older := t.older
		switch {
		case t.inCall():
			t.touch()
		case !t.cancelled && (t.HasOpenRow() || len(t.Attempts) > 0):
			// Its row tells by now that it has ended; the journal need not, unless it has
			// to tell how the task stands.
			stands := t.row == rowCurrent && t.state != Preparing
			if len(t.Attempts) == 0 {
				t.Lateness = -1
			}
			status, why := engine.Cancelled, reason
			if t.mayNotRepeat() {
				status, why = engine.Unknown, engine.ReasonMayHaveBeen
			}
			if t.past == wasUnended {
				policy.PerhapsSent(&t.Task)
			}
			m.ends(sh, t, status, why, now)
			if !stands {
				t.inJournal(m.cfg.Journal.Finish(t.encoded))
			}
		default:
			m.forget(sh, t)
			if t.busy {
				t.busy = false
				lv.busy--
			}
		}
		t = older
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
