package console

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
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
	for _, days := range []string{"13 * FRI", "1,15 2-5 *", "* 1,6 MON-FRI", "1-5,9,30 * 6,7", "* * 1,3,5", "29 2 *", "30 2 *", "31 * *"} {
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

var (
	aWord   = regexp.MustCompile(`[A-Za-z]{2,}`)
	noWords = regexp.MustCompile(`"[^"]*"|\d{4}-\d\d-\d\dT[\d:.]+Z|UTC|Asia/Shanghai|America/New_York|EST5EDT`) // cron text, instants, zones
)

// TestChineseSchedules: of all that the engine says of schedules, no English word
// is left on a Chinese page; and all that it can say is said here.
func TestChineseSchedules(t *testing.T) {
	zh, en := visit{Lang: "zh"}, visit{Lang: "en"}
	said := map[string]bool{}
	codes := map[string]bool{}
	check := func(s *engine.Schedule, was, is string) {
		t.Helper()
		if left := aWord.FindAllString(noWords.ReplaceAllString(is, ""), -1); left != nil || is == "" {
			t.Errorf("%+v: %q is %q: %v", *s, was, is, left)
		}
		said[strings.ToLower(was)] = true
	}
	for _, s := range schedules() {
		from := sentenceNow
		if s.Delay > time.Hour {
			from = engine.MaxDue - 1 // so that there is nothing after it
		}
		p, err := plan.PreviewSchedule(s, 3, from)
		if err != nil {
			t.Errorf("%+v: %v", s, err)
			continue
		}
		check(&s, p.Sentence, zh.Sentence(p.Sentence))
		if got := en.Sentence(p.Sentence); got != p.Sentence+"." {
			t.Errorf("in English %q is %q", p.Sentence, got)
		}
		for _, w := range p.Warnings {
			codes[w.Code] = true
			check(&s, w.Detail, zh.Warning(w.Detail))
			if got := en.Warning(w.Detail); got != w.Detail {
				t.Errorf("in English %q is %q", w.Detail, got)
			}
		}
	}
	for _, x := range []struct{ file, funcs, never string }{
		{"describe.go", "Describe describe times days clockTimes list and ordinal span", "Never"},
		{"preview.go", "PreviewSchedule warnOf warnClock", "is not in the range|between the years|2006"},
		{"schedule.go", "Resolve resolveOnce lastBefore", "the runs of a calendar|days on which it is due; use"},
	} {
		for _, fragment := range fragments(t, "../../engine/plan/"+x.file, strings.Fields(x.funcs)) {
			if regexp.MustCompile(x.never).MatchString(fragment) || codes[fragment] {
				continue
			}
			if !slices.ContainsFunc(keys(said), func(text string) bool { return strings.Contains(text, strings.ToLower(fragment)) }) {
				t.Errorf("engine/%s can say %q: nothing here makes it do so", x.file, fragment)
			}
		}
	}
}

func keys(m map[string]bool) (ks []string) {
	for k := range m {
		ks = append(ks, k)
	}
	return ks
}

var verb = regexp.MustCompile(`%\d*[a-z]`)

// fragments are the pieces of text between the verbs of all that some functions
// have in quotes, but for names of fields and codes.
func fragments(t *testing.T, path string, funcs []string) (all []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(funcs, fn.Name.Name) {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.ContainsAny(text, " ") && strings.ContainsAny(text, "_.") || strings.HasPrefix(text, "schedule") {
					return true
				}
				for _, piece := range verb.Split(text, -1) {
					if aWord.MatchString(piece) {
						all = append(all, piece)
					}
				}
			}
			return true
		})
	}
	if len(all) == 0 {
		t.Fatalf("%s says nothing", path)
	}
	return all
}

// TestChineseSentences: they read as they should.
func TestChineseSentences(t *testing.T) {
	v := visit{Lang: "zh"}
	for english, want := range map[string]string{
		"At 09:00, Monday to Friday, Asia/Shanghai":                          "09:00，周一至周五，Asia/Shanghai。",
		"At 09:00:30 and 18:00:30, every day, UTC":                           "09:00:30、18:00:30，每天，UTC。",
		"Every 10 minutes, UTC":                                              "每 10 分钟，UTC。",
		"At second 30 of every minute, UTC":                                  "每分钟第 30 秒，UTC。",
		"At minutes 5 and 35 of every hour, UTC":                             "每小时第 5、35 分，UTC。",
		"Every 15 minutes of the hours 09 to 17, Saturday and Sunday, UTC":   "09至17 点每 15 分钟，周六、周日，UTC。",
		"At minute 7 of every 2nd hour from 00 on, in January and June, UTC": "从 00 点起每 2 小时第 7 分，1 月、6 月，UTC。",
		"At 00:00, on day 13 of the month, and besides on each Friday, UTC":  "00:00，每月 13 日，以及每逢周五，UTC。",
		"Every 250 ms, 100 times at most":                                    "每 250 毫秒，最多 100 次。",
		"Once, at 2026-03-06T17:00:00.000Z":                                  "仅一次，2026-03-06T17:00:00.000Z。",
		"Once, 30 minutes after it is accepted, spread over up to 5 seconds": "仅一次，接受后 30 分钟，在最长 5 秒内分散。",
		"Every 1 hour 30 minutes, from 2026-03-06T17:00:00.000Z, once only":  "每 1 小时 30 分钟，自 2026-03-06T17:00:00.000Z 起，仅一次。",
		"Every fortnight, UTC":                                               "Every fortnight, UTC.",
		"At 09:00, daily":                                                    "At 09:00, daily.",
		"":                                                                   "",
	} {
		if got := v.Sentence(english); got != want {
			t.Errorf("%q is %q, want %q", english, got, want)
		}
	}
}

// TestChinesePages: the page of a timer and the form of one say them in Chinese.
func TestChinesePages(t *testing.T) {
	n := serve(t)
	tm, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "1", Schedule: client.Schedule{Cron: "30 2 13 * FRI", TimeZone: "America/New_York"}, Callback: client.Callback{URL: "http://x/"},
	})
	if err != nil {
		t.Fatal(err)
	}
	v := n.visitor()
	for _, path := range []string{"/timers/" + tm.Timer.ID, "/timers/" + tm.Timer.ID + "/edit"} {
		for lang, want := range map[string][]string{
			"zh": {"02:30，每月 13 日，以及每逢周五，America/New_York。", "同时给出了日期与星期"},
			"en": {"At 02:30, on day 13 of the month, and besides on each Friday, America/New_York.", "day of month and day of week are both given"},
		} {
			page := v.get(path, "Accept-Language", lang).body
			for _, text := range want {
				if !strings.Contains(page, text) {
					t.Errorf("%s in %s lacks %q", path, lang, text)
				}
			}
		}
	}
}
