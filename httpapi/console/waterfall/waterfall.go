// Package waterfall lays the attempts of a task, and the phases of an attempt, out in time.
package waterfall

import (
	"fmt"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

// Bar is one attempt on the time axis from the due to the end of the task, in
// per cent.
type Bar struct {
	client.Attempt
	After     float64 // ms from the due to its start
	WaitX, W  float64 // the wait before it: where it begins, how wide
	CallX, CW float64 // the call
	Label     string
	Bad       bool
	Phases    []Phase
}

// Bars lays the attempts of a task out in time.
func Bars(t *client.Task) []Bar {
	if len(t.Attempts) == 0 {
		return nil
	}
	last := t.Attempts[len(t.Attempts)-1]
	span := max(float64(last.Started.Sub(t.Due))/1e6+last.TookMS, 0.001)
	if t.LatenessMS != nil && len(t.Attempts) == 1 {
		span = max(*t.LatenessMS+last.TookMS, 0.001)
	}
	bars := make([]Bar, len(t.Attempts))
	before := 0.0
	for i, a := range t.Attempts {
		after := float64(a.Started.Sub(t.Due)) / 1e6
		if i == 0 && t.LatenessMS != nil {
			after = *t.LatenessMS // exact to the µs
		}
		after = max(after, 0)
		b := Bar{Attempt: a, After: after, Bad: a.ErrorClass != ""}
		b.WaitX, b.W = percent(before, span), percent(max(after-before, 0), span)
		b.CallX, b.CW = percent(after, span), max(percent(a.TookMS, span), 0.4)
		b.CallX = min(b.CallX, 100-b.CW)
		switch {
		case a.ErrorClass == "status" || a.ErrorClass == "":
			b.Label = fmt.Sprint(a.Code)
		default:
			b.Label = a.ErrorClass
		}
		bars[i] = b
		before = after + a.TookMS
	}
	return bars
}

func percent(x, of float64) float64 { return min(100, float64(int(x/of*10000))/100) }

// Phase is one stretch of an attempt on the attempt's own time axis, in per cent.
type Phase struct {
	Name string
	US   int64
	X, W float64
	Wait bool // nothing of the call has begun
	Kept bool // the connection was there already
}

// Phases lays an attempt out by where its time went. What took none is left out,
// except for those that people look for: the waits, and whether the connection was new.
func Phases(v words.Language, p *client.Phases) []Phase {
	if p == nil {
		return nil
	}
	all := []Phase{
		{Name: v.T("In the wheel"), US: p.Wheel, Wait: true},
		{Name: v.T("Held"), US: p.Hold},
		{Name: v.T("In the queue"), US: p.Queue, Wait: true},
		{Name: v.T("Connecting"), US: p.Dial, Kept: p.Dial == 0 && p.Send > 0},
		{Name: v.T("TLS handshake"), US: p.TLS},
		{Name: v.T("Sending"), US: p.Send},
		{Name: v.T("Waiting for the first byte"), US: p.FirstByte},
		{Name: v.T("Reading the response"), US: p.Read},
	}
	var total, before int64
	for _, x := range all {
		total += x.US
	}
	if total == 0 {
		return nil
	}
	shown := all[:0]
	for _, x := range all {
		if x.US == 0 && !x.Wait && !x.Kept {
			continue
		}
		if x.US > 0 {
			x.W = max(percent(float64(x.US), float64(total)), 0.4)
			x.X = min(percent(float64(before), float64(total)), 100-x.W)
		}
		before += x.US
		shown = append(shown, x)
	}
	return shown
}

// Own is the lateness of a task in ms without the time for which its first attempt was held;
// nil: it was not held, or was not sent.
func Own(t *client.Task) *float64 {
	if t.LatenessMS == nil || len(t.Attempts) == 0 {
		return nil
	}
	first := &t.Attempts[0]
	if first.N != 1 || first.PhasesUS == nil || first.PhasesUS.Hold == 0 {
		return nil
	}
	own := max(0, *t.LatenessMS-float64(first.PhasesUS.Hold)/1000)
	return &own
}
