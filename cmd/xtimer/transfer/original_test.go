package transfer

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/timer"
	"xtimer/tier/mysql"
)

// TestOriginalTimes: each expression is due when the original would have called.
func TestOriginalTimes(t *testing.T) {
	for _, c := range []struct{ cron, from, want string }{
		{"30 * * * * * *", "2026-11-21 10:00", "2026-11-21 10:00:30, 2026-11-21 10:01:30"},
		{"*/15 0 9 ? * MON-FRI *", "2026-11-21 10:00", "2026-11-23 09:00:00, 2026-11-23 09:00:15"},
		{"0 30 9 * * Monday *", "2026-11-21 10:00", "2026-11-23 09:30:00, 2026-11-30 09:30:00"},
		{"0 0 0 1 January * *", "2026-11-21 10:00", "2027-01-01 00:00:00, 2028-01-01 00:00:00"},
		{"0 0 0 */1 * FRI *", "2026-11-21 10:00", "2026-11-22 00:00:00, 2026-11-23 00:00:00"}, // either day, so every day
		{"0 0 0 */10 * FRI *", "2026-11-21 10:00", "2026-11-27 00:00:00, 2026-12-01 00:00:00"},
		{"38 56 17 20 11 * 2028", "2026-11-21 10:00", "2028-11-20 17:56:38"},
		{"0 0 0 1 1 * 2027-2028", "2026-11-21 10:00", "2027-01-01 00:00:00, 2028-01-01 00:00:00"},
		{"59 59 23 31 12 * 2026", "2026-11-21 10:00", "2026-12-31 23:59:59"},
		{"0 12 * * * *", "2026-11-21 10:00", "2026-11-21 12:00:00, 2026-11-22 12:00:00"}, // 6 fields: no second
		{"0 12 * * * 2027", "2026-11-21 10:00", "2027-01-01 12:00:00, 2027-01-02 12:00:00"},
		{"0 12 * * *", "2026-11-21 10:00", "2026-11-21 12:00:00, 2026-11-22 12:00:00"},
		{"@hourly", "2026-11-21 10:00", "2026-11-21 11:00:00, 2026-11-21 12:00:00"},
	} {
		items := originalOf(t, c.cron)
		if len(items) != 1 || !items[0].isWaiting() {
			t.Errorf("%s: %d items, %s", c.cron, len(items), items[0].why)
			continue
		}
		if got := dues(t, items[0], 2, c.from); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.cron, got, c.want)
		}
	}
}

func originalOf(t *testing.T, cron string) []*item {
	t.Helper()
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	row := mysql.OriginalRow{ID: 7, App: "a", Name: "n", Status: originalEnabled, Cron: cron, NotifyHTTPParam: `{"method":"POST","url":"http://h/"}`}
	return originalItems(&row, shanghai, time.Date(2026, 11, 21, 10, 0, 0, 0, shanghai))
}

// TestOriginalYears: years with holes are several timers, in names that stay.
func TestOriginalYears(t *testing.T) {
	for _, c := range []struct{ cron, want string }{
		{"0 0 0 1 1 * 2020-2025", "n skipped"},
		{"0 0 0 1 1 * 2025", "n skipped"},
		{"0 0 0 1 1 * 2025,2026", "n 2025-2027"},
		{"0 0 0 1 1 * 2025,2027-2028,2030", "n-2025 skipped; n-2027 2027-2029; n-2030 2030-2031"},
		{"0 0 0 1 1 * 2027/40", "n-2027 2027-2028; n-2067 2067-2068"},
		{"0 0 0 1 1 * 1970-2099", "n 1970-2100"},
		{"0 0 0 1 1 * 2027/9223372036854775807", "n 2027-2028"},
		{"0 0 0 1 1 * */2", "n failed"},
		{"0 0 0 1 1 * 2030-2027", "n failed"},
		{"0 0 0 1 1 * 1960", "n failed"},
		{"0 0 0 1 1 * x", "n failed"},
		{"0 0 0 1 1 *  2027 9", "n failed"},
		{"0 0", "n failed"},
		{"@every 1s", "n failed"}, // the original never called it
	} {
		var got []string
		for _, i := range originalOf(t, c.cron) {
			s := i.Name + " " + i.result
			if i.isWaiting() {
				first, after := i.Schedule.StartAt, i.Schedule.EndAt.Add(time.Millisecond)
				if !strings.HasSuffix(first.Format(time.DateTime)+after.Format(time.DateTime), "-01-01 00:00:00") {
					t.Errorf("%s: from %v to %v", c.cron, first, after)
				}
				s += first.Format("2006-") + after.Format("2006")
			} else if i.why == "" {
				t.Errorf("%s: no reason", c.cron)
			}
			got = append(got, s)
		}
		if g := strings.Join(got, "; "); g != c.want {
			t.Errorf("%s: got %s, want %s", c.cron, g, c.want)
		}
	}
}

func TestOriginalCallback(t *testing.T) {
	c, err := originalCallback(`{"method":"post","url":"http://h/","header":{"X-A":"1"},"body":"{\"a\": 1}"}`)
	if err != nil || c.Method != "POST" || c.URL != "http://h/" || c.Headers["X-A"] != "1" || *c.BodyText != `{"a": 1}` {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = originalCallback(`{"method":"GET","url":"http://h/"}`); err != nil || c.BodyText != nil {
		t.Errorf("got %+v, %v", c, err)
	}
	for _, bad := range []string{"", "{", `{"method":"GET","url":"http://h/","body":"x"}`, `{"header":{"a":1}}`} {
		if _, err := originalCallback(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	row := mysql.OriginalRow{ID: 9, App: "a", Name: "n", Status: 3}
	for status, want := range map[int]string{0: timer.ResultFailed, 3: timer.ResultFailed, originalDisabled: ""} {
		row.Status, row.Cron, row.NotifyHTTPParam = status, "* * * * * * *", `{"url":"http://h/"}`
		i := originalItems(&row, time.UTC, time.Now())[0]
		if i.result != want || want == "" && !i.isDisabled(time.Now().UnixMilli()) {
			t.Errorf("status %d: %q %+v", status, i.result, i.Stored)
		}
	}
	row.Deleted = true
	if i := originalItems(&row, time.UTC, time.Now())[0]; i.result != resultSkipped {
		t.Errorf("deleted: %+v", i)
	}
}
