package policy

import (
	"xtimer/engine"
	"xtimer/engine/plan"
)

// Arrival is a timer that comes from another store, where its dues were finished up
// to FinishedTo, into a shard whose watermark is Watermark. A timer has no watermark
// of its own, so the difference becomes part of the timer (see engine/doc.go, "What is
// true, and where"):
//
//	Watermark = FinishedTo   nothing changes
//	Watermark < FinishedTo   the dues in (Watermark, FinishedTo] are finished: ValidFrom
//	                         becomes FinishedTo
//	Watermark > FinishedTo   the dues in (FinishedTo, Watermark] are not finished, and
//	                         the plan does not derive them: they are decided as a start
//	                         decides misfires
//
// FinishedTo is 0 for a timer that is new.
type Arrival struct {
	FinishedTo, Watermark, Now int64
}

// Fit completes the change that creates the timer.
func (a Arrival) Fit(c *engine.Change) error {
	t := c.Timer
	if t.Status != engine.Enabled {
		return nil
	}
	if a.FinishedTo == 0 && t.Schedule.OneShot() && t.LastDue <= max(t.ValidFrom, a.Watermark) {
		c.Owe = append(c.Owe, Row(t, t.LastDue)) // a new timer whose instant is past is due
		return nil
	}
	from := max(t.ValidFrom, a.FinishedTo)
	if a.Watermark < a.FinishedTo {
		t.ValidFrom = from
	}
	p, err := plan.Of(t)
	if err != nil {
		return err
	}
	d := Triage{Now: a.Now}
	d.Decide(t, &p, Spans(nil).Open(&p, from, min(a.Watermark, a.Now)))
	d.Call(t, &p, max(from, a.Now)+1, a.Watermark) // the clock of this machine is behind
	c.Owe, c.Tasks = append(c.Owe, d.Owe...), append(c.Tasks, d.Records...)
	return nil
}

// Finished returns the first and the last due of the timer that is in the history,
// which begins at since, and was finished before the timer arrived: its record is in
// the other store. ok is false if there is none.
func (a Arrival) Finished(t *engine.Timer, since int64) (first, last int64, ok bool, err error) {
	if a.FinishedTo == 0 || t.Status == engine.Disabled {
		return 0, 0, false, nil
	}
	p, err := plan.Of(t)
	if err != nil {
		return 0, 0, false, err
	}
	// The watermark is far ahead where the clock was wrong for a while.
	to := min(a.FinishedTo, a.Now+(a.Now-since))
	first, last = t.LastDue, t.LastDue // of a one-shot, which may be due before ValidFrom
	if !p.OneShot() {
		first, _ = p.Next(max(t.ValidFrom, since-1))
		last, _ = p.Prev(to)
	}
	return first, last, since <= first && first <= last && last <= to, nil
}
