//go:build pictures

package console

import (
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"xtimer/engine"
	"xtimer/httpapi/callback"
	"xtimer/httpapi/client"
)

const (
	pictures    = "../../docs/pictures"
	mostPicture = 150 << 10
)

// TestPictures makes the pictures of the documentation, of a server that has
// been at work for XTIMER_PICTURES, a time like 10m: make screenshots does so.
func TestPictures(t *testing.T) {
	work, err := time.ParseDuration(os.Getenv("XTIMER_PICTURES"))
	if err != nil {
		t.Fatalf("XTIMER_PICTURES: %v", err)
	}
	n := serveCalling(t, company(t))
	s := seed(n)
	time.Sleep(work)
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}

	b := open(t, n)
	b.visit(t, "/")
	first := s.task("partners", "partner-stock-sync", client.Succeeded, 2)
	for _, p := range []struct {
		file, path, lang, theme string
		width, height           int64
		ready                   string // what has to be there
	}{
		{"overview", "/", "en", "light", 1200, 820, chartDrawn},
		{"overview-dark", "/", "en", "dark", 1200, 820, chartDrawn},
		{"overview-zh", "/", "zh", "light", 1200, 820, chartDrawn},
		{"overview-phone", "/", "en", "light", 380, 820, chartDrawn},
		{"task", "/tasks/" + first, "en", "light", 1200, 900, `document.querySelector(".phases")`},
		{"timer", "/timers/" + s.beat, "en", "light", 1200, 760, chartDrawn},
		{"timers", "/timers?name=order-", "en", "light", 1200, 560, `document.querySelector("#list tbody a")`},
		{"new-timer", "/timers/new", "en", "light", 1200, 860, `document.querySelector("#preview")`},
		{"upcoming", "/upcoming", "en", "light", 1200, 700, `document.querySelector(".heat")`},
		{"tasks", "/tasks?status=problems", "en", "light", 1200, 640, `document.querySelector("#tasks tbody a")`},
		{"apps", "/apps", "en", "light", 1200, 480, `document.querySelector("main tbody a")`},
		{"dead-letters", "/dead", "en", "light", 1200, 560, `document.querySelector("#list")`},
		{"alerts", "/alerts?app=partners", "en", "light", 1200, 900, `document.querySelector("#open form")`},
	} {
		if p.file == "task" { // the overview is of a service without trouble
			s.fail()
		}
		if _, err := eval[string](b, fmt.Sprintf(`document.cookie = "%s=%s; path=/", document.cookie = "%s=%s; path=/"`, languageCookie, p.lang, themeCookie, p.theme)); err != nil {
			t.Fatal(err)
		}
		b.do(t, chromedp.EmulateViewport(p.width, p.height))
		b.visit(t, p.path)
		if p.file == "new-timer" {
			b.fill(t, "#f-app", "billing")
			b.fill(t, "#f-name", "invoice-run")
			b.fill(t, "#f-kind", "cron")
			b.fill(t, `[name="schedule.time_zone"]`, "America/New_York")
			b.fill(t, "#f-when", "30 2 * * SUN")
			b.fill(t, `[name="callback.url"]`, "https://billing.example/invoices/run")
			b.wait(t, `document.querySelector("#preview .warn") && document.querySelector("#preview time")`)
		}
		b.wait(t, p.ready)
		b.wait(t, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if len(png) > mostPicture {
			t.Errorf("%s is %d bytes", p.file, len(png))
		}
		t.Logf("%s: %d bytes", p.file, len(png))
		if err := os.WriteFile(filepath.Join(pictures, p.file+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.clean(t, "taking pictures")
}

const chartDrawn = `document.querySelector(".chart canvas")`

// hosts calls the targets of a company: all are one here, except for the connections.
type hosts struct {
	own, partner *callback.Caller
	target       string
}

func (h hosts) Call(c *engine.Call) engine.Outcome {
	tm := *c.Timer
	host, path, _ := strings.Cut(strings.TrimPrefix(tm.Callback.URL, "https://"), "/")
	tm.Callback.URL = h.target + "/" + path
	to := *c
	to.Timer = &tm
	if host == "partner.example" {
		return h.partner.Call(&to)
	}
	return h.own.Call(&to)
}

// company answers as targets do: most at once, one after a time, some with errors.
func company(t *testing.T) engine.Caller {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
		fmt.Fprintf(w, `{"ok":true,"task":%q}`, r.Header.Get("Idempotency-Key"))
	})
	mux.HandleFunc("/stock", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Duration(8+rand.IntN(20)) * time.Millisecond)
		if r.Header.Get("X-Xtimer-Attempt") == "1" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":"warehouse is being counted, try again"}`)
			return
		}
		fmt.Fprint(w, `{"articles":1842,"changed":17}`)
	})
	mux.HandleFunc("/prices", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		fmt.Fprint(w, "upstream connect error or disconnect/reset before headers")
	})
	mux.HandleFunc("/mail", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"error":"no such template: spring-sale"}`)
	})
	srv := httptest.NewTLSServer(mux)
	t.Cleanup(srv.Close)
	roots := x509.NewCertPool()
	roots.AddCert(srv.Certificate())
	calls := func() *callback.Caller {
		c, err := callback.New(callback.Config{RootCAs: roots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	return hosts{calls(), calls(), srv.URL}
}

// seeded is a node with the timers of a company.
type seeded struct {
	*node
	beat string // a timer with many runs
}

func seed(n *node) seeded {
	n.t.Helper()
	post := func(url string) client.Callback { return client.Callback{URL: url, Method: "POST"} }
	var all []client.Definition
	for i := range 9000 {
		order := 18_000 + i
		all = append(all, client.Definition{
			App: "shop", Name: fmt.Sprintf("order-%d-expire", order), Labels: map[string]string{"team": "checkout"},
			Schedule: client.Schedule{At: time.Now().Add(time.Duration(rand.ExpFloat64()*float64(40*time.Minute)) + time.Second)},
			Callback: client.Callback{URL: fmt.Sprintf("https://shop.example/orders/%d/expire", order), Body: map[string]any{"order": order, "reason": "not paid"}},
		})
	}
	for i := range 3000 {
		all = append(all, client.Definition{
			App: "crm", Name: fmt.Sprintf("reminder-%d", 4200+i), Labels: map[string]string{"team": "crm", "kind": "cart"},
			Schedule: client.Schedule{At: time.Now().Add(time.Duration(rand.IntN(90*60)) * time.Second).Truncate(time.Second).Add(time.Minute)},
			Callback: post("https://crm.example/reminders"),
		})
	}
	recurring := []client.Definition{
		{App: "ops", Name: "heartbeat", Schedule: client.Schedule{Every: 250 * time.Millisecond}, Callback: post("https://ops.example/beat"), Labels: map[string]string{"team": "ops"}},
		{App: "shop", Name: "stock-watch", Schedule: client.Schedule{Every: time.Second}, Callback: post("https://shop.example/watch"), Labels: map[string]string{"team": "checkout"}},
		{App: "billing", Name: "invoice-run", Schedule: client.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Europe/Berlin"}, Callback: post("https://billing.example/invoices/run"), Labels: map[string]string{"team": "billing"}},
		{App: "billing", Name: "dunning", Schedule: client.Schedule{Cron: "30 7 1,15 * *", TimeZone: "Asia/Shanghai"}, Callback: post("https://billing.example/dunning"), Labels: map[string]string{"team": "billing"}},
		{
			App: "partners", Name: "partner-stock-sync", Schedule: client.Schedule{Every: 20 * time.Second}, Callback: post("https://partner.example/stock"),
			Retry: client.Retry{MaxAttempts: 4, Backoff: 150 * time.Millisecond, Multiplier: 2}, Labels: map[string]string{"team": "partners"},
		},
	}
	all = append(recurring, all...)
	for part := range (len(all) + 999) / 1000 {
		results, err := n.api.CreateBatch(n.t.Context(), all[part*1000:min(len(all), part*1000+1000)])
		if err != nil {
			n.t.Fatal(err)
		}
		for _, r := range results {
			if r.Error != nil {
				n.t.Fatal(r.Error)
			}
		}
	}
	beat, err := n.api.GetByName(n.t.Context(), "ops", "heartbeat")
	if err != nil {
		n.t.Fatal(err)
	}
	return seeded{n, beat.ID}
}

// alerting gives the app partners rules, channels and a mute.
func (s seeded) alerting() {
	s.t.Helper()
	s.putAlert("partners", "channels", "on-call", `{"kind":"feishu","url":{"secret":"feishu-url"},"secret":{"secret":"feishu-sign"},"lang":"zh","mention":["all"]}`)
	s.putAlert("partners", "channels", "team", `{"kind":"email","smtp":{"host":"smtp.example.com","from":"xtimer@example.com","to":["partners@example.com"]}}`)
	s.putAlert("partners", "rules", "feed-fails-twice", `{"on":["failed","dead"],"match":{"name_prefix":"partner-"},"streak":2,"channels":["on-call","team"],"severity":"critical"}`)
	s.putAlert("partners", "rules", "late", `{"on":["late","backlog"],"late":"5s","channels":["team"]}`)
	s.putAlert("partners", "mutes", "migration", `{"match":{"label":"team=legacy"},"until":`+quoted(time.Now().Add(26*time.Hour).UTC().Format(time.RFC3339))+`,"reason":"the warehouse moves"}`)
}

// fail makes two timers whose calls fail, and runs them a few times.
func (s seeded) fail() {
	s.t.Helper()
	s.alerting()
	for _, x := range []struct {
		runs int
		client.Definition
	}{
		{8, client.Definition{
			App: "partners", Name: "partner-price-feed", Schedule: client.Schedule{Every: 70 * time.Second}, Callback: client.Callback{URL: "https://partner.example/prices", Method: "POST"},
			Retry: client.Retry{MaxAttempts: 3, Backoff: 100 * time.Millisecond}, Labels: map[string]string{"team": "partners"},
		}},
		{3, client.Definition{
			App: "crm", Name: "newsletter-spring", Schedule: client.Schedule{Every: 3 * time.Minute},
			Callback: client.Callback{URL: "https://crm.example/mail", Method: "POST"}, Labels: map[string]string{"team": "crm"},
		}},
	} {
		made, err := s.api.Create(s.t.Context(), x.Definition)
		if err != nil {
			s.t.Fatal(err)
		}
		for range x.runs {
			key, err := s.api.Run(s.t.Context(), made.Timer.ID)
			if err != nil {
				s.t.Fatal(err)
			}
			s.until(func() bool {
				x, err := s.api.Task(s.t.Context(), key)
				return err == nil && (x.Status == client.Failed || x.Status == client.Dead)
			})
		}
	}
}

// task is the key of a timer's newest task of a status and so many attempts.
func (s seeded) task(app, name, status string, attempts int) (key string) {
	s.t.Helper()
	tm, err := s.api.GetByName(s.t.Context(), app, name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.until(func() bool {
		page, err := s.api.TaskPage(s.t.Context(), client.TaskFilter{TimerID: tm.ID, Statuses: []string{status}}, 100, "")
		if err != nil {
			s.t.Fatal(err)
		}
		for _, x := range page.Tasks {
			if x.AttemptCount == attempts {
				key = x.Key
				return true
			}
		}
		return false
	})
	return key
}
