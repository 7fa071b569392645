package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

const fullDefinition = `{"app":"shop","name":"full","schedule":{"cron":"0 9 * * MON-FRI","time_zone":"Asia/Shanghai","start_at":"2027-01-01T00:00:00.000Z","max_runs":100,"jitter":"5s"},` +
	`"callback":{"url":"https://x.example/","method":"PUT","headers":{"A":"b","Authorization":"Bearer hunter2"},"body":{"a":[1,{"big":12345678901234567890}]},"timeout":"20s","success":"200,300-399","batch":{"max":50,"wait":"20ms"}},` +
	`"retry":{"max_attempts":7,"backoff":"2s","multiplier":4.5,"max_backoff":"6m","jitter":0.3,"max_age":"25h"},` +
	`"misfire":{"policy":"all","window":"12h"},"overlap":"queue","delivery":"at_most_once","priority":9,"stale_after":"30s","flow":["user-17","stripe"],"labels":{"team":"a","env":"prod"}}`

// TestFullDefinition: a field of a definition that the form does not have would be removed by
// each save, so the form is tried with all of them.
func TestFullDefinition(t *testing.T) {
	elsewhere := []string{ // other kinds of what is there, and what has a test of its own
		"schedule.every", "schedule.at", "schedule.delay", "schedule.end_at", "callback.body_text", "callback.body_base64", "callback.secret_headers",
	}
	var full map[string]any
	if err := json.Unmarshal([]byte(fullDefinition), &full); err != nil {
		t.Fatal(err)
	}
	var look func(path string, of reflect.Type, is map[string]any)
	look = func(path string, of reflect.Type, is map[string]any) {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			inner, x := of.Field(i).Type, is[name]
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			object, deeper := x.(map[string]any)
			switch {
			case name == "-" || slices.Contains(elsewhere, path+name):
			case x == nil:
				t.Errorf("%s is not tried", path+name)
			case deeper && inner.Kind() == reflect.Struct:
				look(path+name+".", inner, object)
			}
		}
	}
	look("", reflect.TypeFor[client.Definition](), full)
}

// create makes a timer of a definition in JSON.
func (n *node) create(definition string) *client.Timer {
	n.t.Helper()
	v := n.visitor()
	p := v.do("POST", "/v1/timers", definition, "Authorization", "Bearer all-admin", "Content-Type", "application/json")
	if p.status != http.StatusCreated {
		n.t.Fatal(p.status, p.body)
	}
	t, err := n.api.GetByName(n.t.Context(), "shop", "full")
	if err != nil {
		n.t.Fatal(err)
	}
	return t
}

// form is the inputs of a timer's form, as a browser would send them.
func (f *form) values() url.Values {
	q := url.Values{"version": {f.Version}}
	for name, value := range f.Values {
		q.Set(name, value)
	}
	return q
}

// TestFormKeepsADefinition: saving a form as it is shown changes nothing,
// whatever the definition has; and a change of one input changes one field.
func TestFormKeepsADefinition(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	was := n.create(fullDefinition)
	edit := func(change func(url.Values)) *client.Timer {
		t.Helper()
		f := formOf(was.Definition)
		f.Version = text(was.Version)
		q := f.values()
		if change != nil {
			change(q)
		}
		if a := v.post("/timers/"+was.ID+"/edit", q); a.status != http.StatusSeeOther {
			t.Fatalf("%d %s", a.status, a.body)
		}
		is, err := n.api.Get(t.Context(), was.ID)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if is := edit(nil); is.Version != was.Version {
		t.Fatalf("saving without a change made version %d: %s, was %s", is.Version, text(is.Definition), text(was.Definition))
	}
	for what, change := range map[string]func(url.Values){
		`"retry":`:           func(q url.Values) { q.Set("retry.max_attempts", "3") },
		`"flow":["a","b/c"]`: func(q url.Values) { q.Set("flow", " a  b/c") },
		`"labels":`:          func(q url.Values) { q.Set("labels", "team = b\n\nregion=eu") },
		`"headers":`:         func(q url.Values) { q.Set("callback.headers", "X-A: 1:2\r\n") },
		`"body_text`:         func(q url.Values) { q.Set("body_kind", "body_text"); q.Set("body", "hello\r\nyou") },
		`"every":`:           func(q url.Values) { q.Set("kind", "every"); q.Set("when", "90s"); q.Set("schedule.time_zone", "") },
		`"window":`:          func(q url.Values) { q.Set("misfire.window", "") }, // the default again
	} {
		is := edit(change)
		if is.Version != was.Version+1 || !strings.Contains(text(is.Definition), what) {
			t.Errorf("%s: version %d, %s", what, is.Version, text(is.Definition))
		}
		was = is
	}
	got := text(was.Definition)
	for _, want := range []string{`"every":"1m30s"`, `"X-A":"1:2"`, `"hello\nyou"`, `"team":"b"`, `"region":"eu"`, `"window":"24h"`, `"max_attempts":3`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	for _, gone := range []string{"hunter2", `"body":`, "prod", "Shanghai", "cron"} {
		if strings.Contains(got, gone) {
			t.Errorf("%s is still in %s", gone, got)
		}
	}
	page := v.get("/timers/" + was.ID).body
	if !strings.Contains(page, "<del>7</del> <ins>3</ins>") {
		t.Error("the versions do not say what changed")
	}
	if strings.Contains(page, "hunter2") {
		t.Error("the page shows the secret of a header")
	}
}

// TestFormRefused: what the API says of a field stands beside it, and nothing
// that was typed is lost.
func TestFormRefused(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	was := n.create(fullDefinition)
	base := formOf(was.Definition)
	base.Version = text(was.Version)
	for input, value := range map[string]string{
		"when": "61 * * * *", "callback.url": "ftp://x", "retry.max_attempts": "many", "schedule.time_zone": "Mars/Olympus",
		"labels": "=x\n" + strings.Repeat("k", 400) + "=v", "body": "{", "overlap": "never", "callback.timeout": "soon",
	} {
		q := base.values()
		q.Set(input, value)
		a := v.post("/timers/"+was.ID+"/edit", q)
		if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `class="err"`) && !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("%s = %q: %d", input, value, a.status)
		}
		if input == "when" && !strings.Contains(a.body, `value="61 * * * *"`) {
			t.Error("what was typed is lost")
		}
	}
	stale := base.values()
	stale.Set("version", "99")
	stale.Set("priority", "1")
	if a := v.post("/timers/"+was.ID+"/edit", stale); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, `role="alert"`) {
		t.Errorf("a form that is out of date: %d", a.status)
	}
	is, err := n.api.Get(t.Context(), was.ID)
	if err != nil || is.Version != was.Version {
		t.Errorf("version %d, %v", is.Version, err)
	}
}

