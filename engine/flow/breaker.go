package flow

import "time"

// breaker is how the last outcomes of a key were, and what follows from that.
//
//	closed ── Share of Of bad ──► open ── Open has passed ──► one call is tried ── good ──► closed
//	                               ▲                                 │
//	                               └────── bad: twice as long ───────┘
type breaker struct {
	of       int
	outcomes []outcome // the last of so many, a ring; 100,000 keys may have a breaker, most of them with few calls
	next     int
	until    time.Duration // it is open until then; 0: it is closed
	open     time.Duration // for how long it was opened last
	trying   bool          // a call is being tried
}

type outcome struct {
	at  time.Duration
	bad bool
}

// ask reports whether a call may be made, and if not, when to ask again.
func (b *breaker) ask(now time.Duration) (at time.Duration, ok bool) {
	switch {
	case b == nil || b.until == 0:
		return now, true
	case now < b.until:
		return b.until, false
	case b.trying:
		return Never, false
	}
	return now, true
}

// breakerKept is for how long a breaker that is not closed is remembered while no call is tried.
const breakerKept = 24 * time.Hour

// isIdle reports whether the breaker knows nothing that a new one would not, or nothing that is still of use.
func (b *breaker) isIdle(now time.Duration) bool {
	return b == nil || b.until == 0 || !b.trying && now-b.until >= breakerKept
}

// holds reports whether the breaker lets no call through: its time is not over, or a call is being tried.
func (b *breaker) holds(now time.Duration) bool { return b != nil && (now < b.until || b.trying) }

// take notes that a call is handed out.
func (b *breaker) take() (trial bool) {
	if b == nil || b.until == 0 {
		return false
	}
	b.trying = true
	return true
}

// give takes the outcome of a call. trial is what take said of it.
func (b *breaker) give(l *Breaker, trial bool, made, bad bool, now time.Duration) {
	switch {
	case b == nil:
	case trial:
		b.trying = false
		if !made {
			return // the next one is tried
		}
		if !bad {
			b.until, b.open, b.outcomes, b.next = 0, 0, b.outcomes[:0], 0
			return
		}
		b.opens(l, min(2*b.open, max(l.MaxOpen, l.Open)), now)
	case made && b.until == 0:
		if len(b.outcomes) < l.Of {
			b.outcomes = append(b.outcomes, outcome{now, bad})
		} else {
			b.outcomes[b.next] = outcome{now, bad}
			b.next = (b.next + 1) % l.Of
		}
		if bad && len(b.outcomes) == l.Of && b.isBad(l, now) {
			b.opens(l, l.Open, now)
		}
	}
}

func (b *breaker) isBad(l *Breaker, now time.Duration) bool {
	n := 0
	for _, o := range b.outcomes {
		if now-o.at > l.Within {
			return false
		}
		if o.bad {
			n++
		}
	}
	return float64(n) >= l.Share*float64(l.Of)
}

func (b *breaker) opens(l *Breaker, open, now time.Duration) {
	b.open = max(open, l.Open)
	b.until = now + b.open
	b.outcomes, b.next = b.outcomes[:0], 0
}
