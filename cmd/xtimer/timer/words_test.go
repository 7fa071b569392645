package timer

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/golden"
	"xtimer/cmd/xtimer/remote"
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
		definition.Fill(&t.Definition)
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

func TestTables(t *testing.T) {
	f := func(name string, print func(out *strings.Builder) error) {
		t.Helper()
		var out strings.Builder
		if err := print(&out); err != nil {
			t.Fatal(err)
		}
		golden.Hold(t, "testdata/"+name, out.String())
	}
	f("timers.txt", func(out *strings.Builder) error { return tableTimers(out, someTimers(), "timer", false) })
	f("timers-wide.txt", func(out *strings.Builder) error { return tableTimers(out, someTimers(), "timer", true) })
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
	f("dues.txt", func(out *strings.Builder) error {
		now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
		return listDues(out, []time.Time{now.Add(250 * time.Millisecond), now.Add(26 * time.Hour)}, now, remote.Instant)
	})
}