func TestDifference(t *testing.T) {
	was := tree(map[string]any{"a": 1, "b": map[string]any{"c": "x", "d": []int{1}}, "e": map[string]any{"f": 1}}).(map[string]any)
	is := tree(map[string]any{"a": 1, "b": map[string]any{"c": "y", "d": []int{1}}, "g": true}).(map[string]any)
	if got := text(difference(was, is)); got != `{"b":{"c":"y"},"e":null,"g":true}` {
		t.Error(got)
	}
	if got := difference(was, was); len(got) != 0 {
		t.Error(got)
	}
}

// TestFormDoesNotLoseValues: what a request could not say is refused, and not left out.
func TestFormDoesNotLoseValues(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	for input, value := range map[string]string{"retry.max_attempts": "0", "retry.backoff": "0s", "callback.timeout": "0"} {
		q := (&form{Values: map[string]string{"app": "shop", "name": "zero", "kind": "every", "when": "1h", "callback.url": "http://x/", input: value}}).values()
		if a := v.post("/timers/new", q); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "must be greater than 0") {
			t.Errorf("%s = %s: %d", input, value, a.status)
		}
	}
	made, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "n", Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://x/", Body: map[string]any{"a": nil, "b": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][2]string{{`{"a":null,"b":null}`, ""}, {`{"a":null,"b":[null]}`, `{"a":null,"b":[null]}`}} {
		body, want := x[0], x[1]
		f := formOf(made.Timer.Definition)
		f.Version = "1"
		q := f.values()
		q.Set("body", body)
		a := v.post("/timers/"+made.Timer.ID+"/edit", q)
		is, err := n.api.Get(t.Context(), made.Timer.ID)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" && (a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "a null in an object")) {
			t.Errorf("%s: %d", body, a.status)
		}
		if got := text(is.Callback.Body); want != "" && got != want {
			t.Errorf("%s is saved as %s", body, got)
		}
	}
}

// TestFormKeepsTheFirstNewline of a body: browsers drop the one that a textarea
// begins with.
func TestFormKeepsTheFirstNewline(t *testing.T) {
	n := serve(t)
	made, err := n.api.Create(t.Context(), client.Definition{
		App: "shop", Name: "n", Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://x/", BodyText: new("\nfirst")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := n.visitor().get("/timers/" + made.Timer.ID + "/edit"); !strings.Contains(a.body, ">\n\nfirst</textarea>") {
		t.Error(a.body)
	}
}

// TestLargeForms: the form takes the largest body that the API takes, which is three times as
// large percent-encoded. Somebody who has not signed in may send none that is large, and a
// form that is refused is answered with a page.
func TestLargeForms(t *testing.T) {
	form := func(size int) url.Values {
		return url.Values{
			"app": {"shop"}, "name": {"large"}, "kind": {"cron"}, "when": {"@daily"}, "callback.method": {"POST"}, "callback.url": {"http://x/"},
			"body_kind": {"body_text"}, "body": {strings.Repeat("中", size/3)},
		}
	}
	open := serve(t)
	n := serve(t, tokens...)
	for name, v := range map[string]*visitor{"without tokens": open.visitor(), "signed in": n.signedIn("shop-write")} {
		if a := v.post("/timers/new", form(512<<10)); a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/timers/") {
			t.Errorf("%s: %d %s %.300s", name, a.status, a.header.Get("Location"), a.body)
		}
		a := v.post("/timers/new", form(1<<20))
		if a.status != http.StatusRequestEntityTooLarge || !strings.Contains(a.body, "<main") || !strings.Contains(a.body, "the form is too large") {
			t.Errorf("%s: %d %.300s", name, a.status, a.body)
		}
	}
	for _, headers := range []string{"", "Authorization: Bearer shop-write\r\n", "Cookie: " + sessionCookie + "=x\r\n"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(n.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "POST /timers/new HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n", headers, 1<<20)
		c.SetReadDeadline(time.Now().Add(time.Minute))
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/sign-in" {
			t.Errorf("%q: %d %s", headers, r.StatusCode, r.Header)
		}
		r.Body.Close()
		c.Close()
	}
}
