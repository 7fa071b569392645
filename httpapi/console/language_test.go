package console

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/client"
)

var (
	inPages = regexp.MustCompile(`\.T "((?:[^"\\]|\\.)*)"`)
	plurals = regexp.MustCompile(`\.N "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"`)
	inCode  = regexp.MustCompile(`(?:v\.T\(|&fault\{[^,]*, )"((?:[^"\\]|\\.)*)"`)
	verbs   = regexp.MustCompile(`%[a-z]`)
)

// TestBothLanguages: every text of the pages is in the table, every one of the
// table is used, and both fill in the same.
func TestBothLanguages(t *testing.T) {
	used := map[string]string{}
	find := func(files fs.FS, pattern string, re *regexp.Regexp) {
		names, err := fs.Glob(files, pattern)
		if err != nil || len(names) == 0 {
			t.Fatal("no files", pattern, err)
		}
		for _, name := range names {
			b, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range re.FindAllSubmatch(b, -1) {
				used[string(m[1])] = name
			}
		}
	}
	find(pageFiles, "pages/*.html", inPages)
	find(os.DirFS("."), "*.go", inCode)
	pages, err := filepath.Glob("pages/*.html")
	if err != nil {
		t.Fatal(err)
	}
	// Of one and many, the table has what is said of many. No number stands before
	// a text that is for many only.
	many := regexp.MustCompile(`\.T "(?:[^"]* )?%[sd] [a-z]{3,}s\b`)
	for _, name := range pages {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range plurals.FindAllSubmatch(b, -1) {
			used[string(m[2])] = name
			if one, two := verbs.FindAllString(string(m[1]), -1), verbs.FindAllString(string(m[2]), -1); string(m[1]) == string(m[2]) || !slices.Equal(one, two) {
				t.Errorf("%s: %q and %q", name, m[1], m[2])
			}
		}
		if m := many.Find(b); m != nil {
			t.Errorf("%s: %q is wrong of one", name, m)
		}
	}
	for text, where := range used {
		zh, ok := chinese[text]
		if !ok {
			t.Errorf("%s: %q is not in the table", where, text)
		}
		if a, b := verbs.FindAllString(text, -1), verbs.FindAllString(zh, -1); strings.Join(a, "") != strings.Join(b, "") {
			t.Errorf("%q fills in %v, %q %v", text, a, zh, b)
		}
	}
	for text, zh := range chinese {
		if used[text] == "" {
			t.Errorf("nothing says %q", text)
		}
		if strings.TrimSpace(zh) == "" {
			t.Errorf("%q is empty", text)
		}
	}
	// No text stands in a page without going through the table.
	bare := regexp.MustCompile(`>[^<>{}]*[A-Za-z]{2,}[^<>{}]*<`)
	files, _ := filepath.Glob("pages/*.html")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range bare.FindAllString(string(b), -1) {
			if words := strings.Trim(m, "<> \n·"); words != "" && !strings.Contains(" p50 p99 p99.9 UTC Go xtimer English ", " "+words+" ") {
				t.Errorf("%s: %q is not in the table", f, words)
			}
		}
	}
}

// TestWords: every word of the engine that a page shows is known.
func TestWords(t *testing.T) {
	words := []string{
		engine.ReasonOverlap, engine.ReasonMisfire, engine.ReasonWindow, engine.ReasonReplaced, engine.ReasonDisabled, engine.ReasonDeleted,
		engine.ReasonQueueFull, engine.ReasonAttempts, engine.ReasonAge, engine.ReasonRejected, engine.ReasonMayHaveBeen, engine.ReasonCrashed,
		"timeout", "refused", "dns", "tls", "egress_denied", "reset", "protocol", "too_large", "status", "journal", "panic",
		"read", "write", "admin", "cold", "warm",
	}
	for s := engine.Waiting; s <= engine.Unknown; s++ {
		words = append(words, s.String())
	}
	for o := engine.FromSchedule; o <= engine.FromCatchUp; o++ {
		words = append(words, o.String())
	}
	for i := range 3 {
		words = append(words, engine.Status(i).String(), engine.MisfirePolicy(i).String(), engine.Overlap(i).String(), engine.Delivery(i%2).String())
	}
	for a := scheduler.EnableAll; a <= scheduler.RedriveAll; a++ {
		words = append(words, a.String())
	}
	for _, w := range words {
		if chineseWords[w] == "" {
			t.Errorf("%q has no Chinese word", w)
		}
	}
}

