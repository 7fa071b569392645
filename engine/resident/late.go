package resident

import (
	"sync"

	"xtimer/engine"
)

// LateTimers are those of which dues have come that the wheel is not to go through one by
// one (Timer.Late): the clock was set forward, or the timer falls behind. What becomes of all of them up to an instant is one
// decision, whose cost goes with what is called or recorded. It is made off the wheel's
// goroutine, for it is committed before the first of them is sent, and each timer keeps
// the watermark back until then.
type LateTimers struct {
	Mu      sync.Mutex
	List    []LateTimer
	Waiting int // in the list, or being decided
	More    chan struct{}
}

type LateTimer struct {
	ID         engine.TimerID
	generation uint32
	Due        int64
	Pin        *Pin
	// at is when the clock had been set (Unix ms): by that it is judged, however late
	// it is found for another reason, and however often its commit is tried: one that
	// seemed to fail may have been made.
	At int64
	// behind: no step of the clock made it late, so all of it is called: its dues become
	// a range without end; see engine/scheduler/unfold.go.
	Behind bool
	GoesOn bool // it has dues that are not decided
}

// AddLate leaves a timer that is behind from a due on to run. Never blocks. Mu of its shard
// is held.
func (m *Memory) AddLate(lv *Timer, due, at int64, behind bool) {
	l := &m.Late
	lv.Next, lv.Late = 0, true
	// The decision begins at the watermark as it is now: dues from there on may be
	// admitted while the timer waits for it, and are left to it.
	from, sh := due-1, m.ShardOf(lv.Def.ID)
	if due > sh.Watermark {
		from = min(from, max(sh.Watermark, sh.Decided[lv.Def.ID]))
	}
	h := m.Pins.Pin(from)
	l.Mu.Lock()
	l.List = append(l.List, LateTimer{ID: lv.Def.ID, generation: lv.Def.Generation, Due: due, Pin: h, At: at, Behind: behind})
	if !behind {
		l.Waiting++
	}
	l.Mu.Unlock()
	l.Poke()
}

// Of is the timer, while it is as it was when it was added: a change says itself what
// becomes of what was late before it, and a later generation is late by an entry of
// its own. The Mu of its shard is held.
func (m *LateTimer) Of(sh *Shard) *Timer {
	if lv := sh.Timers[m.ID]; lv != nil && lv.Late && lv.Def.Generation == m.generation {
		return lv
	}
	return nil
}

func (l *LateTimers) Poke() {
	select {
	case l.More <- struct{}{}:
	default:
	}
}
