package console

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// figures are two apps: one without calls, and one whose calls fail now and then.
func figures(r *http.Request) (int, any) {
	if r.URL.Path != "/v1/apps" {
		return 404, nil
	}
	rate, p50, p99 := 0.99999, 0.4, 17.5
	busy := client.AppFigures{
		App: "shop", Waiting: 7, InFlight: 3,
		LastHour:    client.Outcomes{Succeeded: 1_000_000, Dead: 12, SuccessRate: &rate, LatenessP50MS: &p50, LatenessP99MS: &p99},
		Targets:     []client.TargetFigures{{Target: "https://shop.example:443", Answering: true, AttemptsOK: 5, TookP99MS: &p99}, {Target: "https://mute" + evil, AttemptsFailed: 9}},
		MoreTargets: 3,
	}
	busy.Timers.Enabled = 1234
	p := client.AppPage{Now: time.Now(), Since: time.Unix(1_800_000_000, 0), AsOf: time.Now(), Apps: []client.AppFigures{{App: "bank"}, busy}, NextCursor: "more"}
	if app := r.URL.Query().Get("app"); app == "shop" {
		p.Apps, p.NextCursor = p.Apps[1:], ""
	} else if app != "" {
		p.Apps = nil
	}
	return 200, p
}

// TestApps: how the calls of each app went. What is not known is a dash, and a rate below
// 100 % is not rounded to it.
func TestApps(t *testing.T) {
	for path, want := range map[string][]string{
		"/apps":          {`href="/apps?app=bank"`, `href="/apps?app=shop"`, "1\u202f234", "99.99 %", "17.5 ms", `<a href="/dead?app=shop">12</a>`, `data-label="Success rate">–<`, "cursor=more", "the numbers are lower bounds"},
		"/apps?app=shop": {"https://shop.example:443", "responds", "does not respond", "https://mute" + evil, "Targets that are not listed: 3.", `href="/tasks?app=shop"`, "last minute"},
		"/apps?app=none": {"This app has no timers and no tasks."},
	} {
		page := fakeAPI(figures).page(path)
		for _, text := range want {
			if !strings.Contains(page, text) {
				t.Errorf("%s lacks %q: %s", path, text, page)
			}
		}
		if strings.Contains(page, "100 %") {
			t.Errorf("%s calls 99.999 %% a hundred", path)
		}
	}
}

// TestForecast: seven days by hour, each day a row of the clock of the page's zone.
func TestForecast(t *testing.T) {
	begin := time.Date(2026, 10, 24, 20, 0, 0, 0, time.UTC)
	answer := client.Forecast{AsOf: begin, Exact: true, Timers: 9}
	for i := range forecastHours {
		answer.Hours = append(answer.Hours, client.ForecastHour{Hour: begin.Add(time.Duration(i) * time.Hour), Dues: int64(i)})
	}
	api := fakeAPI(func(r *http.Request) (int, any) {
		if r.URL.Path != "/v1/upcoming/hours" || r.URL.Query().Get("hours") != "168" || r.URL.Query().Get("app") != "shop" {
			return 404, nil
		}
		return 200, answer
	})
	page := api.page("/upcoming/hours?app=shop")
	for _, want := range []string{"By hour: 14\u202f028 dues", "9 timers, counted 2026-10-24 20:00:00.000 UTC. Times in UTC.", "<h3>2026-10-24</h3>", "<h3>2026-10-31</h3>", `title="2026-10-25 01:00 · 5"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if n := strings.Count(page, `<span class="unknown">`); n != 8*24-168 {
		t.Errorf("%d hours are empty", n)
	}
	// In Berlin the clock shows 02:00 twice on that day: 00:00 and 01:00 UTC.
	berlin := api.page("/upcoming/hours?app=shop", "Cookie", "xtimer_zone=mine; xtimer_zone_mine=Europe%2FBerlin")
	if !strings.Contains(berlin, `title="2026-10-25 02:00 · 9"`) {
		t.Error(berlin)
	}
	answer = client.Forecast{}
	if page := api.page("/upcoming/hours?app=shop"); !strings.Contains(page, "are being counted") {
		t.Error(page)
	}
	w := fakeAPI(figures)
	if got := w.leads("/upcoming?app=shop&at=2999-01-01T00:00:00Z"); got != "/upcoming/hours?app=shop" {
		t.Errorf("a minute that is far leads to %q", got)
	}
}

// TestAppsOfNode: the figures of a server that has called something, and of the coming days.
func TestAppsOfNode(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	n.run(n.timer("shop", "stock", "/ok").ID)
	n.run(n.timer("shop", "orders", "/bad").ID)
	n.until(func() bool {
		page := v.get("/apps").body
		return strings.Contains(page, "50.00 %") && strings.Contains(page, `<a href="/dead?app=shop">1</a>`)
	})
	if page := v.get("/apps?app=shop").body; !strings.Contains(page, `data-label="dead">1<`) {
		t.Error(page)
	}
	n.until(func() bool { return strings.Contains(v.get("/upcoming/hours").body, "2 timers, counted") })
	if page := v.get("/upcoming/hours").body; !strings.Contains(page, " dues</h2>") || strings.Contains(page, "By hour: 0 dues") {
		t.Error(page)
	}
}
