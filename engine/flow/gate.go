package flow

import (
	"math"
	"time"
)

// By is what a call is held by, in the order in which they are asked.
type By uint8

// What a call may be held by.
const (
	ByNone By = iota
	ByPause
	ByQuota
	ByFlow // the rate or the places of a key
	ByCooldown
	ByBreaker
	Causes
)

var byNames = [...]string{"", "pause", "quota", "flow", "cooldown", "breaker"}

func (b By) String() string { return byNames[b] }

// Never is the instant to ask again of a gate that something else has to open: a call
// that ends, or somebody who ends a pause.
const Never = time.Duration(math.MaxInt64)

// Gate is one key as it stands.
type Gate struct {
	limit    *Limit // nil: none
	bucket   Bucket
	breaker  *breaker
	calls    int           // places taken
	opens    time.Duration // after a start: no call before
	paused   time.Duration // no call before; 0: it is not paused
	cooldown time.Duration // likewise
}

// Pass is one call through a gate.
type Pass struct {
	took, former time.Duration
	trial        bool // its outcome says whether the breaker closes
}

// Set puts a limit into force, nil for none.
func (g *Gate) Set(l *Limit, now time.Duration) {
	same := l != nil && g.limit != nil && l.Rate == g.limit.Rate && l.Per == g.limit.Per && l.Burst == g.limit.Burst
	g.limit = l
	if l == nil {
		g.bucket, g.breaker = Bucket{}, nil
		return
	}
	if !same {
		g.bucket = newBucket(l.Rate, l.Per, l.Burst, now)
	}
	switch {
	case l.Breaker.Of == 0:
		g.breaker = nil
	case g.breaker == nil || cap(g.breaker.outcomes) < l.Breaker.Of || len(g.breaker.outcomes) > l.Breaker.Of:
		g.breaker = &breaker{outcomes: make([]outcome, 0, l.Breaker.Of)}
	}
}

// Started has the first call wait after a start, at 0: a former process may have made calls
// until then that nobody knows of.
func (g *Gate) Started() {
	if g.limit != nil && g.limit.Rate > 0 {
		g.opens = min(g.limit.Per, LongestStart)
	}
}

// Limit is the limit in force, nil for none.
func (g *Gate) Limit() *Limit { return g.limit }

// IsIdle reports whether the gate knows nothing that a new one would not.
func (g *Gate) IsIdle(now time.Duration) bool {
	return g.calls == 0 && g.bucket.isFull(now) && g.cooldown <= now && (g.breaker == nil || g.breaker.until == 0)
}

// Ask reports whether a call may be made: by is what holds it, and at when to ask again.
// keeps: the call is of a task that has kept its place.
func (g *Gate) Ask(now time.Duration, keeps bool) (by By, at time.Duration) {
	if now < g.paused {
		return ByPause, g.paused
	}
	l := g.limit
	if l == nil {
		if now < g.cooldown {
			return ByCooldown, g.cooldown
		}
		return ByNone, now
	}
	if now < g.opens {
		return ByFlow, g.opens
	}
	if l.Concurrency > 0 && g.calls >= l.Concurrency && !keeps {
		return ByFlow, Never
	}
	if next := g.bucket.next(now); next > now {
		return ByFlow, next
	}
	if now < g.cooldown {
		return ByCooldown, g.cooldown
	}
	if at, ok := g.breaker.ask(now); !ok {
		return ByBreaker, at
	}
	return ByNone, now
}

// IsOpen reports whether the gate limits nothing.
func (g *Gate) IsOpen(now time.Duration) bool {
	return g.limit == nil && now >= g.paused && now >= g.cooldown
}

// Take hands a call out. keeps: see Ask.
func (g *Gate) Take(now time.Duration, keeps bool) Pass {
	if !keeps {
		g.calls++
	}
	return Pass{took: now, former: g.bucket.take(now), trial: g.breaker.take()}
}

// Ended is how a call ended.
type Ended struct {
	Made bool // it was made
	Bad  bool // it failed, and may be repeated: a 5xx, no answer
	// Close asks that the key be closed for so long; 0: it does not.
	Close time.Duration
	// Keeps: the task has the place until its final status.
	Keeps bool
}

// Give takes back what a call has.
func (g *Gate) Give(p Pass, e Ended, now time.Duration) {
	if !e.Made {
		g.bucket.refund(p.former, p.took)
	}
	l := g.limit
	if l != nil {
		g.breaker.give(&l.Breaker, p.trial, e.Made, e.Bad, now)
		if l.Cooldown && e.Close > 0 {
			g.cooldown = max(g.cooldown, now+min(e.Close, MaxCooldown))
		}
	}
	if !e.Keeps {
		g.calls--
	}
}

// Keeps reports whether a task that a call was handed out of keeps its place.
func (g *Gate) Keeps() bool { return g.limit != nil && g.limit.HoldTask && g.limit.Concurrency > 0 }

// Leave takes a place back that a task has kept until its end.
func (g *Gate) Leave() { g.calls-- }

// Keep has a task keep a place that it had before a start.
func (g *Gate) Keep() { g.calls++ }

// Pause closes the gate until an instant; 0 opens it.
func (g *Gate) Pause(until time.Duration) { g.paused = until }

// Cool closes the gate until an instant; 0 opens it.
func (g *Gate) Cool(until time.Duration) { g.cooldown = until }

// State is how a gate stands.
type State struct {
	InFlight         int
	Paused, Cooldown time.Duration // until when; 0: not
	Breaker          string        // closed, open or trying; "" without one
	By               By            // what the next call is held by
	Next             time.Duration // when it may be made
}

// State describes the gate.
func (g *Gate) State(now time.Duration) (s State) {
	s.By, s.Next = g.Ask(now, false)
	s.InFlight = g.calls
	if g.paused > now {
		s.Paused = g.paused
	}
	if g.cooldown > now {
		s.Cooldown = g.cooldown
	}
	if b := g.breaker; b != nil {
		switch s.Breaker = "closed"; {
		case b.until > now:
			s.Breaker = "open"
		case b.until > 0:
			s.Breaker = "trying"
		}
	}
	return s
}
