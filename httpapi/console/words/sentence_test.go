package words

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/httpapi/client"
)

var sentenceNow = time.Date(2026, 3, 6, 17, 0, 0, 0, time.UTC).UnixMilli()

// schedules are of every kind that the engine has words for.
func schedules() (all []engine.Schedule) {
	cron := func(spec string) { all = append(all, engine.Schedule{Cron: spec, TimeZone: "Asia/Shanghai"}) }
	for _, second := range []string{"", "* ", "*/10 ", "30 ", "5,7 ", "7-20,40 "} {
		for _, minute := range []string{"*", "*/10", "0", "5,35", "1-7"} {
			for _, hour := range []string{"*", "*/2", "*/3", "*/6", "9", "9,18", "9-17"} {
				cron(second + minute + " " + hour + " * * *")
			}
		}
	}
	for _, days := range []string{"13 * FRI", "1,15 2-5 *", "* 1,6 MON-FRI", "1-5,9,30 * 6,7", "* * 1,3,5", "29 2 *", "30 2 *", "31 * *", "L * *", "L-3,1 1 *", "15W,LW 1-3 *", "* * FRIL", "* * 5#2,MON,7#1"} {
		cron("0 9 " + days)
		cron("*/10 9-17 " + days)
	}
	for month := range 12 {
		all = append(all, engine.Schedule{Cron: "0 0 1 " + strconv.Itoa(month+1) + " *"})
	}
	for _, spec := range []string{"@daily", "@hourly", "@weekly", "@monthly", "@yearly", "@every 90m", "30 2 * * *", "30 1 * * *", "0 1,2 * * *"} {
		for _, zone := range []string{"", "America/New_York", "EST5EDT"} {
			if !strings.HasPrefix(spec, "@every") || zone == "" {
				all = append(all, engine.Schedule{Cron: spec, TimeZone: zone})
			}
		}
	}
	for _, every := range []time.Duration{10 * time.Millisecond, time.Second, 90 * time.Second, time.Hour, 25*time.Hour + time.Minute + 250*time.Millisecond} {
		for _, s := range []engine.Schedule{
			{},
			{StartAt: sentenceNow + 1},
			{EndAt: sentenceNow + 86400000},
			{MaxRuns: 1},
			{MaxRuns: 3, Jitter: 5 * time.Second},
			{EndAt: sentenceNow - 1},
		} {
			s.Every = every
			all = append(all, s)
		}
	}
	return append(
		all,
		engine.Schedule{Every: time.Hour, TimeZone: "Asia/Shanghai"},
		engine.Schedule{Cron: "0 */12 * * *", TimeZone: "America/Havana"},
		engine.Schedule{At: sentenceNow},
		engine.Schedule{At: sentenceNow + 1, Jitter: time.Hour},
		engine.Schedule{At: engine.MaxDue, Jitter: time.Hour},
		engine.Schedule{At: sentenceNow - (370 * 24 * time.Hour).Milliseconds()},
		engine.Schedule{HasDelay: true},
		engine.Schedule{HasDelay: true, Delay: 90 * time.Minute},
		engine.Schedule{Every: time.Hour, StartAt: engine.MaxDue},
		engine.Schedule{Cron: "@daily", EndAt: sentenceNow + 1},
		engine.Schedule{Cron: "@yearly", StartAt: engine.MaxDue},
	)
}

