package flow

import "time"

// A call that was handed out is then prepared: its body is read, its begin is noted, its target is dialed. Each
// of these may take seconds, of many calls at once: then calls that were handed out at the pace of the rate are
// ready in the same millisecond. So a gate counts each call a second time, in a bucket of the same rate, when
// the first byte leaves.
//
//	Take → prepare → Departs, Depart → the first byte
//
// Calls that are ready too soon wait for their departures. The gate hands out no other call that would wait there
// for longer than Ahead.

// Ahead is for how long a call may be expected to wait for its departure when it is handed out. At 1,000 calls a
// second 100 calls may wait so, and the rate is reached where preparations differ by less.
const Ahead = 100 * time.Millisecond

// Departs is the first instant, not before now, at which the first byte of a call may leave.
func (g *Gate) Departs(now time.Duration) time.Duration {
	if g.departures == nil {
		return now
	}
	return g.departures.next(now)
}

// Depart counts a call whose first byte leaves now, at ≥ Departs. former is for Stay.
func (g *Gate) Depart(now time.Duration) (former time.Duration) {
	l := g.limit
	if l == nil || l.Rate == 0 {
		return 0
	}
	if g.departures == nil {
		g.departures = new(newBucket(l.Rate, l.Per, l.Burst, now))
	}
	return g.departures.take(now)
}

// Stay takes a call back whose first byte did not leave.
func (g *Gate) Stay(former, at time.Duration) {
	if g.departures != nil {
		g.departures.refund(former, at)
	}
}

// Every is the distance at which calls leave that wait for their departures; 0 with a burst: then several leave at once.
func (g *Gate) Every() time.Duration {
	if g.bucket.window != nil {
		return 0
	}
	return g.bucket.every
}

// Ready notes how many calls wait for their departures.
func (g *Gate) Ready(n int) { g.ready = n }

// hands is the first instant, not before now, at which a call can be handed out that is expected to wait no longer than
// Ahead: behind those that are ready, which leave at the mean pace of the rate, with a burst as well.
func (g *Gate) hands(now time.Duration) time.Duration {
	return max(now, g.Departs(now)+time.Duration(g.ready)*g.bucket.every-Ahead)
}
