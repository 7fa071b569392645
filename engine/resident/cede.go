package resident

import (
	"math"
	"slices"

	"xtimer/engine"
)

// stay is where a shard stands in memory:
//
//	away ──(Own)──► here ──(Cede)──► ceding ──(CaptureLast)──► closed ──(Leave)──► away
//
// A gain of the shard, or the start, looks at it from Own on; it is owned from Gain to Cede.
type stay uint8

const (
	away   stay = iota // nothing of it comes into memory
	here               // all happens that happens to timers
	ceding             // no attempt and no change begins; what is due waits
	closed             // what is due, and rows, stay outside; calls that run may end
)

// changeSet makes another set of one that is stored.
func changeSet(p interface {
	Load() *engine.Set
	CompareAndSwap(was, to *engine.Set) bool
}, f func(engine.Set) engine.Set,
) {
	for {
		was := p.Load()
		to := f(*was)
		if p.CompareAndSwap(was, &to) {
			return
		}
	}
}

// Held are the shards whose watermarks move: those that are owned, and those that are being
// ceded.
func (m *Memory) Held() engine.Set { return *m.held.Load() }

// Cede begins to end the work on shards that are owned. From now on no attempt of a task
// begins there, no first byte is sent, no change of a timer is taken, and none is made
// there. What began before may go on.
func (m *Memory) Cede(of engine.Set) {
	changeSet(&m.owned, func(s engine.Set) engine.Set { return s.Without(of) })
	m.setPart()
	for i := range of.All() {
		sh := m.lockShard(i)
		if sh.stay == here {
			sh.stay, sh.left = ceding, make(chan struct{})
		}
		sh.mu.Unlock()
	}
}

// InCall reports whether a task of the shards is in a call.
func (m *Memory) InCall(of engine.Set) bool {
	for i := range of.All() {
		sh := m.lockShard(i)
		for _, t := range sh.order {
			if t.inCall() {
				sh.mu.Unlock()
				return true
			}
		}
		sh.mu.Unlock()
	}
	return false
}

// isQuiet reports whether no timer of a shard is being changed, nothing of it is being decided
// or to be decided, and no row of it is the Intents' to write. mu is held.
func (sh *shard) isQuiet() bool {
	if len(sh.changing) > 0 {
		return false
	}
	if slices.ContainsFunc(sh.order, func(t *Task) bool { return t.intends }) {
		return false
	}
	for _, lv := range sh.timers {
		if lv.late || lv.deciding || lv.frozen || lv.unjudged {
			return false
		}
	}
	return true
}

// isBegun reports whether an attempt of a task was made or is under way. mu is held.
func (t *Task) isBegun() bool { return t.inCall() || len(t.Attempts) > t.Base }

// lastBegun is the last due of a shard that the watermark has to pass, for what became of it
// is told by nothing else. mu is held.
func (sh *shard) lastBegun() (due int64) {
	for _, t := range sh.order {
		if t.Origin == engine.FromSchedule && (t.state == Done || t.state != Gone && t.row == noRow && t.isBegun()) {
			due = max(due, t.Key.Due)
		}
	}
	return due
}

// stillRuns is for how long (ms) after the timeout of its call a task is not tried again
// elsewhere that is in a call.
const stillRuns = 1000

// CaptureLast takes all from a shard that is being ceded: its results, and a row of each task
// that is not finished and not later than the watermark. From then on the shard is closed.
// ok is false while changes or intents are under way there, while timers are to be looked at since a step of
// the clock (see Step), or while the watermark may not pass all that began; forced does not wait for the last.
// What CaptureLast takes of a closed shard are the calls that have ended since.
func (m *Memory) CaptureLast(shard int, cut, now int64, forced bool, s *engine.Settlement) (c Captured, ok bool) {
	critical := m.cfg.DiskCritical()
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	m.tidy(sh)
	if sh.stay == ceding {
		w := max(sh.leaps.before(m.Pins.since(cut)), sh.watermark)
		if !sh.isQuiet() || m.isStepping() || w < sh.lastBegun() && !forced {
			return c, false
		}
		sh.close(w, now)
	}
	c = Captured{sh: sh, settle: m.settle.Load(), w: sh.last, Needed: math.MaxUint64, Ahead: math.MaxUint64}
	for _, t := range sh.order {
		passed := t.Key.Due <= c.w
		switch {
		case t.state == Gone:
		case t.state == Done && (passed || t.row != noRow && t.Origin != engine.FromSchedule):
			c.end(s, t, critical)
		case t.state == Done: // forced: it is called once more
		case t.inCall():
			c.keep(m, s, t)
			s.Owe[len(s.Owe)-1].NotBefore = now + t.timer.def.Callback.Timeout.Milliseconds() + stillRuns
		case t.row == rowStale, t.row == rowShared, t.row == noRow && (passed || t.isBegun()):
			c.keep(m, s, t)
		}
	}
	c.pay(s)
	c.Seen = len(sh.order)
	c.Lines = len(c.owe) + len(c.done) + len(c.paid)
	if c.w > sh.watermark {
		s.Marks = append(s.Marks, engine.Mark{Shard: shard, Fence: sh.fence, W: c.w})
		sh.settling = max(sh.settling, c.w)
		c.Lines++
	}
	return c, true
}

