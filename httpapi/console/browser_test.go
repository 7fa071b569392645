package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"xtimer/httpapi/client"
)

// browser is one tab of a real one. It notes what must not be: errors on the
// console, and requests to other hosts.
type browser struct {
	*node
	ctx     context.Context
	mu      sync.Mutex
	faults  []string
	seen    map[string]bool // buttons that were there: the page, and the button's id
	clicked map[string]bool
	checked map[string]bool // kinds of pages that axe has looked at, by language
}

// chromium is the browser's program.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Fatal("there is no chromium here: `make test` installs it")
	return ""
}

func open(t *testing.T, n *node) *browser {
	t.Helper()
	alloc, cancel := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-background-timer-throttling", true), chromedp.Flag("disable-renderer-backgrounding", true),
		chromedp.Flag("lang", "en"), chromedp.Env("LANGUAGE=en"),
	)
	t.Cleanup(cancel)
	ctx, cancel2 := chromedp.NewContext(alloc)
	t.Cleanup(cancel2)
	b := &browser{node: n, ctx: ctx, seen: map[string]bool{}, clicked: map[string]bool{}, checked: map[string]bool{}}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatalf("cannot start chromium: %v", err)
	}
	return b
}

func (b *browser) note(ev any) {
	fault := ""
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		fault = fmt.Sprintf("exception: %+v", ev.ExceptionDetails)
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			fault = fmt.Sprintf("console.%s", ev.Type)
			for _, a := range ev.Args {
				fault += " " + string(a.Value) + a.Description
			}
		}
	case *log.EventEntryAdded:
		// A page that is refused on purpose is logged as a failed load.
		if ev.Entry.Level == log.EntryLevelError && !strings.Contains(ev.Entry.Text, "status of 4") {
			fault = "log: " + ev.Entry.Text + " " + ev.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		// The browser's own icons are data: URLs; the policy lets a page have none.
		if u := ev.Request.URL; !strings.HasPrefix(u, b.url+"/") && !strings.HasPrefix(u, "data:") {
			fault = "a request to " + u
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

// clean fails when something was noted.
func (b *browser) clean(t *testing.T, where string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		t.Errorf("%s: %s", where, f)
	}
	b.faults = nil
}

// eval runs a script; err is one of the browser, as while a page is being left.
func eval[T any](b *browser, script string) (T, error) {
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

func (b *browser) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*time.Minute)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// wait waits until a script says true.
func (b *browser) wait(t *testing.T, script string) {
	t.Helper()
	var last error
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var done bool
		if done, last = eval[bool](b, "!!("+script+")"); last == nil && done {
			return
		}
	}
	at, _ := eval[string](b, "location.href + '\\n' + document.body.innerText")
	t.Fatalf("never came true: %s (%v) at %s", script, last, at)
}

const loaded = `document.readyState === "complete" && document.documentElement.classList.contains("js") && !window.left`

// visit opens a page and waits until it is whole.
func (b *browser) visit(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.url+path))
	b.wait(t, loaded)
	b.look(t)
}

