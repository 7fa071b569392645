package console

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/httpapi/client"
)

// held answers when it is let.
type held struct{ let chan struct{} }

func (h held) Call(*engine.Call) engine.Outcome {
	<-h.let
	return engine.Outcome{Sent: time.Now(), Code: 200}
}

// TestWaiting: the overview tells what waits from what is in a call, by those
// words.
func TestWaiting(t *testing.T) {
	h := held{make(chan struct{})}
	n := serveCalling(t, h)
	defer close(h.let)
	tm := n.timer("shop", "queue", "/ok")
	if _, err := n.api.Patch(t.Context(), tm.ID, map[string]any{"overlap": "queue"}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // one is called, two wait for it
		if _, err := n.api.Run(t.Context(), tm.ID); err != nil {
			t.Fatal(err)
		}
	}
	v := n.visitor()
	tile := func(lang, id string) (name, count string) {
		m := regexp.MustCompile(`id="` + id + `"><dt>([^<]+)</dt><dd>([^<]+)</dd>`).FindStringSubmatch(v.get("/", "Accept-Language", lang).body)
		if m == nil {
			t.Fatalf("no %s on the overview", id)
		}
		return m[1], m[2]
	}
	n.until(func() bool {
		_, flying := tile("en", "in-flight")
		_, waiting := tile("en", "waiting")
		return flying == "1" && waiting == "2"
	})
	for lang, want := range map[string][2]string{"en": {"Waiting", "In flight"}, "zh": {"等待中", "进行中"}} {
		a, _ := tile(lang, "waiting")
		b, _ := tile(lang, "in-flight")
		if got := [2]string{a, b}; got != want {
			t.Errorf("%s: %v, want %v", lang, got, want)
		}
	}
}

// TestVerdict: "on time" is said of calls that were made, and only while nothing
// speaks against it.
func TestVerdict(t *testing.T) {
	good := func() *overviewData {
		d := &overviewData{}
		d.LastMinute.FiresPerSecond, d.LastMinute.LatenessP50MS, d.LastMinute.LatenessP99MS = 8, 0.4, 1.2
		d.Tiers = map[string]bool{"cold": true, "warm": true}
		d.Trend.Minutes = make([]client.TrendMinute, 30)
		d.Trend.Minutes[0].Failures = 617 // half an hour ago
		return d
	}
	for name, x := range map[string]struct {
		change func(*overviewData)
		level  string
		text   string
	}{
		"good":     {func(*overviewData) {}, "good", "Firing on time."},
		"empty":    {func(d *overviewData) { d.LastMinute.FiresPerSecond = 0 }, "none", "No calls in the last minute."},
		"p99":      {func(d *overviewData) { d.LastMinute.LatenessP99MS = 1020 }, "bad", "1% of the calls in the last minute were later than 1.02 s."},
		"overdue":  {func(d *overviewData) { d.Tasks.OldestOverdueMS = 1500 }, "bad", "has waited for 1.50 s."},
		"failures": {func(d *overviewData) { d.Trend.Minutes[25].Failures = 617 }, "bad", "Failed tasks in the last 10 minutes: 617."},
		"backlog":  {func(d *overviewData) { d.SettleBacklog = 20_000 }, "bad", "20\u202f000 results wait to be stored."},
		"tier":     {func(d *overviewData) { d.Tiers["warm"] = false }, "bad", "The warm tier is unavailable."},
		"ready":    {func(d *overviewData) { d.NotReady = "draining" }, "bad", "Not ready: draining"},
	} {
		d := good()
		x.change(d)
		got := (&visit{Language: "en"}).verdict(d)
		if got.Level != x.level || !strings.Contains(strings.Join(got.Texts, " "), x.text) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestNoLateness: an empty server has no lateness to show.
func TestNoLateness(t *testing.T) {
	page := serve(t).visitor().get("/").body
	if !strings.Contains(page, `class="verdict none"`) || strings.Contains(page, "0.000 ms") || !strings.Contains(page, "p99 – · p99.9 –") {
		t.Error(page)
	}
	if cols := chartOf([]client.TrendMinute{{}, {FiresPerSecond: 1, LatenessP50MS: 2}}); cols[1][0] != nil || *cols[1][1] != 2 || *cols[4][0] != 0 {
		t.Error("a minute without calls has a lateness in the chart")
	}
}

// TestWithoutRedis: no page says that a tier is available which the server does not have.
func TestWithoutRedis(t *testing.T) {
	v := serve(t).visitor()
	for _, page := range []string{"/", "/system"} {
		for lang, want := range map[string]string{
			"en": `<dt>warm</dt><dd><span class="muted">none: Redis is not used</span>`,
			"zh": `<dt>温层</dt><dd><span class="muted">无：未使用 Redis</span>`,
		} {
			if body := v.get(page, "Accept-Language", lang).body; !strings.Contains(body, want) {
				t.Errorf("%s in %s does not have %s", page, lang, want)
			}
		}
	}
}
