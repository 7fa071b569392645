package flow

import "time"

// Estimate is when the calls that wait at a gate may be made: one at Next, and one each Every
// after it. Never: nobody knows.
type Estimate struct{ Next, Every time.Duration }

// Estimate is that of the gate, by its rate and by what closes it. When a place becomes free
// is not known before.
func (g *Gate) Estimate(now time.Duration) Estimate {
	by, at := g.Ask(now, false)
	e := Estimate{Next: at}
	switch l := g.limit; {
	case l == nil:
	case l.Rate > 0:
		e.Every = l.Per / time.Duration(l.Rate)
		if at == Never && by == ByFlow && g.grants != nil && l.Concurrency == 0 {
			e.Next = max(now, g.grants.again) // the owner of the key grants a call when it is asked for one
		}
	case l.Concurrency > 0:
		e.Every = Never
	}
	return e
}

// After is when a call may be made that comes after so many others; Never if nobody knows.
func (e Estimate) After(n int) time.Duration {
	switch {
	case n == 0 || e.Every == 0 || e.Next == Never:
		return e.Next
	case e.Every > (Never-e.Next)/time.Duration(n):
		return Never
	}
	return e.Next + time.Duration(n)*e.Every
}
