package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

// TestFailures: how tasks failed, and their attempts, in the visitor's words.
func TestFailures(t *testing.T) {
	en, zh := visit{Language: words.English}, visit{Language: words.Chinese}
	for how, want := range map[string][2]string{
		"status 503": {"status 503", "状态码 503"}, "timeout": {"timeout", "超时"}, "max_age": {"max age", "超过放弃期限"}, "": {"", ""},
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
		if got := languageOf(r).Lang(); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
}

// TestOne: of one thing it is said in the singular.
func TestOne(t *testing.T) {
	en, zh := visit{Language: words.English}, visit{Language: words.Chinese}
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
			"zh": {"每月 13 日和每周五 02:30（America/New_York）。", "同时指定了日期和星期"},
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
