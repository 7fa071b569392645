package quota

import (
	"sync"

	"xtimer/engine"
)

// Size is so many timers, and the bytes of their payloads.
type Size struct{ Timers, Bytes int64 }

func (a Size) plus(b Size) Size  { return Size{a.Timers + b.Timers, a.Bytes + b.Bytes} }
func (a Size) minus(b Size) Size { return Size{a.Timers - b.Timers, a.Bytes - b.Bytes} }

// growth is what is more in b than in a.
func (a Size) growth(b Size) Size {
	return Size{max(0, b.Timers-a.Timers), max(0, b.Bytes-a.Bytes)}
}

// stock is what an app has: its timers that stand and have a due to come, or are disabled. A
// timer with a last due is in it up to the end of the minute of that due.
type stock struct {
	mu   sync.Mutex
	is   bool           // else it has to be counted
	of   *engine.Set    // the shards whose timers are counted: another node may have changed the timers of shards that were away
	sum  Size           // with the room that changes under way have taken
	ends map[int64]Size // of sum, by the minute of the last due
	past int64          // the timers that ended in minutes before are not in sum
}

const minute = 60_000 // ms

// until is the last minute in which a timer is in the stock of its app: the largest number if
// it has no end, -1 if it is over.
func until(t *engine.Timer) int64 {
	switch {
	case t == nil || t.Status == engine.Finished:
		return -1
	case t.Status == engine.Enabled && t.LastDue != 0:
		return t.LastDue / minute
	}
	return engine.MaxDue
}

// size is what a timer has in the stock; nil: there is no timer. mu is held.
func (s *stock) size(t *engine.Timer) Size {
	if until(t) < s.past {
		return Size{}
	}
	return Size{1, int64(t.Payload())}
}

// add counts a timer. mu is held.
func (s *stock) add(t *engine.Timer) { s.change(t, s.size(t)) }

// remove ceases to count a timer. mu is held.
func (s *stock) remove(t *engine.Timer) { s.change(t, Size{}.minus(s.size(t))) }

func (s *stock) change(t *engine.Timer, by Size) {
	if by == (Size{}) {
		return
	}
	s.sum = s.sum.plus(by)
	if m := until(t); m != engine.MaxDue {
		if s.ends[m] = s.ends[m].plus(by); s.ends[m] == (Size{}) {
			delete(s.ends, m)
		}
	}
}

// pass ceases to count the timers that have ended before now (Unix ms). mu is held.
func (s *stock) pass(now int64) {
	m := now / minute
	if m <= s.past {
		return
	}
	for at := range s.ends {
		if at < m {
			s.sum = s.sum.minus(s.ends[at])
			delete(s.ends, at)
		}
	}
	s.past = m
}

// counted reports whether the stock has the timers of these shards, at an instant (Unix ms). The stock does not have them
// after the clock was set back: one-shots that were over are due again.
func (s *stock) counted(of *engine.Set, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.is && s.of == of && now/minute+1 >= s.past
}

// recount has the stock counted anew, before the next change begins.
func (s *stock) recount() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.is = false
}

// empty begins to count the timers that have not ended before now (Unix ms).
func (s *stock) empty(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum, s.ends, s.past = Size{}, map[int64]Size{}, now/minute
}

// has is what the app has at now (Unix ms).
func (s *stock) has(now int64) Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(now)
	return s.sum
}
