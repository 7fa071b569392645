package plan_test

import (
	"slices"
	"testing"
	"time"

	"xtimer/bench/checker"
	"xtimer/engine"
	"xtimer/engine/plan"
)

var epoch = time.Date(2026, 11, 20, 16, 59, 30, 0, time.UTC)

// FuzzCalendar: what the service takes, the oracle takes, and they are of one mind
// about when it is due.
func FuzzCalendar(f *testing.F) {
	for i, spec := range []string{
		"* * * * *", "*/7 3-9/2 1,15 * MON-FRI", "0 30 2 * * SUN", "@daily", "5/20 * * * * ?", "0 0 29 FEB 1", "0 0 1-31/2 * 0-6", "9 * 13 * *", "0 0 * * 7",
		"0 9 L * *", "0 9 15W,L-2 * *", "0 9 LW * FRI#2", "0 9 * * 5L,MON#1",
	} {
		f.Add(spec, []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}[i%4], epoch.UnixMilli()+int64(i)*40*86_400_000)
	}
	f.Fuzz(func(t *testing.T, spec, zone string, from int64) {
		from = epoch.UnixMilli() + (from&(1<<40-1))%(3*365*86_400_000)
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, CreatedAt: from}
		x.App, x.Name, x.Callback.URL = "a", "n", "http://h/"
		x.Schedule = engine.Schedule{Cron: spec, TimeZone: zone}
		if plan.Validate(&x.Definition) != nil || plan.Resolve(x, nil, from) != nil {
			return
		}
		p, err := plan.Of(x)
		if err != nil {
			t.Fatal(err)
		}
		to := from + 2*86_400_000 // and a hundred dues at most
		var want []int64
		for due, ok := p.Next(from); ok && due <= to; due, ok = p.Next(due) {
			if want = append(want, due); len(want) == 100 {
				to = due
			}
		}
		oracle := checker.Schedule{Cron: spec, TimeZone: zone}
		if got, err := oracle.Dues(from, from, from, to); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q in %q from %d to %d: the oracle has %v, the service %v, %v", spec, zone, from, to, got, want, err)
		}
	})
}