// preview is what the API says of a schedule.
func preview(t *testing.T, s engine.Schedule) *client.Preview {
	t.Helper()
	from := sentenceNow
	if s.Delay > time.Hour {
		from = engine.MaxDue - 1 // so that there is nothing after it
	}
	p, err := plan.PreviewSchedule(s, 3, from)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	out := &client.Preview{Sentence: p.Sentence}
	units := func(u plan.Units) client.Units { return client.Units(u) }
	at := func(ms int64) (t time.Time) {
		if ms != 0 {
			t = time.UnixMilli(ms).UTC()
		}
		return t
	}
	for _, c := range p.Clauses {
		is := client.Clause{
			Kind: string(c.Kind), Seconds: units(c.Seconds), Minutes: units(c.Minutes), Hours: units(c.Hours), Values: c.Values,
			At: at(c.At), LengthMS: c.Length.Milliseconds(), Count: c.Count, Text: c.Text,
		}
		for _, x := range c.Times {
			is.Times = append(is.Times, plan.TimeOfDay(x))
		}
		for _, d := range c.MonthDays {
			is.MonthDays = append(is.MonthDays, client.MonthDay{Kind: string(d.Kind), N: d.N, Weekday: d.Weekday})
		}
		out.Clauses = append(out.Clauses, is)
	}
	for _, w := range p.Warnings {
		out.Warnings = append(out.Warnings, client.Warning{
			Code: w.Code, Detail: w.Detail, Reason: w.Reason, At: at(w.At), Count: w.Count, Zone: w.Zone, ClockBefore: w.Before, ClockAfter: w.After,
		})
	}
	return out
}

func stamp(t time.Time) string { return t.Format("2006-01-02 15:04:05 UTC") }

var (
	aWord   = regexp.MustCompile(`[A-Za-z]{2,}`)
	noWords = regexp.MustCompile(`UTC|Asia/Shanghai|America/New_York|America/Havana|EST5EDT|cron`) // zones, and what is not translated
)

// TestChineseSchedules: of all that the engine says of schedules, no English word is
// left, and the schedules here make it say all that it can say.
func TestChineseSchedules(t *testing.T) {
	said := map[string]bool{}
	check := func(s engine.Schedule, is string) {
		t.Helper()
		if left := aWord.FindAllString(noWords.ReplaceAllString(is, ""), -1); left != nil || is == "" || strings.Contains(is, "  ") {
			t.Errorf("%+v: %q has %v", s, is, left)
		}
	}
	for _, s := range schedules() {
		p := preview(t, s)
		check(s, Chinese.Sentence(p, stamp))
		if got := English.Sentence(p, stamp); got != p.Sentence+"." {
			t.Errorf("in English %q is %q", p.Sentence, got)
		}
		for _, c := range p.Clauses {
			said[c.Kind] = true
		}
		for _, w := range p.Warnings {
			said[w.Code], said[w.Reason] = true, true
			check(s, Chinese.Warning(w, stamp))
			if got := English.Warning(w, stamp); got != w.Detail {
				t.Errorf("in English %q is %q", w.Detail, got)
			}
		}
	}
	for file, pattern := range map[string]string{
		"clause.go":  `ClauseKind = "(\w+)"`,
		"preview.go": `warn\("(\w+)"|Code: "(\w+)"|return "(\w+)", "`,
	} {
		b, err := os.ReadFile("../../../engine/plan/" + file)
		if err != nil {
			t.Fatal(err)
		}
		all := regexp.MustCompile(pattern).FindAllStringSubmatch(string(b), -1)
		for _, m := range all {
			if code := strings.Join(m[1:], ""); !said[code] && code != "never" {
				t.Errorf("engine/plan/%s can say %s: no schedule here makes it do so", file, code)
			}
		}
		if len(all) < 8 {
			t.Errorf("engine/plan/%s says %v", file, all)
		}
	}
	for _, reason := range []string{"unsatisfiable_cron", "never_due", "too_far", "at_too_old"} {
		if !said[reason] {
			t.Errorf("no schedule here is never due because of %s", reason)
		}
	}
}

