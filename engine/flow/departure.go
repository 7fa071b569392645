package flow

import "time"

// A call that was handed out is then prepared: its body is read, its begin is noted, its target is dialed. Each
// of these may take seconds, of many calls at once: then calls that were handed out at the pace of the rate are
// ready in the same millisecond. So a gate counts each call a second time, in a bucket of the same rate, when
// the first byte leaves.
//
//	Take → prepare → Departs, Depart → the first byte
//
// Where calls are ready at the pace of the rate, the second bucket keeps none of them waiting.

// Ahead is for how long a call may wait for its departure. A call that would wait longer is to be taken
// back, and the gate hands out no call meanwhile that would wait so long. At 1,000 calls a second, at most
// 100 wait for their departures.
const Ahead = 100 * time.Millisecond

// Departs is the first instant, not before now, at which the first byte of a call may leave.
func (g *Gate) Departs(now time.Duration) time.Duration {
	if g.departures == nil {
		return now
	}
	return g.departures.next(now)
}

// Depart counts a call whose first byte leaves at ≥ Departs. former is for Stay.
func (g *Gate) Depart(at time.Duration) (former time.Duration) {
	l := g.limit
	if l == nil || l.Rate == 0 {
		return 0
	}
	if g.departures == nil {
		g.departures = new(newBucket(l.Rate, l.Per, l.Burst, at))
	}
	return g.departures.take(at)
}

// Stay takes a call back whose first byte did not leave at its instant.
func (g *Gate) Stay(former, at time.Duration) {
	if g.departures != nil {
		g.departures.refund(former, at)
	}
}
