package plan

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

func TestDescribe(t *testing.T) {
	for _, c := range []struct {
		s    engine.Schedule
		want string
	}{
		{engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}, "At 09:00, Monday to Friday, Asia/Shanghai"},
		{engine.Schedule{Cron: "@daily"}, "At 00:00, every day, UTC"},
		{engine.Schedule{Cron: "30 0 9,18 * * *"}, "At 09:00:30 and 18:00:30, every day, UTC"},
		{engine.Schedule{Cron: "*/10 * * * *"}, "Every 10 minutes, UTC"},
		{engine.Schedule{Cron: "* * * * * *"}, "Every second, UTC"},
		{engine.Schedule{Cron: "* * * * *"}, "Every minute, UTC"},
		{engine.Schedule{Cron: "30 * * * * *"}, "At second 30 of every minute, UTC"},
		{engine.Schedule{Cron: "@hourly"}, "At minute 0 of every hour, UTC"},
		{engine.Schedule{Cron: "0 5,35 * * * *"}, "At minutes 5 and 35 of every hour, UTC"},
		{engine.Schedule{Cron: "*/15 9-17 * * 6,7"}, "Every 15 minutes from 09:00 to 17:59, Saturday and Sunday, UTC"},
		{engine.Schedule{Cron: "*/5 9 * * *"}, "Every 5 minutes from 09:00 to 09:59, UTC"},
		{engine.Schedule{Cron: "*/15 0-2,9,22,23 * * *"}, "Every 15 minutes from 00:00 to 02:59, 09:00 to 09:59 and 22:00 to 23:59, UTC"},
		{engine.Schedule{Cron: "7 */2 * 1,6 *"}, "At minute 7 of every 2nd hour from 00 on, in January and June, UTC"},
		{engine.Schedule{Cron: "0 0 13 * FRI"}, "At 00:00, on day 13 of the month, and besides on each Friday, UTC"},
		{engine.Schedule{Cron: "0 0 1,15 * *"}, "At 00:00, on days 1 and 15 of the month, UTC"},
		{engine.Schedule{Every: 250 * time.Millisecond, MaxRuns: 100}, "Every 250 ms, 100 times at most"},
		{engine.Schedule{Cron: "@every 90m"}, "Every 1 hour 30 minutes"},
		{engine.Schedule{At: planNow}, "Once, at 2026-03-06T17:00:00.000Z"},
		{engine.Schedule{HasDelay: true, Delay: 30 * time.Minute, Jitter: 5 * time.Second}, "Once, 30 minutes after it is accepted, spread over up to 5 seconds"},
	} {
		if got := Describe(&c.s); got != c.want {
			t.Errorf("%+v: %q, want %q", c.s, got, c.want)
		}
	}
}

