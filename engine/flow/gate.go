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
	limit      *Limit // nil: none
	bucket     Bucket
	departures *Bucket // nil: none since the limit was set; see departure.go
	ready      int     // calls that wait for their departures
	breaker    *breaker
	broken     time.Duration // since when the breaker is not closed; 0: it is
	brokeFor   time.Duration // how long it was not closed before
	calls      int           // places taken
	opens      time.Duration // after a start: no call before
	paused     time.Duration // no call before; 0: it is not paused
	cooldown   time.Duration // likewise, as the rule says
	closed     time.Duration // likewise, as responses have asked
	hears      time.Duration // from then on counts what the owner of the key has heard of responses
	grants     *Grants       // of the owner of the key, among several nodes; nil: bucket and limit count
}

// Pass is one call through a gate.
type Pass struct {
	took, former time.Duration // of the bucket; of a call that was granted, its instant and for how long it was good
	trial        bool          // its outcome says whether the breaker closes
	granted      bool
	last         uint64 // of a call that was granted, see Run
}

// Set puts a limit into force, nil for none.
func (g *Gate) Set(l *Limit, now time.Duration) {
	defer g.noteBroken(now)
	same := l.hasRateOf(g.limit)
	g.limit = l
	if l == nil || !l.Cooldown {
		g.closed = 0
	}
	if l == nil {
		g.bucket, g.departures, g.breaker, g.grants = Bucket{}, nil, nil, nil
		return
	}
	if !same {
		g.bucket = newBucket(l.Rate, l.Per, l.Burst, now)
		g.departures = nil
		if g.grants != nil {
			g.grants.runs = nil
		}
	}
	switch {
	case l.Breaker.Of == 0:
		g.breaker = nil
	case g.breaker == nil || g.breaker.of != l.Breaker.Of:
		g.breaker = &breaker{of: l.Breaker.Of}
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

// IsIdle reports whether the gate knows nothing that a new one would not, or nothing that is still of use.
func (g *Gate) IsIdle(now time.Duration) bool {
	return g.calls == 0 && g.ready == 0 && g.Holds(now) == 0 && g.bucket.isFull(now) && (g.departures == nil || g.departures.isFull(now)) && max(g.cooldown, g.closed) <= now && g.breaker.isIdle(now)
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
	if l.Concurrency > 0 && g.calls >= g.places() && !keeps {
		return ByFlow, Never
	}
	if next := max(g.next(now, keeps), g.hands(now)); next > now {
		return ByFlow, next
	}
	if until := max(g.cooldown, g.closed); now < until {
		return ByCooldown, until
	}
	if at, ok := g.breaker.ask(now); !ok {
		return ByBreaker, at
	}
	return ByNone, now
}

// IsBroken reports whether the breaker is not closed: it is open, a call is being tried, or the next one will be.
func (g *Gate) IsBroken() bool { return g.breaker != nil && g.breaker.until != 0 }

// BreakerHolds reports whether the breaker lets no call through now: it is open, or a call is being tried.
func (g *Gate) BreakerHolds(now time.Duration) bool { return g.breaker.holds(now) }

// Broken is for how long the breaker was not closed, all times together.
func (g *Gate) Broken(now time.Duration) time.Duration {
	if g.broken == 0 {
		return g.brokeFor
	}
	return g.brokeFor + now - g.broken
}

func (g *Gate) noteBroken(now time.Duration) {
	switch is := g.IsBroken(); {
	case is && g.broken == 0:
		g.broken = max(now, 1)
	case !is && g.broken != 0:
		g.brokeFor, g.broken = g.Broken(now), 0
	}
}

// IsOpen reports whether the gate limits nothing.
func (g *Gate) IsOpen(now time.Duration) bool {
	return g.limit == nil && now >= g.paused && now >= g.cooldown
}

// places is how many calls may be in flight.
func (g *Gate) places() int {
	if g.grants != nil {
		return g.grants.places
	}
	return g.limit.Concurrency
}

// next is when the rate allows the next call.
func (g *Gate) next(now time.Duration, keeps bool) time.Duration {
	if g.takesGrant(keeps) {
		return g.grants.next(now)
	}
	return g.bucket.next(now)
}

// takesGrant reports whether a call is to be one that the owner has granted: it needs to be by
// the rate, or has to have a place. keeps: it has one.
func (g *Gate) takesGrant(keeps bool) bool {
	return g.grants != nil && (g.limit.Rate > 0 || !keeps)
}

// Take hands a call out. keeps: see Ask.
func (g *Gate) Take(now time.Duration, keeps bool) Pass {
	if !keeps {
		g.calls++
	}
	if g.takesGrant(keeps) {
		call := g.grants.take(now)
		return Pass{took: call.At, former: call.For, trial: g.breaker.take(), granted: true, last: call.Last}
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
	switch {
	case e.Made:
	case !p.granted:
		g.bucket.refund(p.former, p.took)
	case g.grants != nil:
		g.grants.back(p.took, p.former, p.last)
	}
	l := g.limit
	if l != nil {
		g.breaker.give(&l.Breaker, p.trial, e.Made, e.Bad, now)
		g.noteBroken(now)
		if l.Cooldown && e.Close > 0 {
			g.closed = max(g.closed, now+min(e.Close, MaxCooldown))
		}
	}
	if !e.Keeps {
		g.Leave()
	}
}

// Keeps reports whether a task that a call was handed out of keeps its place.
func (g *Gate) Keeps() bool { return g.limit != nil && g.limit.HoldTask && g.limit.Concurrency > 0 }

// Leave takes a place back that a task has kept until its end.
func (g *Gate) Leave() {
	g.calls--
	if x := g.grants; x != nil && x.places > g.calls {
		x.places--
	}
}

// Keep has a task keep a place that it had before a start. It reports false if no place is left, as when
// the last call of the task was before the limit was set, or was lowered: then the task waits for one.
func (g *Gate) Keep() bool {
	if g.calls >= g.limit.Concurrency {
		return false
	}
	g.calls++
	if x := g.grants; x != nil {
		x.places = max(x.places, g.calls)
	}
	return true
}

// Pause closes the gate until an instant; 0 opens it.
func (g *Gate) Pause(until time.Duration) { g.paused = until }

// IsPaused reports whether the gate is paused.
func (g *Gate) IsPaused(now time.Duration) bool { return now < g.paused }

// Cool closes the gate until an instant; 0 opens it.
func (g *Gate) Cool(until time.Duration) { g.cooldown = until }

// Open opens a gate that responses have asked to be closed. What the owner of the key says of them does not count
// before all nodes know that.
func (g *Gate) Open(now time.Duration) { g.closed, g.hears = 0, now+2*time.Second }

// Hears is from when on what the owner of the key says counts, see Open.
func (g *Gate) Hears() time.Duration { return g.hears }

// State is how a gate stands.
type State struct {
	InFlight int
	Paused   time.Duration // until when; 0: not
	Closed   time.Duration // until when responses have closed it; 0: not
	Breaker  string        // closed, open or trying; "" without one
	By       By            // what the next call is held by
	Estimate               // when it, and those after it, may be made
}

// State describes the gate.
func (g *Gate) State(now time.Duration) (s State) {
	s.By, _ = g.Ask(now, false)
	s.Estimate = g.Estimate(now)
	s.InFlight = g.calls
	if g.paused > now {
		s.Paused = g.paused
	}
	if g.closed > now {
		s.Closed = g.closed
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