// look notes the buttons of the page, and has axe look at the first of its kind,
// light and dark.
func (b *browser) look(t *testing.T) {
	t.Helper()
	names, err := eval[[]string](b, `[...document.querySelectorAll("button, a.button, .pages a, .crumbs a[id], th a")].map(`+nameOf+`)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b.seen[name] = true
	}
	// Not while parts of it come and go: the same kind comes again, at rest.
	kind, err := eval[string](b, `document.querySelector("[hx-trigger='every 500ms'], [hx-trigger='every 1s']") ? "" : document.documentElement.lang + " " + `+kindOf)
	if err != nil {
		t.Fatal(err)
	}
	if kind == "" || b.checked[kind] {
		return
	}
	_, path, _ := strings.Cut(kind, " ")
	inColours := b.checked[path]
	b.checked[kind], b.checked[path] = true, true
	b.axe(t, kind)
	if inColours {
		return // the other colours are the same in each language
	}
	const theme = `document.documentElement.dataset.theme`
	was, err := eval[string](b, theme+` || ""`)
	if err != nil {
		t.Fatal(err)
	}
	other := "dark"
	if was == other {
		other = "light"
	}
	if _, err := eval[string](b, theme+" = "+quoted(other)); err != nil {
		t.Fatal(err)
	}
	b.axe(t, kind+" "+other)
	if _, err := eval[string](b, theme+" = "+quoted(was)); err != nil {
		t.Fatal(err)
	}
}

// kindOf is the kind of a page: its path, without the ids in it.
const kindOf = `location.pathname.replace(/^\/(timers|tasks|work)\/(?!(new|act)$)[^/]+/, "/$1/*")`

// nameOf is a button's name: the kind of its page, and its id; the head of a page
// is the same on all. One row's button stands for those of all.
const nameOf = `(b => (b.closest("main") ? ` + kindOf + ` + " " : "") + (b.id.replace(/^(ack|unmute|test|drain|undrain|evict)-.*$/, "$1") || b.outerHTML))`

// click presses what has the id, and waits until then is true; a click that
// leaves the page waits for the next one.
func (b *browser) click(t *testing.T, id, then string) {
	t.Helper()
	b.wait(t, fmt.Sprintf("document.getElementById(%q)", id))
	name, err := eval[string](b, fmt.Sprintf("(b => { const name = %s(b); b.click(); return name })(document.getElementById(%q))", nameOf, id))
	if err != nil {
		t.Fatalf("cannot click %s: %v", id, err)
	}
	b.clicked[name] = true
	b.wait(t, then)
}

// quiet waits until a second of the browser's own time has passed without a
// request: what was typed has brought its list, and nothing chosen in it will be
// swapped away.
func (b *browser) quiet(t *testing.T) {
	t.Helper()
	b.wait(t, `window.busy = performance.now()`)
	b.wait(t, `document.querySelector(".htmx-request") ? !(window.busy = performance.now()) : performance.now() - window.busy > 1000`)
}

// leave is a click that leads to another page.
func (b *browser) leave(t *testing.T, id, path string) {
	t.Helper()
	if _, err := eval[bool](b, "window.left = true"); err != nil {
		t.Fatal(err)
	}
	b.click(t, id, loaded+" && (location.pathname + location.search).startsWith("+quoted(path)+")")
	b.look(t)
}

func quoted(s string) string { j, _ := json.Marshal(s); return string(j) }

// fill types into an input.
func (b *browser) fill(t *testing.T, selector, value string) {
	t.Helper()
	script := fmt.Sprintf(`(() => { const i = document.querySelector(%s); i.value = %s; i.dispatchEvent(new Event("input", {bubbles: true})); i.dispatchEvent(new Event("change", {bubbles: true})); return true })()`,
		quoted(selector), quoted(value))
	b.wait(t, script)
}

func (b *browser) tick(t *testing.T, selector string) {
	t.Helper()
	b.wait(t, fmt.Sprintf(`(() => { const i = document.querySelector(%s); if (!i.checked) i.click(); return i.checked })()`, quoted(selector)))
}

// axeScript is axe-core.
var axeScript = sync.OnceValue(func() string {
	b, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		panic(err)
	}
	return string(b)
})

// axe fails on what keeps people out.
func (b *browser) axe(t *testing.T, where string) {
	t.Helper()
	if there, err := eval[bool](b, "!!window.axe"); err != nil || !there {
		b.do(t, chromedp.Evaluate[chromedp.Void](axeScript()))
	}
	type violation struct {
		ID     string   `json:"id"`
		Impact string   `json:"impact"`
		Nodes  []string `json:"nodes"`
	}
	found, err := eval[[]violation](b, `axe.run({resultTypes: ["violations"]}).then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.map(n => n.html + " " + n.failureSummary)})))`)
	if err != nil {
		t.Fatalf("%s: axe: %v", where, err)
	}
	for _, v := range found {
		t.Errorf("%s: %s (%s): %s", where, v.ID, v.Impact, strings.Join(v.Nodes, "\n\t"))
	}
}

// TestBrowser goes over every page in English and light, where it uses the keyboard, and in
// Chinese and dark, where it presses every button.
func TestBrowser(t *testing.T) {
	n := serveAs(t, target{}, Config{Cluster: true}, tokens...)
	paths := n.pages()
	b := open(t, n)
	for _, x := range []struct{ lang, theme, title string }{{"en", "light", "Overview"}, {"zh", "dark", "总览"}} {
		t.Run(x.lang, func(t *testing.T) {
			b.signIn(t, x.lang, x.theme)
			for _, path := range paths {
				kinds := len(b.checked)
				b.visit(t, path)
				if path == "/nothing" {
					continue
				}
				if len(b.checked) == kinds { // another page of its kind, or one that is not at rest
					b.axe(t, x.lang+" "+path)
				}
				b.wait(t, fmt.Sprintf(`document.documentElement.lang.startsWith(%q) && document.documentElement.dataset.theme === %q`, x.lang, x.theme))
				b.narrow(t, path)
				if x.lang == "en" {
					b.keyboard(t, path)
				}
			}
			b.wait(t, `!window.pwned && document.title !== "pwned"`)
			b.clean(t, "looking")
			if x.lang == "zh" {
				b.press(t, x.lang)
				b.clean(t, "pressing")
			}
		})
	}
	for _, lang := range []string{"en", "zh-CN"} {
		for _, kind := range []string{"/", "/sign-in", "/timers", "/timers/new", "/timers/*", "/timers/*/edit", "/tasks", "/tasks/*", "/dead", "/upcoming", "/upcoming/hours", "/apps", "/live", "/system", "/flows", "/cluster", "/alerts", "/alerts/rule", "/alerts/channel"} {
			if !b.checked[lang+" "+kind] {
				t.Errorf("axe has not looked at %s in %s", kind, lang)
			}
		}
	}
	for _, kind := range []string{"/timers/act", "/timers/*/delete", "/dead/retry", "/work/*"} { // a button leads there
		if !b.checked[kind] {
			t.Errorf("axe has not looked at %s", kind)
		}
	}
	var missed []string
	for name := range b.seen {
		if !b.clicked[name] {
			missed = append(missed, name)
		}
	}
	if len(missed) > 0 {
		slices.Sort(missed)
		t.Errorf("nobody pressed %s", strings.Join(missed, ", "))
	}
}

// narrow sees that a page fits into 380 px.
func (b *browser) narrow(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.EmulateViewport(380, 800, chromedp.EmulateMobile))
	over, err := eval[[]string](b, `document.documentElement.scrollWidth <= 380 ? [] : [...document.querySelectorAll("main *, header *")].filter(e => e.getBoundingClientRect().right > 381 && !e.closest(".scroll, pre")).map(e => e.outerHTML.slice(0, 200)).concat("width " + document.documentElement.scrollWidth)`)
	if err != nil {
		t.Fatal(err)
	}
	if len(over) > 0 {
		t.Errorf("%s is too wide for 380 px: %s", path, strings.Join(over, "\n\t"))
	}
	b.do(t, chromedp.EmulateViewport(1280, 900))
}

// keyboard sees that all that can be used is reached by Tab alone, each with a
// frame around it, and that the first stop leads past the head.
func (b *browser) keyboard(t *testing.T, path string) {
	t.Helper()
	most, err := eval[int](b, `(() => {
		document.getElementById("pause")?.click();
		window.stops = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter(e => e.checkVisibility() && !e.disabled);
		window.unmet = new Set(stops); window.bare = [];
		document.addEventListener("focusin", e => { unmet.delete(e.target); if (getComputedStyle(e.target).outlineStyle === "none") bare.push(e.target.outerHTML.slice(0, 120)); });
		return stops.length + 8 * stops.filter(e => e.type === "datetime-local").length })()`) // its parts are stops, too
	if err != nil {
		t.Fatal(err)
	}
	for range most {
		b.do(t, chromedp.KeyEvent(kb.Tab))
	}
	missed, err := eval[[]string](b, `[...unmet].map(e => "not reached: " + e.outerHTML.slice(0, 120)).concat(bare.map(h => "no frame: " + h))`)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range missed {
		t.Errorf("%s by keyboard: %s", path, m)
	}
	b.visit(t, path)
	b.do(t, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	b.wait(t, `location.hash === "#main" && (!document.querySelector("main a[href], main button, main input:not([type=hidden])") || document.activeElement.closest("main"))`)
}

// signIn signs in, and chooses language and theme by their buttons.
func (b *browser) signIn(t *testing.T, lang, theme string) {
	t.Helper()
	if _, err := chromedp.Call(b.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	b.visit(t, "/")
	b.wait(t, `location.pathname === "/sign-in"`)
	b.fill(t, "#token", "all-admin")
	b.leave(t, "sign-in", "/")
	b.leave(t, "zone-utc", "/")
	b.leave(t, "zone-mine", "/")
	b.leave(t, "zone-timer", "/")
	if lang == "zh" {
		b.leave(t, "lang-zh", "/")
		b.leave(t, "lang-en", "/")
		b.leave(t, "lang-zh", "/")
	}
	b.leave(t, "theme-light", "/")
	b.leave(t, "theme-auto", "/")
	b.leave(t, "theme-dark", "/")
	if theme == "light" {
		b.leave(t, "theme-light", "/")
	}
	b.wait(t, fmt.Sprintf("document.documentElement.dataset.theme === %q", theme))
}

// press presses every button of every page.
func (b *browser) press(t *testing.T, lang string) {
	t.Helper()
	name := "pressed-" + lang

	// The overview moves by itself, until it is paused.
	b.visit(t, "/")
	b.click(t, "pause", `document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	b.click(t, "pause", `document.getElementById("pause").getAttribute("aria-pressed") === "false"`)
	b.wait(t, `document.querySelector(".chart canvas")`)
	b.wait(t, `[...document.querySelectorAll("#now, #below")].every(e => e.former = true)`)
	b.wait(t, `[...document.querySelectorAll("#now, #below")].filter(e => !e.former).length === 2`)
	b.leave(t, "m1", "/upcoming?at=")
	b.leave(t, "next", "/upcoming?at=")
	b.leave(t, "former", "/upcoming?at=")
	b.leave(t, "hours", "/upcoming/hours?app=")
	b.fill(t, "#app", "shop")
	b.leave(t, "go", "/upcoming/hours?app=shop")
	b.visit(t, "/upcoming")
	b.fill(t, "#app", "shop")
	b.leave(t, "go", "/upcoming?at=")
	b.wait(t, `location.search.endsWith("app=shop")`)

	// A new timer, with its schedule tried first.
	b.visit(t, "/timers")
	b.leave(t, "new-timer", "/timers/new")
	b.leave(t, "cancel", "/timers")
	b.leave(t, "new-timer", "/timers/new")
	b.fill(t, "#f-app", "shop")
	b.fill(t, "#f-name", name)
	b.fill(t, "#f-kind", "cron")
	b.fill(t, "#f-when", "61 * * * *")
	b.wait(t, `document.querySelector("#preview .err")`)
	b.fill(t, "#f-when", "0 9 29 2 *")
	b.wait(t, `document.querySelector("#preview .warn") && document.querySelector("#preview time")`)
	b.wait(t, `document.title.startsWith(document.querySelector("h1").firstChild.textContent.trim())`) // the preview brings no other title
	b.leave(t, "save", "/timers/new")                                                                  // without a URL it is refused
	b.wait(t, `document.querySelector("[role=alert]") && document.querySelector("#f-name").value === `+quoted(name))
	b.fill(t, `[name="callback.url"]`, "http://target.test/bad")
	b.fill(t, `[name="retry.max_attempts"]`, "2")
	b.fill(t, `[name="retry.backoff"]`, "1ms")
	b.leave(t, "save", "/timers/")
	b.wait(t, `document.querySelector("h1").innerText.includes(`+quoted(name)+`)`)
	tm, err := b.api.GetByName(t.Context(), "shop", name)
	if err != nil {
		t.Fatal(err)
	}

	// Run, and run again.
	b.leave(t, "run", "/tasks/")
	b.wait(t, `document.querySelector(".s-dead") && document.querySelectorAll(".fall li").length === 2`)
	b.wait(t, `[...document.querySelectorAll(".phases rect")].every(r => r.getBBox().width > 0) && document.querySelectorAll(".phases tr").length === 13`)
	b.look(t)
	b.click(t, "copy-0", `document.getElementById("copy-0").textContent === document.getElementById("copy-0").dataset.done`)
	b.leave(t, "retry", "/tasks/")
	b.wait(t, `document.querySelectorAll(".fall li").length === 4`)

	// Change, disable, enable, delete.
	b.visit(t, "/timers/"+tm.ID)
	b.click(t, "copy", `document.getElementById("copy").textContent === document.getElementById("copy").dataset.done`)
	b.leave(t, "clone", "/timers/new?from="+tm.ID)
	b.wait(t, `document.querySelector("#f-name").value === `+quoted(name+"-copy")+` && document.querySelector("#f-when").value === "0 9 29 2 *"`)
	b.leave(t, "cancel", "/timers")
	b.visit(t, "/timers/"+tm.ID)
	b.leave(t, "edit", "/timers/"+tm.ID+"/edit")
	b.leave(t, "cancel", "/timers/"+tm.ID)
	b.leave(t, "edit", "/timers/"+tm.ID+"/edit")
	b.fill(t, "#f-when", "0 9 * * MON")
	b.leave(t, "save", "/timers/"+tm.ID)
	b.wait(t, `document.querySelectorAll(".versions > li").length === 2 && document.querySelector(".versions ins")`)
	b.fill(t, "#reason", "too loud")
	b.fill(t, "#until", "2099-11-20T17:00:00")
	b.leave(t, "disable", "/timers/"+tm.ID)
	b.wait(t, `document.body.innerText.includes("too loud") && document.body.innerText.includes("2099-11-20 17:00:00.000 UTC")`)
	b.leave(t, "enable", "/timers/"+tm.ID)
	for range 51 {
		b.run(tm.ID)
	}
	b.visit(t, "/timers/"+tm.ID)
	b.leave(t, "older", "/timers/"+tm.ID+"?cursor=")

	// Tasks: by app and time, page by page.
	b.visit(t, "/tasks")
	for _, r := range []string{"within-1h", "within-24h", "within-7d"} {
		b.leave(t, r, "/tasks?from=")
	}
	b.fill(t, "#app", "shop")
	b.fill(t, "#status", "problems")
	b.fill(t, "#q", name)
	b.fill(t, "#code", "5xx")
	b.leave(t, "go", "/tasks?q="+name)
	b.wait(t, `document.querySelectorAll("#tasks tbody .s-dead").length === 50 && document.querySelector("#from").value`)
	b.leave(t, "older", "/tasks?")
	b.leave(t, "first-page", "/tasks?")
	b.click(t, "csv", "true")

	// The keys: ? shows them, / leads to the search.
	b.do(t, chromedp.KeyEvent("?"))
	b.wait(t, `document.getElementById("keys").open`)
	b.axe(t, lang+" keys")
	b.click(t, "keys-close", `!document.getElementById("keys").open`)
	b.click(t, "help", `document.getElementById("keys").open`)
	b.do(t, chromedp.KeyEvent(kb.Escape))
	b.wait(t, `!document.getElementById("keys").open`)
	b.do(t, chromedp.KeyEvent("/"))
	b.wait(t, `document.activeElement.id === "q"`)
	b.do(t, chromedp.KeyEvent("/?"))
	b.wait(t, `document.activeElement.value.endsWith("/?") && !document.getElementById("keys").open`)
	b.visit(t, "/system")
	b.do(t, chromedp.KeyEvent("/"))
	b.wait(t, `location.pathname === "/timers" && document.activeElement.closest(".search")`)

	// Dead letters: all of them, by their groups; slowly, and stopped.
	b.visit(t, "/dead")
	b.fill(t, "#timer_id", tm.ID)
	b.leave(t, "go", "/dead?app=&timer_id="+tm.ID)
	b.fill(t, "#rate", "1")
	b.tick(t, "input[name=group]")
	b.wait(t, `document.getElementById("selected").innerText.includes("1")`)
	b.leave(t, "retry", "/dead/retry")
	b.leave(t, "cancel", "/dead")
	b.visit(t, "/dead?timer_id="+tm.ID)
	b.fill(t, "#rate", "1")
	b.tick(t, "input[name=group]")
	b.leave(t, "retry", "/dead/retry")
	b.wait(t, `document.querySelector("#typed").value = document.querySelector("label[for=typed]").innerText.match(/\d+/)[0]`) // of so many, the number is typed
	b.leave(t, "confirm", "/work/")
	b.wait(t, `document.querySelector("progress").value >= 1`)
	b.look(t)
	b.leave(t, "stop", "/work/")
	b.wait(t, `document.querySelector("#work").dataset.ended === "true"`)
	b.look(t)
	b.leave(t, "back", "/dead?")

	// What was dismissed leaves the list, and is found by the filter.
	b.visit(t, "/dead?timer_id="+tm.ID)
	b.wait(t, `document.querySelector("details").open = true`)
	key, err := eval[string](b, `document.querySelector("input[name=key]").value`)
	if err != nil {
		t.Fatal(err)
	}
	b.tick(t, "input[name=key]")
	b.leave(t, "dismiss", "/dead/dismiss")
	b.leave(t, "cancel", "/dead")
	b.visit(t, "/dead?timer_id="+tm.ID)
	b.tick(t, "input[name=key]")
	b.leave(t, "dismiss", "/dead/dismiss")
	b.leave(t, "confirm", "/work/")
	b.wait(t, `document.querySelector("#work").dataset.ended === "true"`)
	b.leave(t, "back", "/dead?")
	b.wait(t, `!document.querySelector("input[name=key][value='`+key+`']")`)
	b.tick(t, "#dismissed")
	b.leave(t, "go", "/dead?")
	b.wait(t, `document.querySelector("input[name=key]").value === `+quoted(key))
	single, err := eval[string](b, `document.querySelector(".list a[href^='/tasks/']").getAttribute("href")`)
	if err != nil {
		t.Fatal(err)
	}
	b.visit(t, single)
	b.wait(t, `!document.getElementById("dismiss") && document.getElementById("retry")`)
	b.leave(t, "retry", "/tasks/") // which ends the dismissal
	b.wait(t, `document.querySelector(".s-dead")`)
	b.leave(t, "dismiss", "/tasks/")
	b.wait(t, `!document.getElementById("dismiss")`)

	// The list: found as one types, chosen, and changed.
	for i := range 3 {
		b.timer("list", fmt.Sprintf("%s-%d", name, i), "/ok")
	}
	b.visit(t, "/timers")
	b.fill(t, "#name", name+"-")
	b.wait(t, `document.querySelectorAll("#list tbody tr").length === 3 && location.search.includes("name=")`)
	b.quiet(t)
	b.wait(t, `document.getElementById("list").former = true`)
	b.click(t, "go", `!document.getElementById("list").former && document.querySelectorAll("#list tbody tr").length === 3`)
	b.quiet(t)
	b.click(t, "page-all", `document.getElementById("selected").innerText.includes("3")`)
	b.leave(t, "act-disable", "/timers/act")
	b.leave(t, "cancel", "/timers?")
	act := func(button string, all bool, done string) {
		t.Helper()
		b.visit(t, "/timers?app=list&name="+url.QueryEscape(name+"-"))
		if all {
			b.tick(t, "#all")
		} else {
			b.click(t, "page-all", `document.querySelectorAll("#list input[name=id]:checked").length === 3`)
		}
		b.leave(t, button, "/timers/act")
		b.leave(t, "confirm", "/work/")
		b.wait(t, `document.querySelector("#work").dataset.ended === "true" && document.body.innerText.match(/\b3 (of|\/) 3\b/)`)
		b.look(t)
		b.leave(t, "back", "/timers?")
		b.wait(t, done)
	}
	act("act-disable", false, `document.querySelectorAll("#list .s-disabled").length === 3`)
	act("act-enable", true, `document.querySelectorAll("#list .s-enabled").length === 3`)
	act("act-run", false, `true`)
	for _, column := range []string{"name", "status", "next", "updated"} {
		b.leave(t, "sort-"+column, "/timers?")
		b.wait(t, `document.getElementById("sort-`+column+`").closest("th").ariaSort === "ascending"`)
	}
	b.visit(t, "/timers?app=list&limit=2")
	b.leave(t, "next-page", "/timers?")
	b.leave(t, "first-page", "/timers?")
	act("act-delete", true, `document.querySelectorAll("#list input[name=id]").length === 0`)
	b.visit(t, "/timers/"+tm.ID)
	b.leave(t, "delete", "/timers/"+tm.ID+"/delete")
	b.leave(t, "cancel", "/timers/"+tm.ID)
	b.leave(t, "delete", "/timers/"+tm.ID+"/delete")
	b.leave(t, "confirm", "/timers")

	b.visit(t, "/system")
	b.leave(t, "backup", "/system/backup")
	b.wait(t, `document.querySelector("[role=status]")`)
	b.leave(t, "backup", "/system/backup")
	b.wait(t, `document.querySelector("[role=status]")`)

	b.live(t)
	b.flows(t)
	b.alerts(t, name)
	b.nodes(t)
	b.visit(t, "/")
	b.leave(t, "sign-out", "/sign-in")
}

