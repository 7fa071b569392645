package remote

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/golden"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// someTimers are one of each kind, with texts that want to steer the terminal.
func someTimers() []api.Timer {
	at := time.Date(2026, 11, 20, 17, 0, 0, 250e6, time.UTC)
	make := func(name, status string, s api.Schedule) api.Timer {
		t := api.Timer{
			ID: "7354000000000000001", Status: status, Version: 3, CreatedAt: at, UpdatedAt: at.Add(time.Hour), NextDue: at.Add(2 * time.Hour),
			Definition: api.Definition{App: "billing", Name: name, Schedule: s, Callback: api.Callback{URL: "https://orders.example.com/hook"}},
		}
		fill(&t.Definition)
		return t
	}
	cron := make("report", api.Enabled, api.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai", StartAt: at, EndAt: at.Add(time.Hour), MaxRuns: 7, Jitter: 5 * time.Second})
	cron.LastTask = &api.Task{Key: "7354000000000000001_1763658000250", Status: api.Succeeded}
	cron.Labels = map[string]string{"team": "a", "env": "prod"}
	every := make("Grüße \x1b[31m", api.Disabled, api.Schedule{Every: 90 * time.Minute})
	every.Reason, every.DisabledUntil, every.NextDue = "the target\nmoves", at.Add(24*time.Hour), time.Time{}
	delay := make("expire", api.Finished, api.Schedule{Delay: new(30 * time.Minute)})
	delay.NextDue, delay.LastTask = time.Time{}, &api.Task{Key: "7354000000000000001_1763658000250", Status: api.Dead}
	return []api.Timer{cron, every, delay, make("once", api.Enabled, api.Schedule{At: at})}
}

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
	f("timers.txt", func(out *strings.Builder) error { return tableTimers(out, someTimers(), "timer") })
	f("timer.txt", func(out *strings.Builder) error {
		for _, tm := range someTimers()[:2] {
			if err := sheetTimer(out, &tm, "timer"); err != nil {
				return err
			}
			out.WriteString("\n")
		}
		return nil
	})
	f("timers.yaml", func(out *strings.Builder) error { return terminal.WriteYAML(out, someTimers()[:2]) })
	f("tasks.txt", func(out *strings.Builder) error { return tableTasks(out, someTasks(), "timer") })
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
			if err := (&remote{output: "table", zone: "timer"}).tailTask(out, &task); err != nil {
				return err
			}
		}
		return nil
	})
	f("dues.txt", func(out *strings.Builder) error {
		now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
		return listDues(out, []time.Time{now.Add(250 * time.Millisecond), now.Add(26 * time.Hour)}, now, instant)
	})
}

// TestZone: each time has its offset, in the zone that was asked for.
func TestZone(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	for _, x := range []struct{ zone, timer, want string }{
		{"timer", "Asia/Shanghai", "2026-11-20T09:00:00.000+08:00"},
		{"timer", "", "2026-11-20T01:00:00.000Z"},
		{"timer", "Mars/Olympus", "2026-11-20T01:00:00.000Z"},
		{"utc", "Asia/Shanghai", "2026-11-20T01:00:00.000Z"},
		{"local", "Asia/Shanghai", at.Local().Format("2006-01-02T15:04:05.000Z07:00")},
	} {
		if got := zone(x.zone).instant(at, x.timer); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	if zone("mine").check() == nil || zone("local").check() != nil {
		t.Error("the zones that are known")
	}
}
