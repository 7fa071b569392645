package verify

import (
	"time"

	"xtimer/engine"
)

// entry is what the rule needs of a record.
type entry struct {
	id        engine.TimerID
	due, last int64 // last > due: a run of count dues
	count     int64
	lateness  time.Duration // of the first attempt, without what held it; 0 without one
	started   int64         // Unix ms: the last attempt; 0 without one
	gen       uint32
	status    engine.TaskStatus
	origin    engine.Origin
	early     bool // an attempt started before the due
	again     bool // an attempt was made after one that the target took
	// stale is how long (ms) after its due a task that was not called ended as stale, −1:
	// it did not.
	stale int64
}

func entryOf(t *engine.Task) entry {
	x := entry{
		id: t.Key.Timer, due: t.Key.Due, last: max(t.Key.Due, t.DueLast), count: max(t.Count, 1),
		gen: t.Generation, status: t.Status, origin: t.Origin, stale: -1,
	}
	if t.Status == engine.Skipped && t.Reason == engine.ReasonStale {
		x.stale = t.Ended - t.Key.Due
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		x.early = x.early || a.Started < t.Key.Due*1000
		x.again = x.again || a.ErrorClass == "" && i+1 < len(t.Attempts)
	}
	if n := len(t.Attempts); n > 0 {
		x.lateness, x.started = max(t.OwnLateness(), 0), t.Attempts[n-1].Started/1000
	}
	return x
}

// run reports whether the record stands for many dues.
func (x *entry) run() bool { return x.last > x.due }

// debt is what the rule needs of a row of owed.
type debt struct {
	id       engine.TimerID
	due, end int64 // end > due: a range
	tried    bool  // an attempt was made, or is under way, or something holds it
}

func debtOf(o *engine.Owed) debt {
	return debt{o.Key.Timer, o.Key.Due, max(o.Key.Due, o.To), o.Begun || o.Held != 0 || o.Task != nil && len(o.Task.Attempts) > 0}
}
