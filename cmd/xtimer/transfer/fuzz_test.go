package transfer

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine"
	"xtimer/tier/mysql"
)

// FuzzImportLine: a line of an export is refused, or is a timer that a store
// exports as the same line.
func FuzzImportLine(f *testing.F) {
	const timer = `{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://h/","body":{"a": 1}},`
	f.Add(timer + `"stored":{"id":"7354","version":3,"generation":2,"status":"enabled","reason":"x","valid_from":1763658000250,"anchor":1763658000250,"created_at":1763658000250,"updated_at":1763658000250,"finished_to":1763658000250},"owed":[{"due":1763658000250}]}`)
	f.Add(timer + `"stored":{"id":"0","version":1,"generation":1,"status":"finished","at":-1,"last_due":9223372036854775807}}`)
	f.Add(`{"app":"a","name":"n","schedule":{"delay":"5s"},"callback":{"url":"http://h/"},"stored":{"id":"1","version":1,"generation":1,"status":"disabled","at":1763658000250}}`)
	f.Add(`{"record":{"key":"7354_1763658000250","status":"succeeded"}}`)
	f.Add(`{"nmae":1}`)
	f.Fuzz(func(t *testing.T, text string) {
		var l line
		if l.read([]byte(text)) != nil {
			return
		}
		if l.Record != nil || !l.Stored.isWhole() {
			return
		}
		tm, owed, err := l.timer()
		if err != nil {
			return
		}
		stored, err := engine.DecodeTimer(engine.AppendTimer(nil, tm))
		if err != nil || !stored.Definition.Equal(&tm.Definition) {
			t.Fatalf("it cannot be stored: %+v, %v", stored, err)
		}
		var b bytes.Buffer
		if err := terminal.WriteJSON(&b, lineOf(tm, owed, l.Stored.FinishedTo, 0), ""); err != nil {
			t.Fatal(err)
		}
		var again line
		if err := again.read(b.Bytes()); err != nil {
			t.Fatalf("%v in %s", err, &b)
		}
		same, owed2, err := again.timer()
		if err != nil || !same.Definition.Equal(&tm.Definition) || same.ValidFrom != tm.ValidFrom || same.At != tm.At || same.LastDue != tm.LastDue || !reflect.DeepEqual(owed2, owed) {
			t.Fatalf("%+v is exported as\n%s\n%+v, %v", tm, &b, same, err)
		}
	})
}

// FuzzCrontab: a line is refused with a reason, or is an entry whose schedule has
// the words that cron counts, and whose name is one.
func FuzzCrontab(f *testing.F) {
	for _, line := range []string{
		"*/5 1-3 * jan MON /bin/backup --all 100\\% % line % two", "@daily\tx", "-0 0 1 * * x", "CRON_TZ=\"Asia/Shanghai\"\n0 9 * * * x", "0 9 1 * * u x",
		"0\f9 * * 1 1 x", "0\u00a09 * * * x", "- * * * * *", "@every 5m x", "0 0 */2 * 1 x", "* * * * *\tü %\n* * * * * ü %", "'A'='b'\n= = = = = x", "@reboot x",
	} {
		f.Add(line, strings.HasPrefix(line, "0 9 1"))
	}
	urls, err := newCommandURLs("http://run/?c={{urlquery .Command}}&u={{urlquery .User}}", "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string, system bool) {
		names := map[string]bool{}
		c := crontabFlags{app: "cron", system: system}
		_ = c.items(strings.NewReader(text), "UTC", urls, func(i *item) error {
			if !i.isWaiting() {
				if i.why == "" {
					t.Fatalf("%s: no reason", i.at)
				}
				return nil
			}
			if words := strings.Fields(i.Schedule.Cron); len(words) != 5 && (len(words) != 1 || words[0][0] != '@') {
				t.Fatalf("%s: %q is no time of a crontab", i.at, i.Schedule.Cron)
			}
			d, err := storedDefinition(&i.Definition)
			for _, field := range []string{"name:", "app:"} {
				if err != nil && strings.Contains(err.Error(), field) {
					t.Fatalf("%s: %v", i.at, err)
				}
			}
			if names[d.Name] {
				t.Fatalf("%s: %q is there twice", i.at, d.Name)
			}
			names[d.Name] = true
			return nil
		})
	})
}

// FuzzOriginal: a row of the original is refused with a reason, or is timers that
// say when the original would have called, each with a span of years.
func FuzzOriginal(f *testing.F) {
	const param = `{"method":"post","url":"http://h/","header":{"X-A":"1"},"body":"{\"a\": 1}"}`
	for _, cron := range []string{
		"*/15 0 9 ? * MON-FRI *", "0 0 0 1 January * 2025,2027-2028,2030", "0 0 0 */1 * */1 */9223372036854775807", "0 0 0 1 1 * 2027/0", "0 12 * * *", "@hourly",
		"0 0 0 1 1 * 2098-2099/9223372036854775807", "0 0 0 ſ 1 * 1970-2099", "@every 1s",
	} {
		f.Add(cron, param, originalEnabled)
	}
	f.Add("* * * * * * *", `{"method":"ſet","url":""}`, originalDisabled)
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		f.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, shanghai)
	f.Fuzz(func(t *testing.T, cron, param string, status int) {
		row := mysql.OriginalRow{ID: 7, App: "a", Name: "n", Status: status, Cron: cron, NotifyHTTPParam: param}
		items := originalItems(&row, shanghai, now)
		if len(items) == 0 || len(items) > maxSpans {
			t.Fatalf("%d items", len(items))
		}
		var last time.Time
		for _, i := range items {
			if !i.isWaiting() {
				if i.why == "" {
					t.Fatalf("%s: no reason", i.Name)
				}
				continue
			}
			s := i.Schedule
			if words := strings.Fields(s.Cron); len(words) != 6 && (len(words) != 1 || words[0][0] != '@') {
				t.Fatalf("%q is six words, or one", s.Cron)
			}
			if !s.EndAt.IsZero() && (!last.Before(s.StartAt) || !s.StartAt.Before(s.EndAt) || s.EndAt.Before(now)) {
				t.Fatalf("%q: from %v to %v, after %v", cron, s.StartAt, s.EndAt, last)
			}
			last = s.EndAt
		}
	})
}