func TestPreview(t *testing.T) {
	for _, c := range []struct {
		s     engine.Schedule
		dues  int
		codes string
	}{
		{engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}, 5, ""},
		{engine.Schedule{Cron: "30 2 * * *", TimeZone: "America/New_York"}, 5, "dst_gap"},
		{engine.Schedule{Cron: "30 1 * * *", TimeZone: "America/New_York"}, 5, "dst_fold"},
		{engine.Schedule{Cron: "0 1,2 * * *", TimeZone: "America/New_York"}, 5, "dst_gap dst_fold"},
		{engine.Schedule{Cron: "30 2 1 1 *", TimeZone: "America/New_York"}, 5, ""},
		{engine.Schedule{Cron: "30 * * * *", TimeZone: "America/New_York"}, 5, ""},
		{engine.Schedule{Cron: "0 */12 * * *", TimeZone: "Asia/Beirut"}, 5, "dst_pause"},
		{engine.Schedule{Cron: "0 */12 * * *", TimeZone: "America/Havana"}, 5, "dst_pause dst_repeat"},
		{engine.Schedule{Cron: "0 */2 * * *", TimeZone: "America/New_York"}, 5, "dst_pause"},
		{engine.Schedule{Cron: "0 */3 * * *", TimeZone: "America/New_York"}, 5, ""},
		{engine.Schedule{Cron: "*/30 * * * *", TimeZone: "America/New_York"}, 5, ""},
		{engine.Schedule{Cron: "*/7 * * * *", TimeZone: "America/New_York"}, 5, ""},
		{engine.Schedule{Every: time.Hour, TimeZone: "America/New_York"}, 5, "time_zone_unused"},
		{engine.Schedule{Cron: "@every 1h", TimeZone: "America/New_York"}, 5, "time_zone_unused"},
		{engine.Schedule{Cron: "* * * * * *"}, 5, "very_dense"},
		{engine.Schedule{Every: 10 * time.Millisecond}, 5, "very_dense"},
		{engine.Schedule{Cron: "0 0 30 2 *"}, 0, "never_fires"},
		{engine.Schedule{Cron: "@daily", EndAt: planNow - 1}, 0, "never_fires"},
		{engine.Schedule{Cron: "@daily", MaxRuns: 3}, 3, "ends_soon"},
		{engine.Schedule{Cron: "0 0 13 * 5"}, 5, "day_or_weekday"},
		{engine.Schedule{Cron: "0 0 29 2 *"}, 5, "leap_day"},
		{engine.Schedule{Cron: "0 0 31 * *"}, 5, "short_months"},
		{engine.Schedule{Cron: "0 0 31 1 *"}, 5, ""},
		{engine.Schedule{At: planNow - 1}, 1, "overdue"},
		{engine.Schedule{At: planNow - 86_400_000}, 1, "overdue"},
		{engine.Schedule{At: planNow - 86_400_001}, 0, "never_fires"}, // a create refuses it
		{engine.Schedule{HasDelay: true, Delay: time.Hour}, 1, ""},
	} {
		v, err := PreviewSchedule(c.s, 5, planNow)
		var codes []string
		for _, w := range v.Warnings {
			codes = append(codes, w.Code)
		}
		if got := strings.Join(codes, " "); err != nil || len(v.Dues) != c.dues || got != c.codes || v.Sentence == "" {
			t.Errorf("%+v: %d dues, %q, %v", c.s, len(v.Dues), got, err)
		}
	}
	for _, c := range []struct {
		n    int
		from int64
	}{{0, planNow}, {1001, planNow}, {1, 0}, {1, -1}, {1, 1 << 62}} {
		var f *engine.Fault
		if _, err := PreviewSchedule(engine.Schedule{Cron: "@daily"}, c.n, c.from); !errors.As(err, &f) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestClauses: the clauses say what the sentence says, and the warnings' fields what
// their details say.
func TestClauses(t *testing.T) {
	for _, c := range []struct {
		s    engine.Schedule
		want []Clause
	}{
		{
			engine.Schedule{Cron: "0 9,18 1 * SUN,MON", TimeZone: "Asia/Shanghai", MaxRuns: 3, Jitter: time.Second},
			[]Clause{
				{Kind: ClauseTimes, Times: []int{9 * 3600, 18 * 3600}},
				{Kind: ClauseDays, Values: []int{1}},
				{Kind: ClauseWeekdays, Values: []int{1, 7}},
				{Kind: ClauseZone, Text: "Asia/Shanghai"},
				{Kind: ClauseAtMost, Count: 3},
				{Kind: ClauseSpread, Length: time.Second},
			},
		},
		{
			engine.Schedule{Cron: "*/15 9-11 * 1 *", StartAt: planNow, EndAt: planNow + 1},
			[]Clause{
				{Kind: ClauseClock, Seconds: Units{Values: []int{0}}, Minutes: Units{Every: 15}, Hours: Units{Values: []int{9, 10, 11}}},
				{Kind: ClauseMonths, Values: []int{1}},
				{Kind: ClauseZone, Text: "UTC"},
				{Kind: ClauseFrom, At: planNow},
				{Kind: ClauseUntil, At: planNow + 1},
			},
		},
		{engine.Schedule{At: planNow, MaxRuns: 1}, []Clause{{Kind: ClauseOnceAt, At: planNow}}},
		{engine.Schedule{HasDelay: true}, []Clause{{Kind: ClauseOnceAfter}}},
		{engine.Schedule{Cron: "@every 90m"}, []Clause{{Kind: ClauseEvery, Length: 90 * time.Minute}}},
	} {
		if got := Clauses(&c.s); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v: %+v, want %+v", c.s, got, c.want)
		}
	}
	for _, c := range []struct {
		s    engine.Schedule
		want Warning
	}{
		{engine.Schedule{Cron: "0 0 30 2 *"}, Warning{Code: "never_fires", Reason: "unsatisfiable_cron"}},
		{engine.Schedule{Cron: "@daily", EndAt: planNow - 1}, Warning{Code: "never_fires", Reason: "never_due", At: planNow - 1}},
		{engine.Schedule{Every: time.Second}, Warning{Code: "very_dense", Count: 86_400}},
		{engine.Schedule{Every: time.Hour, MaxRuns: 2}, Warning{Code: "ends_soon", At: planNow + 7_200_000, Count: 2}},
		{
			engine.Schedule{Cron: "30 2 * * *", TimeZone: "America/New_York"},
			Warning{Code: "dst_gap", At: 1772953200000, Zone: "America/New_York", Before: "2026-03-08 02:00", After: "2026-03-08 03:00"},
		},
	} {
		v, err := PreviewSchedule(c.s, 5, planNow)
		if err != nil || len(v.Warnings) != 1 {
			t.Errorf("%+v: %+v, %v", c.s, v.Warnings, err)
			continue
		}
		got := v.Warnings[0]
		if got.Detail == "" {
			t.Errorf("%+v: no detail", c.s)
		}
		if got.Detail = ""; got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.s, got, c.want)
		}
	}
}