// close closes a shard at its last watermark. mu is held.
func (sh *shard) close(last, now int64) {
	sh.stay, sh.last = closed, last
	for _, t := range sh.order {
		if t.state == Preparing { // no byte was sent, and none will be
			t.await(now)
			t.touch()
		}
		if t.state != Done && t.state != Gone {
			sh.part(t.shared)
		}
	}
}

// HasEnded reports whether calls of closed shards have ended whose end is not stored.
func (m *Memory) HasEnded(of engine.Set) bool {
	for i := range of.All() {
		sh := m.lockShard(i)
		ended := sh.done > 0 || slices.ContainsFunc(sh.order, func(t *Task) bool { return t.row == rowStale && t.state != Gone })
		sh.mu.Unlock()
		if ended {
			return true
		}
	}
	return false
}

// Leave takes closed shards out of memory. What still runs there is nobody's: its end changes
// nothing. unclean are those where the watermark has not passed all that began. ended are, by shard, the
// tasks of calls that ended since the last settle: their rows say that the calls run, as those of Ended.Left.
func (m *Memory) Leave(of engine.Set) (unclean engine.Set, ended [][]*engine.Task) {
	for i := range of.All() {
		clean, ts := m.leaveShard(i)
		if !clean {
			unclean = unclean.Union(engine.SetOf(i))
		}
		if len(ts) > 0 {
			ended = append(ended, ts)
		}
	}
	changeSet(&m.held, func(s engine.Set) engine.Set { return s.Without(of) })
	return unclean, ended
}

func (m *Memory) leaveShard(shard int) (clean bool, ended []*engine.Task) {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	clean = sh.lastBegun() <= sh.last
	for _, t := range sh.order {
		if t.state == Done && t.row != noRow || t.state == Retrying && t.row == rowStale {
			x := t.Task
			ended = append(ended, &x)
		}
		switch t.state {
		case Gone:
		case Done:
			sh.tasks.remove(t)
			t.move(Gone)
		default:
			m.forget(sh, t)
		}
	}
	for _, lv := range sh.timers {
		m.unschedule(lv)
		m.Bodies.leave(lv)
	}
	clear(sh.timers)
	clear(sh.decided)
	sh.leaps = nil
	clear(sh.removed)
	clear(sh.changed)
	clear(sh.aside)
	clear(sh.shared)
	sh.order, sh.done, sh.doneBytes, sh.latest, sh.paid, sh.tasks = nil, 0, 0, 0, nil, Index{}
	sh.stay = away
	close(sh.left)
	return clean, ended
}

// MayRepeat is up to when the dues of a shard may have been begun by a former life of any
// node, as far as they are owed; 0: none may.
func (m *Memory) MayRepeat(shard int) int64 {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	return sh.repeats
}

// RepeatsNone notes that nothing that is owed of a shard may have been begun by a former life.
func (m *Memory) RepeatsNone(shard int) {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	sh.repeats = 0
}

// whenLeft is closed when a shard has left memory; nil: it is here, and is to stay. mu is held.
func (sh *shard) whenLeft() <-chan struct{} {
	switch sh.stay {
	case here:
		return nil
	case away:
		return leftLong
	}
	return sh.left
}

// leftLong is of a shard that is not in memory.
var leftLong = func() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()
