package flow

import "time"

// IsSlow reports whether calls of a limit count for longer than a start waits, or a new owner of the
// key: what was granted is stored, so that the rate also holds across both.
func (l *Limit) IsSlow() bool { return l != nil && l.Rate > 0 && l.Per > LongestStart }

// Kept is what is stored of the bucket of a slow limit. Instants are Unix ms.
type Kept struct {
	// The limit: a bucket of another one says nothing.
	Rate  int           `json:"rate"`
	Per   time.Duration `json:"per"`
	Burst int           `json:"burst"`
	// Due is the instant of the next call, without credit.
	Due int64 `json:"due"`
	// Calls of a limit with a burst: pairs of an instant and how many were made then at the latest.
	Calls [][2]int64 `json:"calls,omitempty"`
}

// Keep is what to store at an instant, which is not later than at (Unix ms) by the clock of all
// owners. It rounds up.
func (s *Slots) Keep(now time.Duration, at int64) Kept {
	wall := func(t time.Duration) int64 { return at + int64((t-now+time.Millisecond-1)/time.Millisecond) }
	k := Kept{Rate: s.limit.Rate, Per: s.limit.Per, Burst: s.limit.Burst, Due: wall(s.bucket.due)}
	if w := s.bucket.window; w != nil {
		w.advance(now)
		for n := w.newest - windowSlots - 1; n <= w.newest; n++ {
			if c := *w.of(n); c > 0 {
				k.Calls = append(k.Calls, [2]int64{wall(w.until(n) - w.per), int64(c)})
			}
		}
	}
	return k
}

// Restore has what was kept count, if it is of the limit in force: at an instant, which is not
// earlier than at by the clock of all owners. No call was granted for later than Lookahead from
// now, so a clock that was set back makes none count for longer than it could.
func (s *Slots) Restore(k Kept, now time.Duration, at int64) {
	if k.Rate != s.limit.Rate || k.Per != s.limit.Per || k.Burst != s.limit.Burst {
		return
	}
	instant := func(ms int64) time.Duration { return now + time.Duration(ms-at)*time.Millisecond }
	s.bucket.due = max(s.bucket.due, min(instant(k.Due), now+Lookahead+s.bucket.credit+s.bucket.every))
	if w := s.bucket.window; w != nil {
		for _, c := range k.Calls {
			w.addAt(min(instant(c[0]), now+Lookahead), uint32(c[1]))
		}
	}
}

// addAt counts calls that were made at an instant, if they still count.
func (w *window) addAt(at time.Duration, calls uint32) {
	n := w.number(at)
	if n > w.newest {
		w.advance(at)
	}
	if n > w.newest-windowSlots-2 && n >= 0 {
		*w.of(n) += calls
		w.sum += int(calls)
	}
}