// TestChineseSentences: they read as they should.
func TestChineseSentences(t *testing.T) {
	cron := func(spec string) engine.Schedule { return engine.Schedule{Cron: spec} }
	for _, x := range []struct {
		s    engine.Schedule
		want string
	}{
		{engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}, "每周一至周五 09:00（Asia/Shanghai）。"},
		{cron("30 0 9,18 * * *"), "每天 09:00:30、18:00:30（UTC）。"},
		{cron("*/10 * * * *"), "每 10 分钟（UTC）。"},
		{cron("* * * * *"), "每分钟（UTC）。"},
		{cron("* * * * * *"), "每秒（UTC）。"},
		{cron("*/10 * * * * *"), "每 10 秒（UTC）。"},
		{cron("30 * * * * *"), "每分钟第 30 秒（UTC）。"},
		{cron("0 5,35 * * * *"), "每小时第 5、35 分（UTC）。"},
		{cron("*/10 5,35 * * * *"), "每小时第 5、35 分内每 10 秒（UTC）。"},
		{cron("30 */15 * * * *"), "每 15 分钟的首分钟第 30 秒（UTC）。"},
		{cron("*/15 9-17 * * 6,7"), "每周六、周日 9 至 17 点每 15 分钟（UTC）。"},
		{cron("7 */2 * 1,6 *"), "每年 1、6 月每天 0、2、…、22 点第 7 分（UTC）。"},
		{cron("0 * * * *"), "每小时整点（UTC）。"},
		{cron("0 */12 * * *"), "每天 0、12 点整（UTC）。"},
		{cron("*/10 */6 * * *"), "每天 0、6、12、18 点每 10 分钟（UTC）。"},
		{cron("* 9 * * *"), "每天 9 点每分钟（UTC）。"},
		{cron("1-7 9,18 * * *"), "每天 9、18 点第 1 至 7 分（UTC）。"},
		{cron("0 9 L * *"), "每月最后一天 09:00（UTC）。"},
		{cron("0 9 L-3,1 1 *"), "每年 1 月 1 日和倒数第 4 天 09:00（UTC）。"},
		{cron("0 9 15W,LW 1-3 *"), "每年 1 至 3 月的最接近 15 日的工作日、最后一个工作日 09:00（UTC）。"},
		{cron("0 9 * * 5#2,MON,7#1"), "每周一和每月第 1 个周日、第 2 个周五 09:00（UTC）。"},
		{cron("0 0 13 * FRI"), "每月 13 日和每周五 00:00（UTC）。"},
		{cron("0 0 1-5,9 * *"), "每月 1 至 5、9 日 00:00（UTC）。"},
		{cron("0 9 29 2 *"), "每年 2 月 29 日 09:00（UTC）。"},
		{cron("0 9 1 1,6 *"), "每年 1、6 月的 1 日 09:00（UTC）。"},
		{cron("0 9 * 6-8 MON"), "每年 6 至 8 月，每周一 09:00（UTC）。"},
		{cron("0 9 * 6 *"), "每年 6 月每天 09:00（UTC）。"},
		{engine.Schedule{Every: 250 * time.Millisecond, MaxRuns: 100}, "每 250 毫秒，最多 100 次。"},
		{engine.Schedule{At: sentenceNow}, "仅一次：2026-03-06 17:00:00 UTC。"},
		{engine.Schedule{HasDelay: true}, "仅一次：立即。"},
		{engine.Schedule{HasDelay: true, Delay: 30 * time.Minute, Jitter: 5 * time.Second}, "仅一次：接受后 30 分钟，随机推后最多 5 秒。"},
		{engine.Schedule{Every: 90 * time.Minute, StartAt: sentenceNow, MaxRuns: 1}, "每 1 小时 30 分钟，自 2026-03-06 17:00:00 UTC 起，仅一次。"},
	} {
		if got := Chinese.Sentence(preview(t, x.s), stamp); got != x.want {
			t.Errorf("%+v is %q, want %q", x.s, got, x.want)
		}
	}
	for _, l := range []Language{English, Chinese} {
		if got := l.Sentence(&client.Preview{}, stamp); got != "" {
			t.Errorf("of no schedule %q", got)
		}
	}
}