// flows pauses and resumes all apps, an app and a key, by the page and by the banner.
func (b *browser) flows(t *testing.T) {
	t.Helper()
	b.visit(t, "/flows")
	for _, button := range []string{"pause-app", "end-pause-all", "pause-app", "resume-app"} {
		b.leave(t, button, "/flows")
	}
	b.fill(t, "#app", "shop")
	b.leave(t, "show", "/flows?app=shop")
	for _, button := range []string{"pause-app", "end-pause-app", "pause-app", "resume-app", "pause-stripe", "resume-stripe"} {
		b.leave(t, button, "/flows?app=shop")
	}
}

// nodes drains and evicts a node.
func (b *browser) nodes(t *testing.T) {
	t.Helper()
	b.visit(t, "/cluster")
	b.click(t, "pause", `document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	for _, action := range []string{"drain-0", "evict-1"} {
		b.leave(t, action, "/cluster")
		b.wait(t, `document.getElementById("confirm") && !window.pwned`)
		b.leave(t, "cancel", "/cluster")
		b.leave(t, action, "/cluster")
		b.leave(t, "confirm", "/cluster")
	}
	b.leave(t, "undrain-1", "/cluster")
}

// alerts acknowledges an incident, and tests channels.
func (b *browser) alerts(t *testing.T, name string) {
	t.Helper()
	b.incident("shop", name)
	b.visit(t, "/alerts")
	b.fill(t, "#app", "shop")
	b.leave(t, "show", "/alerts?app=shop")
	b.wait(t, `document.getElementById("open").former = true`)
	b.wait(t, `!document.getElementById("open").former`) // it moves by itself
	b.click(t, "pause", `document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	b.click(t, "pause", `document.getElementById("pause").getAttribute("aria-pressed") === "false"`)
	b.fill(t, "#open [name=note]", "seen by "+name) // nor is it swapped away
	b.leave(t, "ack-0", "/alerts?app=shop")
	b.wait(t, `document.getElementById("open").innerText.includes("seen by `+name+`") && !window.pwned`)
	for _, kind := range []string{"rule", "channel"} {
		path := "/alerts/" + kind
		b.leave(t, "new-"+kind, path)
		b.leave(t, "cancel", "/alerts?app=shop")
		b.leave(t, "new-"+kind, path)
		b.leave(t, "save", path)
		b.wait(t, `document.querySelector("#f-name").getAttribute("aria-invalid") === "true"`)
		b.fill(t, "#f-name", "made")
		if kind == "rule" {
			b.tick(t, "#channel-ops")
		} else {
			b.fill(t, "#f-url", "http://x.test/")
		}
		b.leave(t, "save", "/alerts?app=shop")
		b.visit(t, path+"?app=shop&name=made")
		b.leave(t, "delete", "/alerts")
		b.leave(t, "cancel", "/alerts?app=shop")
		b.visit(t, path+"?app=shop&name=made")
		b.leave(t, "delete", "/alerts")
		b.leave(t, "confirm", "/alerts?app=shop")
	}
	b.fill(t, "#mute-prefix", "test")
	b.leave(t, "mute", "/alerts?app=shop")
	b.wait(t, `document.querySelectorAll("button[value=unmute]").length >= 1`)
	for more := true; more; {
		id, err := eval[string](b, `document.querySelector("button[value=unmute]").id`)
		if err != nil {
			t.Fatal(err)
		}
		b.leave(t, id, "/alerts?app=shop")
		if more, err = eval[bool](b, `!!document.querySelector("button[value=unmute]")`); err != nil {
			t.Fatal(err)
		}
	}
	for channel, role := range map[string]string{"ops": "status", "mail": "status", "bad": "alert"} {
		b.leave(t, "test-"+channel, "/alerts")
		b.wait(t, `document.querySelector("main [role=`+role+`]")`)
	}
}

// live sees tasks come in as they end, and stand still while it is paused.
func (b *browser) live(t *testing.T) {
	t.Helper()
	tm := b.timer("shop", "live-"+fmt.Sprint(time.Now().UnixNano()), "/no")
	b.visit(t, "/live?app=shop&status=failed")
	state := func(name string) string {
		return `document.getElementById("live-state").textContent.startsWith(document.getElementById("live-state").dataset.` + name + `)`
	}
	row := func(task *client.Task) string { return `document.querySelector("a[href='/tasks/` + task.Key + `']")` }
	b.wait(t, state("open"))
	b.wait(t, row(b.run(tm.ID)))
	hostile, err := b.api.Create(t.Context(), client.Definition{
		App: "shop", Name: fmt.Sprint("live", time.Now().UnixNano(), evil), Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://target.test/no"},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(t, row(b.run(hostile.Timer.ID)))
	b.wait(t, `!window.pwned && document.title !== "pwned"`)
	b.click(t, "pause", state("paused"))
	hidden := b.run(tm.ID)
	b.wait(t, `/\d/.test(document.getElementById("live-state").textContent)`) // it has come, and was left out
	b.click(t, "pause", state("open"))
	b.wait(t, row(b.run(tm.ID)))
	b.wait(t, "!"+row(hidden))
	b.visit(t, "/live")
	b.fill(t, "#app", "shop")
	b.leave(t, "go", "/live?app=shop")
	b.leave(t, "older", "/live?")
}