// TestFailures: how tasks failed, and their attempts, in the visitor's words.
func TestFailures(t *testing.T) {
	en, zh := visit{Lang: "en"}, visit{Lang: "zh"}
	for how, want := range map[string][2]string{
		"status 503": {"status 503", "状态码 503"}, "timeout": {"timeout", "超时"}, "max_age": {"max age", "超过最长期限"}, "": {"", ""},
	} {
		if got := [2]string{en.Failure(how), zh.Failure(how)}; got != want {
			t.Errorf("%q: %v", how, got)
		}
	}
	n := serve(t)
	n.run(n.timer("shop", "stock", "/no").ID)
	if page := n.visitor().get("/dead", "Accept-Language", "zh").body; !strings.Contains(page, ">状态码 404<") {
		t.Error(page)
	}
	page := fakeAPI(func(r *http.Request) (int, any) {
		if strings.HasPrefix(r.URL.Path, "/v1/tasks/") {
			return 200, client.Task{Key: "7_1", TimerID: "7", Attempts: []client.Attempt{{N: 1, ErrorClass: "timeout"}}}
		}
		return 404, nil
	}).page("/tasks/7_1", "Accept-Language", "zh")
	if !strings.Contains(page, ">超时</span>") || strings.Contains(page, "timeout") {
		t.Error(page)
	}
}

func TestLanguageOf(t *testing.T) {
	for _, x := range []struct{ header, cookie, want string }{
		{"", "", "en"},
		{"zh-CN,zh;q=0.9,en;q=0.8", "", "zh"},
		{"en-GB,en;q=0.9,zh;q=0.8", "", "en"},
		{"en;q=0.1, zh;q=0.9", "", "zh"},
		{"zh;q=0", "", "en"},
		{"de,fr", "", "en"},
		{"zh-TW", "en", "en"},
		{"en", "zh", "zh"},
		{"zh", "<nonsense>", "zh"},
	} {
		r, _ := http.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept-Language", x.header)
		if x.cookie != "" {
			r.AddCookie(&http.Cookie{Name: languageCookie, Value: x.cookie})
		}
		if got := languageOf(r); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}

// TestOne: of one thing it is said in the singular.
func TestOne(t *testing.T) {
	en, zh := visit{Lang: "en"}, visit{Lang: "zh"}
	for n, want := range map[int64][2]string{0: {"0 timers", "0 个定时器"}, 1: {"1 timer", "1 个定时器"}, 2: {"2 timers", "2 个定时器"}, 1001: {"1\u202f001 timers", "1\u202f001 个定时器"}} {
		if a, b := en.N("%s timer", "%s timers", n), zh.N("%s timer", "%s timers", n); a != want[0] || b != want[1] {
			t.Errorf("%d: %q, %q", n, a, b)
		}
	}
	n := serve(t)
	v := n.visitor()
	tm := n.timer("shop", "stock", "/no")
	task := n.run(tm.ID)
	for where, got := range map[string]string{
		"1 timer<":        v.post("/timers/act", url.Values{"action": {"delete"}, "id": {tm.ID}}).body,
		"1 task, 5 a":     v.post("/dead/retry", url.Values{"key": {task.Key}, "rate": {"5"}}).body,
		"1 task in 1 gro": v.get("/dead").body,
		"1 timer</p":      v.post("/timers/"+tm.ID+"/delete", nil).body,
	} {
		if !strings.Contains(got, where) {
			t.Errorf("%q is not in %s", where, got)
		}
	}
}
