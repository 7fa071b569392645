package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestZones: times are in the timer's zone, in UTC or in the visitor's, as the visitor
// chooses, and the zone is written beside them.
func TestZones(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	r, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "nine", Schedule: client.Schedule{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai"}, Callback: client.Callback{URL: "http://target.test/ok"},
	})
	if err != nil {
		t.Fatal(err)
	}
	key := n.run(r.Timer.ID).Key
	has := func(path, want string) {
		t.Helper()
		if page := v.get(path).body; !strings.Contains(page, want) {
			t.Errorf("%s has no %q: %s", path, want, page)
		}
	}
	timer := "/timers/" + r.Timer.ID
	choose := func(zone string) {
		t.Helper()
		if a := v.post("/preferences", url.Values{"zone": {zone}, "to": {timer}}); a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}

	for _, path := range []string{timer, "/timers"} {
		has(path, " 09:00:00.000 UTC&#43;8<")
	}
	has("/tasks/"+key, " UTC&#43;8</time>")
	has(timer, `data-zone="Asia/Shanghai"`)
	has("/", `data-zone="UTC"`)
	has("/live", " UTC</time>")

	choose("utc")
	has(timer, " 01:00:00.000 UTC<")
	has("/timers", " 01:00:00.000 UTC<")

	v.http.Jar.SetCookies(mustURL(n.url), []*http.Cookie{{Name: mineCookie, Value: url.QueryEscape("Asia/Kolkata")}})
	choose("mine")
	has(timer, " 06:30:00.000 UTC&#43;5:30<")
	has("/live", " UTC&#43;5:30</time>")
	for _, wrong := range []string{"Local", "../etc/passwd", "Mars/Olympus", "%zz", strings.Repeat("x", 1000)} {
		v.http.Jar.SetCookies(mustURL(n.url), []*http.Cookie{{Name: mineCookie, Value: wrong}})
		has(timer, " 01:00:00.000 UTC<")
	}
	choose("timer")
	has(timer, " 09:00:00.000 UTC&#43;8<")
}

func TestOffset(t *testing.T) {
	for zone, want := range map[string]string{"UTC": "UTC", "Asia/Shanghai": "UTC+8", "Asia/Kolkata": "UTC+5:30", "America/St_Johns": "UTC-3:30", "America/New_York": "UTC-5"} {
		l, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := offset(time.Date(2026, 1, 1, 0, 0, 0, 0, l)); got != want {
			t.Errorf("%s: %s, want %s", zone, got, want)
		}
	}
}
