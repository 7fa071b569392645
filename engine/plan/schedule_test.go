package plan

import (
	"errors"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

func TestResolveFaults(t *testing.T) {
	day := int64(86_400_000)
	for _, c := range []struct {
		name, field, code string
		s                 engine.Schedule
	}{
		{"no such day", "schedule.cron", "unsatisfiable_cron", engine.Schedule{Cron: "0 0 30 2 *"}},
		{"no such days", "schedule.cron", "unsatisfiable_cron", engine.Schedule{Cron: "0 0 31 4,6,9,11 *", TimeZone: "America/New_York"}},
		{"ended", "schedule.end_at", "never_due", engine.Schedule{Cron: "@daily", EndAt: planNow - day}},
		{"ends before it starts", "schedule.end_at", "never_due", engine.Schedule{Cron: "@yearly", StartAt: planNow, EndAt: planNow + day}},
		{"interval ended", "schedule.end_at", "never_due", engine.Schedule{Every: time.Hour, EndAt: planNow + 1000}},
		{"too old", "schedule.at", "at_too_old", engine.Schedule{At: planNow - day - 1}},
		{"too short", "schedule.every", "every_too_short", engine.Schedule{Every: time.Millisecond}},
		{"too short, as cron", "schedule.cron", "every_too_short", engine.Schedule{Cron: "@every 1ms"}},
		{"too many runs", "schedule.max_runs", "max_runs_too_large", engine.Schedule{Cron: "@daily", MaxRuns: 1_000_000}},
		{"too many years", "schedule.max_runs", "max_runs_too_large", engine.Schedule{Cron: "@yearly", MaxRuns: 300}},
		{"too late", "schedule", "too_far", engine.Schedule{At: engine.MaxDue, Jitter: time.Hour}},
		{"starts too late", "schedule", "never_due", engine.Schedule{Cron: "@yearly", StartAt: engine.MaxDue}},
		{"zone", "schedule.time_zone", "invalid_time_zone", engine.Schedule{Cron: "@daily", TimeZone: "Local"}},
	} {
		tm := &engine.Timer{Definition: engine.NewDefinition(), CreatedAt: planNow}
		tm.Schedule = c.s
		var f *engine.Fault
		if err := Resolve(tm, nil, planNow); !errors.As(err, &f) || f.Kind != engine.FaultInvalid || f.Code != c.code || f.Fields[0].Field != c.field {
			t.Errorf("%s: %v, want %s of %s", c.name, err, c.code, c.field)
		}
	}
}

// What a cron line may not have is named as it stands there, not byte by byte.
func TestCronCharacter(t *testing.T) {
	if _, err := splitCron("٠ 9 * * *"); err == nil || !strings.Contains(err.Error(), "'٠'") {
		t.Error(err)
	}
}

// What a change keeps, and what it counts anew.
func TestResolveAgain(t *testing.T) {
	later := planNow + 3_600_000
	again := func(s, former engine.Schedule) *engine.Timer {
		prev, _ := resolved(t, 5, former, planNow)
		tm := *prev
		tm.Schedule = s
		if err := Resolve(&tm, prev, later); err != nil {
			t.Fatal(err)
		}
		return &tm
	}
	delay := engine.Schedule{HasDelay: true, Delay: 30 * time.Minute}
	if tm := again(delay, delay); tm.At != planNow+1_800_000 || tm.ValidFrom != later {
		t.Errorf("the same delay: at %d", tm.At)
	}
	if tm := again(engine.Schedule{HasDelay: true, Delay: time.Minute}, delay); tm.At != later+60_000 {
		t.Errorf("another delay: at %d", tm.At)
	}
	every := engine.Schedule{Every: 7 * time.Second}
	if tm := again(every, every); tm.Anchor != planNow {
		t.Errorf("the same interval: anchor %d", tm.Anchor)
	}
	runs := engine.Schedule{Every: time.Minute, MaxRuns: 10} // ten from when it is enabled on
	if tm := again(runs, runs); tm.LastDue != later+600_000 {
		t.Errorf("max_runs: last due %d", tm.LastDue)
	}
	// To enable what is over is no fault, and leaves it over.
	for _, s := range []engine.Schedule{{At: planNow + 5}, {Cron: "@hourly", EndAt: planNow + 3_599_999}, {Every: time.Minute, EndAt: planNow + 60_000}} {
		prev, _ := resolved(t, 5, engine.Schedule{Cron: "@hourly"}, planNow)
		prev.Schedule = s
		tm := *prev
		if err := Resolve(&tm, prev, later); err != nil || tm.LastDue == 0 || tm.LastDue > later {
			t.Errorf("%+v enabled when over: %v, last due %d", s, err, tm.LastDue)
		}
		if p, _ := Of(&tm); p.Count(0, engine.MaxDue) != 0 {
			t.Errorf("%+v enabled when over has dues", s)
		}
	}
}

// MaxRuns is arithmetic for an interval, and bounded work for a calendar.
func TestMaxRunsIsCheap(t *testing.T) {
	for _, c := range []struct {
		s    engine.Schedule
		last string // "": no end before the year 10000
	}{
		{engine.Schedule{Every: 10 * time.Millisecond, MaxRuns: maxRuns}, "2026-06-30T10:46:40.000Z"},
		{engine.Schedule{Every: maxEvery, MaxRuns: maxRuns}, ""},
		{engine.Schedule{Cron: "* * * * * *", MaxRuns: 1_000_000}, "2026-03-18T06:46:40.000Z"},
		{engine.Schedule{Cron: "* * * * * *", MaxRuns: 1_000_000, TimeZone: "America/New_York"}, "2026-03-18T06:46:40.000Z"},
		{engine.Schedule{Cron: "30 2 * * *", MaxRuns: 5000, TimeZone: "America/New_York"}, "2039-11-13T07:30:00.000Z"},
		{engine.Schedule{Cron: "@yearly", MaxRuns: 200, TimeZone: "America/New_York"}, "2226-01-01T05:00:00.000Z"},
		{engine.Schedule{Cron: "@yearly", MaxRuns: 9000, EndAt: planNow + 100_000_000_000}, "2029-01-01T00:00:00.000Z"},
	} {
		start := time.Now()
		tm, _ := resolved(t, 1, c.s, planNow)
		took := time.Since(start)
		if took > 10*time.Second { // of a busy machine
			t.Errorf("%+v took %v", c.s, took)
		}
		if got := engine.FormatInstant(tm.LastDue); got != c.last && (tm.LastDue != 0 || c.last != "") {
			t.Errorf("%+v ends at %s, want %s", c.s, got, c.last)
		}
	}
}
