package scheduler

import (
	"fmt"
	"testing"

	"xtimer/engine"
)

// A record brings a row forward, never back; and of a task that may have been sent since, the
// record of an earlier attempt tells nothing.
func TestRecordFromBeforeARow(t *testing.T) {
	task := func(status engine.TaskStatus, base, last int) *engine.Task {
		x := &engine.Task{Status: status, Base: base}
		for n := 1; n <= last; n++ {
			x.Attempts = append(x.Attempts, engine.Attempt{N: n})
		}
		return x
	}
	for _, c := range []struct {
		record *engine.Task
		row    engine.Owed
		former bool
	}{
		{task(engine.Retrying, 0, 1), engine.Owed{}, false},
		{task(engine.Retrying, 0, 2), engine.Owed{Task: task(engine.Retrying, 0, 1)}, false},
		{task(engine.Retrying, 0, 2), engine.Owed{Task: task(engine.Retrying, 0, 2)}, false},
		{task(engine.Retrying, 0, 1), engine.Owed{Task: task(engine.Retrying, 0, 2)}, true},
		{task(engine.Succeeded, 0, 1), engine.Owed{Begun: true}, false},
		{task(engine.Retrying, 0, 1), engine.Owed{Begun: true}, false},
		{task(engine.Retrying, 0, 1), engine.Owed{Begun: true, Task: task(engine.Retrying, 0, 1)}, true},
		{task(engine.Retrying, 0, 2), engine.Owed{Begun: true, Task: task(engine.Retrying, 0, 1)}, false},
		{task(engine.Dead, 0, 2), engine.Owed{Task: task(engine.Waiting, 2, 2)}, true},
		{task(engine.Succeeded, 2, 3), engine.Owed{Task: task(engine.Waiting, 2, 2)}, false},
	} {
		if got := precedes(c.record, &c.row); got != c.former {
			t.Errorf("%v after attempt %d beside %s: %v", c.record.Status, c.record.LastAttempt(), fmt.Sprintf("%+v", c.row), got)
		}
	}
}

// The watermark has passed a due whose end the journal has: the due may be decided, unless a range is left.
func TestEndThatTheWatermarkPassed(t *testing.T) {
	r := recovery{ranges: map[engine.TimerID][]engine.Owed{1: {{Key: engine.Key{Timer: 1, Due: 40}, To: 60}}}}
	for _, c := range []struct {
		timer  engine.TimerID
		due    int64
		status engine.TaskStatus
		calls  int
		passed bool
	}{
		{1, 80, engine.Skipped, 0, true},
		{1, 100, engine.Missed, 0, true},
		{1, 101, engine.Skipped, 0, false},
		{1, 80, engine.Dead, 1, true},
		{1, 101, engine.Dead, 1, false},
		{1, 80, engine.Retrying, 0, false},
		{1, 40, engine.Skipped, 0, false},
		{1, 60, engine.Skipped, 0, false},
		{2, 50, engine.Skipped, 0, true},
	} {
		x := &engine.Task{Key: engine.Key{Timer: c.timer, Due: c.due}, Status: c.status, Attempts: make([]engine.Attempt, c.calls)}
		if got := r.isPassed(x, 100); got != c.passed {
			t.Errorf("%v of timer %d at %d after %d calls: %v", c.status, c.timer, c.due, c.calls, got)
		}
	}
}
