package task

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/golden"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

func someTasks() []api.Task {
	at := time.Date(2026, 11, 20, 17, 0, 0, 250e6, time.UTC)
	return []api.Task{
		{
			Key: "7354_1763658000250", TimerID: "7354", App: "billing", Name: "report", Due: at, Origin: "schedule", Status: api.Succeeded, LatenessMS: new(0.412), Ended: at.Add(time.Second),
			AttemptCount: 3, Attempts: []api.Attempt{{N: 1, Started: at, TookMS: 1.25, Code: 503, Response: "not\nnow"}, {N: 2, Started: at.Add(time.Second), TookMS: 15000, ErrorClass: "timeout"}, {N: 3, Started: at.Add(time.Minute), Code: 200}},
		},
		{Key: "7354_1763658000251", TimerID: "7354", App: "billing", Name: "report", Due: at, DueLast: at.Add(time.Hour), Count: 61, Origin: "schedule", Status: api.Missed, Reason: "misfire", Ended: at},
		{
			Key: "7354_1763658000252", TimerID: "7354", App: "billing", Name: "expire", Due: at, Origin: "manual", Status: api.Retrying, LatenessMS: new(12.0), NextAttempt: at.Add(time.Minute),
			AttemptCount: 1, Attempts: []api.Attempt{{N: 1, Started: at, TookMS: 0.3, ErrorClass: "refused", PhasesUS: &api.Phases{Wheel: 11900, Queue: 100, Dial: 300}}},
		},
		{
			Key: "7354_1763658000253", TimerID: "7354", App: "billing", Name: "charge", Due: at, Origin: "schedule", Status: api.Waiting, Reason: "flow stripe", NextAttempt: at.Add(time.Minute),
			HeldMS: 1234.567, Holds: []api.Hold{{By: "flow", Name: "stripe", MS: 1234.567}},
		},
	}
}

func TestTables(t *testing.T) {
	f := func(name string, print func(out *strings.Builder) error) {
		t.Helper()
		var out strings.Builder
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/"+name, out.String())
	}
	f("tasks.txt", func(out *strings.Builder) error { return tableTasks(out, someTasks(), "timer", false) })
	f("tasks-wide.txt", func(out *strings.Builder) error { return tableTasks(out, someTasks(), "timer", true) })
	f("task.txt", func(out *strings.Builder) error {
		for _, task := range someTasks() {
			if err := sheetTask(out, &task, "timer"); err != nil {
				return err
			}
			out.WriteString("\n")
		}
		return nil
	})
	f("tail.txt", func(out *strings.Builder) error {
		for _, task := range someTasks() {
			if err := tailTask(&remote.Server{Output: "table", Zone: "timer"}, out, &task); err != nil {
				return err
			}
		}
		return nil
	})
}
