package policy

import (
	"cmp"
	"slices"

	"xtimer/engine"
)

// Ending is how a generation of a timer ended: it was replaced, disabled, enabled anew
// or deleted, and its dues that wait are cancelled.
type Ending struct {
	Former *engine.Timer // the generation's last version; nil if none of the timer is kept
	Reason string
	At     int64 // Unix ms
	UpTo   int64 // which of its dues had come then
	Taken  Spans // dues of later generations, see TakenBy
}

// TakenBy are the dues of a generation that a former generation may have had too: a one-shot may be due at a past
// instant. The record of the one-shot's task will have that key, so no record of several dues may have the key.
func TakenBy(t *engine.Timer) Spans {
	if t == nil || !t.Schedule.OneShot() {
		return nil
	}
	return Spans{{t.LastDue, t.LastDue}}
}

// EndingOf finds out how a generation ended; over is false while it is in force.
func EndingOf(l *engine.Life, generation uint32) (end Ending, over bool) {
	for _, v := range l.Versions {
		if v.Generation <= generation {
			end.Former = v
			continue
		}
		end.Taken = append(end.Taken, TakenBy(v)...)
		if over {
			continue
		}
		end.Former = cmp.Or(end.Former, v)
		over, end.Reason, end.At, end.UpTo = true, ReasonOf(end.Former, v), v.UpdatedAt, v.UpdatedAt
		if v.Status == engine.Disabled { // after the clock was set back it is updated later
			end.UpTo = v.ValidFrom
		}
	}
	if over {
		end.Taken = end.Taken.Ordered()
		return end, true
	}
	end.Reason, end.At, end.UpTo = engine.ReasonDeleted, l.Deleted, l.Deleted
	return end, l.Deleted != 0
}

// ReasonOf says why what waits of a former definition is cancelled; now is the one that
// stands, nil for none.
func ReasonOf(former, now *engine.Timer) string {
	switch {
	case now == nil:
		return engine.ReasonDeleted
	case now.Status == engine.Disabled || former != nil && now.Reason != former.Reason:
		return engine.ReasonDisabled
	}
	return engine.ReasonReplaced
}

// Cancelled is the record of a row of the generation that waits for a single due.
func (end *Ending) Cancelled(o *engine.Owed) *engine.Task {
	t := &engine.Task{}
	if o.Task != nil {
		*t = *o.Task
	} else {
		t.Key, t.Generation, t.Origin, t.Since, t.Lateness = o.Key, o.Generation, o.Origin, o.Key.Due, -1
	}
	if end.Former != nil {
		t.App, t.Name = end.Former.App, end.Former.Name
	}
	t.Status, t.Reason, t.Ended, t.NotBefore = engine.Cancelled, end.Reason, end.At, 0
	if o.Begun {
		if PerhapsSent(t); end.Former != nil && end.Former.Delivery == engine.AtMostOnce {
			t.Status, t.Reason = engine.Unknown, engine.ReasonMayHaveBeen
		}
	}
	return t
}

// PerhapsSent adds to a record the attempt that was begun before a crash. Nobody knows
// when it began: the record has the first instant at which it can have.
func PerhapsSent(t *engine.Task) {
	began := t.Key.Due * 1000
	if n := len(t.Attempts); n > 0 {
		last := &t.Attempts[n-1]
		began = max(began, last.Started+last.Took.Microseconds())
	}
	t.Attempts = append(slices.Clip(t.Attempts), engine.Attempt{
		N: t.LastAttempt() + 1, Started: began, ErrorClass: engine.ReasonCrashed,
	})
}

// IsUsed reports whether the key of a record may have been sent, or was given to a client.
func IsUsed(t *engine.Task) bool {
	switch t.Status {
	case engine.Waiting, engine.Skipped, engine.Missed, engine.Cancelled:
		return len(t.Attempts) > 0 || t.Origin != engine.FromSchedule
	}
	return true
}

// Ends reports whether a record ends its due for a generation of the timer; 0: for all.
// A record of a former generation that was not called leaves the due to the next one.
func Ends(t *engine.Task, generation uint32) bool {
	return t.Status.Final() &&
		(generation == 0 || IsUsed(t) || t.Generation == generation && t.Reason != engine.ReasonClockReset)
}
