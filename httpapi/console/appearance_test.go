package console

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"xtimer/httpapi/client"
)

// TestTheme: the first click on the button for the theme changes what is seen, whatever
// the machine prefers.
func TestTheme(t *testing.T) {
	b := open(t, serve(t))
	const background = `getComputedStyle(document.body).backgroundColor`
	for _, prefers := range []string{"light", "dark"} {
		_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: prefers}},
		})
		if err != nil {
			t.Fatal(err)
		}
		b.visit(t, "/timers")
		was, err := eval[string](b, background)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := eval[[]string](b, `[...document.querySelectorAll("button[name=theme]")].filter(x => x.checkVisibility()).map(x => x.id)`)
		if err != nil || len(shown) != 1 || shown[0] == "theme-"+prefers {
			t.Fatalf("where the machine prefers %s: %v, %v", prefers, shown, err)
		}
		b.leave(t, shown[0], "/timers")
		if is, err := eval[string](b, background); err != nil || is == was {
			t.Errorf("where the machine prefers %s, the first click changes nothing: %s, %v", prefers, is, err)
		}
		b.leave(t, "theme-auto", "/timers")
		b.wait(t, background+` === `+quoted(was))
	}
	b.clean(t, "choosing a theme")
}

// TestZoneButtons: the zone of the page is written beside its times, and in its chart. It is the
// timer's, UTC or that of the browser, as the visitor chooses.
func TestZoneButtons(t *testing.T) {
	n := serve(t)
	r, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "zoned", Schedule: client.Schedule{Cron: "0 9 20 1 *", TimeZone: "America/New_York"}, Callback: client.Callback{URL: "http://target.test/ok"},
	})
	if err != nil {
		t.Fatal(err)
	}
	n.run(r.Timer.ID)
	b := open(t, n)
	if _, err := chromedp.Call(b.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Shanghai"}); err != nil {
		t.Fatal(err)
	}
	path := "/timers/" + r.Timer.ID
	b.visit(t, path)
	for _, x := range []struct{ button, due, chart string }{
		{"", "-01-20 09:00:00.000 UTC-5", "UTC-"},
		{"zone-utc", "-01-20 14:00:00.000 UTC", "UTC+0"},
		{"zone-mine", "-01-20 22:00:00.000 UTC+8", "UTC+8"},
		{"zone-timer", "-01-20 09:00:00.000 UTC-5", "UTC-"},
	} {
		if x.button != "" {
			b.leave(t, x.button, path)
		}
		b.wait(t, `document.querySelector(".dues time").innerText.endsWith(`+quoted(x.due)+`)`)
		b.wait(t, `document.querySelector(".u-legend th").innerText.startsWith(`+quoted(x.chart)+`)`)
	}
	b.clean(t, "choosing a zone")
}

// TestPhone: at a width of 390 px no table has to be moved sideways: each row is a card,
// and each value has its name beside it.
func TestPhone(t *testing.T) {
	n := serve(t)
	paths := n.pages()
	b := open(t, n)
	b.do(t, chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	seen := 0
	for _, path := range paths {
		b.visit(t, path)
		faults, err := eval[[]string](b, `[...document.querySelectorAll("table.cards")].flatMap(table => {
			const faults = [], box = table.closest(".scroll");
			if (box.scrollWidth > box.clientWidth) faults.push("the table is " + box.scrollWidth + " px wide in " + box.clientWidth);
			for (const cell of table.querySelectorAll("tbody tr:not(.none) td")) {
				if (!cell.dataset.label && !cell.matches(".name, .tick")) faults.push("no name beside " + cell.innerHTML.slice(0, 80));
				if (cell.innerText && getComputedStyle(cell).display !== "block") faults.push("no card: " + cell.outerHTML.slice(0, 80));
			}
			return faults;
		}).concat(document.documentElement.scrollWidth > 390 ? ["the page is " + document.documentElement.scrollWidth + " px wide"] : [])`)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			t.Errorf("%s: %s", path, f)
		}
		rows, err := eval[int](b, `document.querySelectorAll("table.cards tbody tr:not(.none)").length`)
		if err != nil {
			t.Fatal(err)
		}
		seen += rows
		if !strings.HasPrefix(path, "/nothing") {
			b.axe(t, "phone "+path)
		}
	}
	if seen < 10 {
		t.Errorf("%d cards were seen", seen)
	}
	b.clean(t, "on a phone")
}
