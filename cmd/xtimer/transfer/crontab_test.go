package transfer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/timer"
	"xtimer/engine/plan"
)

// dues are the first of a schedule after from, by the engine's preview, in the
// zone of the schedule.
func dues(t *testing.T, i *item, n int, from string) string {
	t.Helper()
	d, err := storedDefinition(&i.Definition)
	if err != nil {
		t.Fatalf("%s: %v", i.at, err)
	}
	zone, err := time.LoadLocation(d.Schedule.TimeZone)
	if err != nil {
		t.Fatal(err)
	}
	after, err := time.ParseInLocation("2006-01-02 15:04", from, zone)
	if err != nil {
		t.Fatal(err)
	}
	v, err := plan.PreviewSchedule(d.Schedule, n, after.UnixMilli())
	if err != nil {
		t.Fatalf("%s: %v", i.at, err)
	}
	var s []string
	for _, due := range v.Dues {
		s = append(s, time.UnixMilli(due).In(zone).Format("2006-01-02 15:04:05"))
	}
	return strings.Join(s, ", ")
}

// collect reads all items.
func collect(t *testing.T, read reader) (all []*item) {
	t.Helper()
	if err := read(t.Context(), func(i *item) error { all = append(all, i); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func crontabOf(t *testing.T, c crontabFlags, text string) []*item {
	t.Helper()
	c.file, c.app = "-", "cron"
	if c.url == "" && c.urlMap == "" {
		c.url = "http://run/?c={{urlquery .Command}}"
	}
	read, err := c.reader(strings.NewReader(text), "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return collect(t, read)
}

// TestCrontabTimes: each expression is due when cron would run it. From is
// Saturday, 2026-11-21 10:00 in Berlin.
func TestCrontabTimes(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{"*/20 * * * *", "2026-11-21 10:20:00, 2026-11-21 10:40:00, 2026-11-21 11:00:00"},
		{"5 4 * * sun", "2026-11-22 04:05:00, 2026-11-29 04:05:00, 2026-12-06 04:05:00"},
		{"0 0 1,15 * 3", "2026-11-25 00:00:00, 2026-12-01 00:00:00, 2026-12-02 00:00:00"}, // either day
		{"0 12 * * 7", "2026-11-22 12:00:00, 2026-11-29 12:00:00, 2026-12-06 12:00:00"},
		{"0 12 * jan-feb Mon", "2027-01-04 12:00:00, 2027-01-11 12:00:00, 2027-01-18 12:00:00"},
		{"10-30/10 9-17/4 */10 * *", "2026-11-21 13:10:00, 2026-11-21 13:20:00, 2026-11-21 13:30:00"},
		{"@daily", "2026-11-22 00:00:00, 2026-11-23 00:00:00, 2026-11-24 00:00:00"},
		{"@weekly", "2026-11-22 00:00:00, 2026-11-29 00:00:00, 2026-12-06 00:00:00"},
		{"@yearly", "2027-01-01 00:00:00, 2028-01-01 00:00:00, 2029-01-01 00:00:00"},
		{"30 2 28 3 *", "2027-03-28 03:00:00, 2028-03-28 02:30:00, 2029-03-28 02:30:00"}, // in the gap of summer time
	} {
		items := crontabOf(t, crontabFlags{}, c.expr+" cmd")
		if len(items) != 1 || !items[0].isWaiting() {
			t.Errorf("%s: %d items, %s", c.expr, len(items), items[0].why)
			continue
		}
		if got := dues(t, items[0], 3, "2026-11-21 10:00"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.expr, got, c.want)
		}
	}
}

// TestCrontab reads all that may stand in one.
func TestCrontab(t *testing.T) {
	items := crontabOf(t, crontabFlags{system: true}, `# m h dom mon dow user command

SHELL=/bin/bash
PATH = "/bin:/usr/bin"
MAILTO=""
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
-5 0 * * * www /bin/a --env=x%hello%wor\%ld
CRON_TZ="Asia/Tokyo"
@midnight root date +\%F
* * * * * nobody
* * * *
@reboot root x
0 0 */2 * 1 root y
0 0 1 * */3 root y
0 0 30 2 * root y
99 0 * * * root y
CRON_TZ=Moon/Crater
0 0 * * * root y
- 0 * * * root y
`)
	var got []string
	for _, i := range items {
		s := i.at + " " + i.result + " "
		if i.isWaiting() {
			s += strings.Join([]string{i.Schedule.Cron, i.Schedule.TimeZone, i.Labels["user"], i.Callback.URL}, "|")
			if i.Callback.BodyText != nil {
				s += "|" + *i.Callback.BodyText
			}
		} else {
			s += i.why
		}
		got = append(got, s)
	}
	want := []string{
		"line 6  17 * * * *|Europe/Berlin|root|http://run/?c=cd+%2F+%26%26+run-parts+--report+%2Fetc%2Fcron.hourly",
		"line 7  5 0 * * *|Europe/Berlin|www|http://run/?c=%2Fbin%2Fa+--env%3Dx|hello\nwor%ld\n",
		"line 9  @midnight|Asia/Tokyo|root|http://run/?c=date+%2B%25F",
		`line 10 failed "* * * * * nobody" is not an entry of a system crontab: it has no command after the user`,
		`line 11 failed "* * * *" is not a crontab entry: the command is missing`,
		"line 12 failed @reboot does not name a time",
		`line 13 failed cron runs the command on days that match both "*/2" of the month and "1" of the week; a timer is due on days that match either`,
		`line 14 failed cron runs the command on days that match both "1" of the month and "*/3" of the week; a timer is due on days that match either`,
		"line 15  0 0 30 2 *|Asia/Tokyo|root|http://run/?c=y",
		"line 16  99 0 * * *|Asia/Tokyo|root|http://run/?c=y",
		"line 18  0 0 * * *|Moon/Crater|root|http://run/?c=y",
		`line 19 failed "- 0 * * * root y" is not a crontab entry: only blanks and tabs may separate its fields`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// TestCrontabNames: a timer keeps its name whatever happens to the lines around
// it, and to its own times.
func TestCrontabNames(t *testing.T) {
	names := func(text string) map[string]string {
		out := map[string]string{}
		for _, i := range crontabOf(t, crontabFlags{}, text) {
			if out[i.Name] != "" {
				t.Errorf("%s: two timers are %s", text, i.Name)
			}
			out[i.Name] = i.Callback.URL
		}
		return out
	}
	was := names("0 1 * * * /bin/a 1\n0 2 * * * /bin/a 1\n0 3 * * * /bin/a.1\n0 4 * * * * *\n")
	now := names("0 9 * * * /bin/new\n0 3 * * * /bin/a.1\n5 1 * * * /bin/a 1\n0 2 * * * /bin/a 1\n")
	if len(was) != 4 {
		t.Errorf("%d names: %v", len(was), was)
	}
	kept := 0
	for name, url := range was {
		if now[name] == url {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d of 3 names were kept:\n%v\n%v", kept, was, now)
	}
}

func TestCrontabMap(t *testing.T) {
	file := filepath.Join(t.TempDir(), "map")
	text := "# what runs where\n/bin/backup\thttp://b/\n/bin/backup --full http://b/full?u={{urlquery .User}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	items := crontabOf(t, crontabFlags{urlMap: file, system: true}, "@daily r /bin/backup\n@daily r /bin/backup --full x\n@daily r /bin/other\n")
	if items[0].Callback.URL != "http://b/" || items[1].Callback.URL != "http://b/full?u=r" {
		t.Errorf("got %s and %s", items[0].Callback.URL, items[1].Callback.URL)
	}
	if items[2].result != timer.ResultFailed || !strings.Contains(items[2].why, `"/bin/other"`) {
		t.Errorf("got %s %s", items[2].result, items[2].why)
	}
	for _, url := range []string{"http://{{.Nothing}}", "http://{{"} {
		if _, err := newCommandURLs(url, ""); err == nil || exit.StatusOf(err) != exit.StatusUsage {
			t.Errorf("%s: %v", url, err)
		}
	}
}
