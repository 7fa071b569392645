package plan

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// sound is a definition that nothing is wrong with.
func sound() engine.Definition {
	d := engine.NewDefinition()
	d.App, d.Name = "billing", "order-1842-expire"
	d.Schedule = engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}
	d.Callback.URL = "https://example.com:8443/hook?x=1%20y&z"
	d.Callback.Headers = []engine.Header{{Name: "Authorization", Value: "Bearer x"}, {Name: "X-A", Value: "\xe4 \t~"}}
	d.Labels = []engine.Label{{Key: "env", Value: "prod"}, {Key: "team", Value: "größe"}}
	return d
}

func TestValidateAccepts(t *testing.T) {
	for name, change := range map[string]func(*engine.Definition){
		"nothing":    func(d *engine.Definition) {},
		"every":      func(d *engine.Definition) { d.Schedule = engine.Schedule{Every: minEvery} },
		"@every":     func(d *engine.Definition) { d.Schedule = engine.Schedule{Cron: "@every 1h30m"} },
		"at":         func(d *engine.Definition) { d.Schedule = engine.Schedule{At: engine.MaxDue} },
		"delay of 0": func(d *engine.Definition) { d.Schedule = engine.Schedule{HasDelay: true} },
		"far delay": func(d *engine.Definition) {
			d.Schedule = engine.Schedule{HasDelay: true, Delay: 290 * 365 * 24 * time.Hour}
		},
		"bounds":         func(d *engine.Definition) { d.Schedule.StartAt, d.Schedule.EndAt, d.Schedule.MaxRuns = 1, 2, 3 },
		"IPv6":           func(d *engine.Definition) { d.Callback.URL = "http://[::1]:80/" },
		"IPv4":           func(d *engine.Definition) { d.Callback.URL = "HTTP://127.0.0.1" },
		"root dot":       func(d *engine.Definition) { d.Callback.URL = "http://a.example.:1?q" },
		"underscore":     func(d *engine.Definition) { d.Callback.URL = "http://my_service:9000/a//b;c=@/../d" },
		"name":           func(d *engine.Definition) { d.Name = "a/b c, ü%…" },
		"body":           func(d *engine.Definition) { d.Callback.HasBody, d.Callback.Body = true, make([]byte, maxBody) },
		"GET":            func(d *engine.Definition) { d.Callback.Method = "GET" },
		"longest window": func(d *engine.Definition) { d.Misfire.Window = maxWindow },
	} {
		d := sound()
		change(&d)
		if err := Validate(&d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDotsAreNoName: what is wrong with . and .. is said, and nothing else.
func TestDotsAreNoName(t *testing.T) {
	for _, dots := range []string{".", ".."} {
		for field, change := range map[string]func(*engine.Definition){
			"app":  func(d *engine.Definition) { d.App = dots },
			"name": func(d *engine.Definition) { d.Name = dots },
		} {
			d := sound()
			change(&d)
			err := Validate(&d)
			if want := fmt.Sprintf("%s: must not be %q: it is a reserved path segment", field, dots); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	url := func(u string) func(*engine.Definition) { return func(d *engine.Definition) { d.Callback.URL = u } }
	header := func(name, value string) func(*engine.Definition) {
		return func(d *engine.Definition) { d.Callback.Headers = []engine.Header{{Name: name, Value: value}} }
	}
	for _, c := range []struct {
		field  string
		change func(*engine.Definition)
	}{
		{"app", func(d *engine.Definition) { d.App = "" }},
		{"app", func(d *engine.Definition) { d.App = "*" }},
		{"app", func(d *engine.Definition) { d.App = ".." }},
		{"app", func(d *engine.Definition) { d.App = strings.Repeat("a", 65) }},
		{"name", func(d *engine.Definition) { d.Name = "" }},
		{"name", func(d *engine.Definition) { d.Name = "a\x00" }},
		{"name", func(d *engine.Definition) { d.Name = "a\u0085" }},
		{"name", func(d *engine.Definition) { d.Name = "\xff" }},
		{"name", func(d *engine.Definition) { d.Name = " a" }},
		{"name", func(d *engine.Definition) { d.Name = strings.Repeat("a", 257) }},
		{`labels."a b"`, func(d *engine.Definition) { d.Labels = []engine.Label{{Key: "a b", Value: ""}} }},
		{"labels.team", func(d *engine.Definition) { d.Labels = []engine.Label{{Key: "team", Value: "a,b"}} }},
		{"labels.team", func(d *engine.Definition) {
			d.Labels = []engine.Label{{Key: "team", Value: "a"}, {Key: "team", Value: "b"}}
		}},
		{"labels", func(d *engine.Definition) { d.Labels = make([]engine.Label, 33) }},
		{"schedule", func(d *engine.Definition) { d.Schedule = engine.Schedule{} }},
		{"schedule", func(d *engine.Definition) { d.Schedule.Every = time.Second }},
		{"schedule", func(d *engine.Definition) { d.Schedule.HasDelay = true }},
		{"schedule.cron", func(d *engine.Definition) { d.Schedule.Cron = ", * * * * *" }},
		{"schedule.cron", func(d *engine.Definition) { d.Schedule.Cron = "@every 9ms" }},
		{"schedule.cron", func(d *engine.Definition) { d.Schedule.Cron = "@every x" }},
		{"schedule.time_zone", func(d *engine.Definition) { d.Schedule.TimeZone = "Local" }},
		{"schedule.time_zone", func(d *engine.Definition) { d.Schedule.TimeZone = "../UTC" }},
		{"schedule.time_zone", func(d *engine.Definition) { d.Schedule.TimeZone = "Europe//Berlin" }},
		{"schedule.time_zone", func(d *engine.Definition) { d.Schedule.TimeZone = "right/UTC" }},
		{"schedule.time_zone", func(d *engine.Definition) { d.Schedule.TimeZone = "Mars/Olympus" }},
		{"schedule.every", func(d *engine.Definition) { d.Schedule = engine.Schedule{Every: 9 * time.Millisecond} }},
		{"schedule.every", func(d *engine.Definition) { d.Schedule = engine.Schedule{Every: -time.Second} }},
		{"schedule.every", func(d *engine.Definition) { d.Schedule = engine.Schedule{Every: 10*time.Millisecond + 1} }},
		{"schedule.every", func(d *engine.Definition) { d.Schedule = engine.Schedule{Every: math.MaxInt64} }},
		{"schedule.at", func(d *engine.Definition) { d.Schedule = engine.Schedule{At: -1} }},
		{"schedule.at", func(d *engine.Definition) { d.Schedule = engine.Schedule{At: 1e18} }},
		{"schedule.delay", func(d *engine.Definition) { d.Schedule = engine.Schedule{HasDelay: true, Delay: -1e6} }},
		{"schedule.delay", func(d *engine.Definition) { d.Schedule = engine.Schedule{HasDelay: true, Delay: 1} }},
		{"schedule.start_at", func(d *engine.Definition) { d.Schedule.StartAt = engine.MaxDue + 1 }},
		{"schedule.end_at", func(d *engine.Definition) { d.Schedule.StartAt, d.Schedule.EndAt = 5, 5 }},
		{"schedule.end_at", func(d *engine.Definition) { d.Schedule = engine.Schedule{At: 5, EndAt: 5} }},
		{"schedule.max_runs", func(d *engine.Definition) { d.Schedule.MaxRuns = -1 }},
		{"schedule.jitter", func(d *engine.Definition) { d.Schedule.Jitter = -1e6 }},
		{"schedule.jitter", func(d *engine.Definition) { d.Schedule.Jitter = maxJitter + time.Millisecond }},
		{"callback.url", url("")},
		{"callback.url", url("ftp://a/")},
		{"callback.url", url("//a/")},
		{"callback.url", url("http:a/b")},
		{"callback.url", url("http:///x")},
		{"callback.url", url("http://:80/")},
		{"callback.url", url("http://u:p@a/")},
		{"callback.url", url("http://u@a/")},
		{"callback.url", url("http://@a/")},
		{"callback.url", url("http://a/\r\nX: y")},
		{"callback.url", url("http://a/?x=1 HTTP/1.1")},
		{"callback.url", url("http://a\\@b/")},
		{"callback.url", url("http://a/\x00")},
		{"callback.url", url("http://a/ü")},
		{"callback.url", url("http://a/%zz")},
		{"callback.url", url("http://a/#f")},
		{"callback.url", url("http://a:0/")},
		{"callback.url", url("http://a:/")},
		{"callback.url", url("http://a:65536/")},
		{"callback.url", url("http://a:-1/")},
		{"callback.url", url("http://a:http/")},
		{"callback.url", url("http://127%2e0.0.1/")},
		{"callback.url", url("http://a..b/")},
		{"callback.url", url("http://a b/")},
		{"callback.url", url("http://a|b/")},
		{"callback.url", url("http://[fe80::1%25eth0]/")},
		{"callback.url", url("http://[127.0.0.1]/")},
		{"callback.url", url("http://[::1/")},
		{"callback.url", url("http://::1/")},
		{"callback.url", url("http://" + strings.Repeat("a", 64) + "/")},
		{"callback.url", url("http://a/" + strings.Repeat("a", maxURL))},
		{"callback.method", func(d *engine.Definition) { d.Callback.Method = "GET / HTTP/1.1\r\nEvil: x" }},
		{"callback.method", func(d *engine.Definition) { d.Callback.Method = "post" }},
		{"callback.method", func(d *engine.Definition) { d.Callback.Method = "HEAD" }},
		{"callback.body", func(d *engine.Definition) { d.Callback.Method, d.Callback.HasBody = "GET", true }},
		{"callback.body_text", func(d *engine.Definition) {
			d.Callback.BodyKind, d.Callback.HasBody, d.Callback.Body = engine.BodyText, true, make([]byte, maxBody+1)
		}},
		{`callback.headers.""`, header("", "x")},
		{`callback.headers."X A: b"`, header("X A: b", "x")},
		{`callback.headers."a\x00"`, header("a\x00", "x")},
		{"callback.headers.X-A", header("X-A", "x\r\nEvil: y")},
		{"callback.headers.X-A", header("X-A", "x\x00")},
		{"callback.headers.X-A", header("X-A", "\x7f")},
		{"callback.headers.X-A", header("X-A", strings.Repeat("x", 4097))},
		{"callback.headers.X-A", func(d *engine.Definition) {
			d.Callback.Headers = []engine.Header{{Name: "x-a", Value: ""}, {Name: "X-A", Value: ""}}
		}},
		{"callback.headers", func(d *engine.Definition) { d.Callback.Headers = make([]engine.Header, 65) }},
		{"callback.headers", func(d *engine.Definition) {
			d.Callback.Headers = nil
			for i := range 5 {
				d.Callback.Headers = append(d.Callback.Headers, engine.Header{Name: fmt.Sprint("H", i), Value: strings.Repeat("x", 4000)})
			}
		}},
		{"callback.headers.HOST", header("HOST", "x")},
		{"callback.headers.content-length", header("content-length", "0")},
		{"callback.headers.Transfer-Encoding", header("Transfer-Encoding", "chunked")},
		{"callback.headers.Te", header("Te", "x")},
		{"callback.headers.Proxy-Authorization", header("Proxy-Authorization", "x")},
		{"callback.headers.X-Xtimer-Task", header("X-Xtimer-Task", "x")},
		{"callback.headers.X_Xtimer-Task", header("X_Xtimer-Task", "x")},
		{"callback.headers.Webhook_Id", header("Webhook_Id", "x")},
		{"callback.headers.content_length", header("content_length", "1")},
		{"callback.headers.idempotency-key", header("idempotency-key", "x")},
		{"callback.headers.Webhook-Signature", header("Webhook-Signature", "x")},
		{"callback.timeout", func(d *engine.Definition) { d.Callback.Timeout = 0 }},
		{"callback.timeout", func(d *engine.Definition) { d.Callback.Timeout = time.Hour }},
		{"callback.success", func(d *engine.Definition) { d.Callback.Success = "ok" }},
		{"retry.max_attempts", func(d *engine.Definition) { d.Retry.MaxAttempts = 0 }},
		{"retry.backoff", func(d *engine.Definition) { d.Retry.Backoff = 0 }},
		{"retry.multiplier", func(d *engine.Definition) { d.Retry.Multiplier = math.NaN() }},
		{"retry.multiplier", func(d *engine.Definition) { d.Retry.Multiplier = math.Inf(1) }},
		{"retry.max_backoff", func(d *engine.Definition) { d.Retry.MaxBackoff = 0 }},
		{"retry.jitter", func(d *engine.Definition) { d.Retry.Jitter = 1.01 }},
		{"retry.jitter", func(d *engine.Definition) { d.Retry.Jitter = math.NaN() }},
		{"retry.max_age", func(d *engine.Definition) { d.Retry.MaxAge = 0 }},
		{"misfire.policy", func(d *engine.Definition) { d.Misfire.Policy = 9 }},
		{"misfire.window", func(d *engine.Definition) { d.Misfire.Window = -1 }},
		{"overlap", func(d *engine.Definition) { d.Overlap = 9 }},
		{"delivery", func(d *engine.Definition) { d.Delivery = 9 }},
		{"priority", func(d *engine.Definition) { d.Priority = 10 }},
		{"priority", func(d *engine.Definition) { d.Priority = -1 }},
	} {
		d := sound()
		c.change(&d)
		var f *engine.Fault
		if err := Validate(&d); !errors.As(err, &f) || f.Kind != engine.FaultInvalid || f.Code != "invalid_timer" || len(f.Fields) == 0 || f.Fields[0].Field != c.field {
			t.Errorf("%s of %+v: %#v", c.field, d, err)
		}
	}
}

// All that is wrong is told at once.
func TestValidateTellsAll(t *testing.T) {
	var d engine.Definition
	var f *engine.Fault
	if err := Validate(&d); !errors.As(err, &f) || len(f.Fields) < 8 {
		t.Errorf("an empty definition: %v", err)
	}
	for i, x := range f.Fields {
		for _, y := range f.Fields[:i] {
			if x.Field == y.Field {
				t.Errorf("%s is named twice: %s; %s", x.Field, x.Detail, y.Detail)
			}
		}
	}
}

// What is valid can be resolved or is refused with a reason, and then planned,
// described and previewed, whatever it is.
func FuzzValidate(f *testing.F) {
	f.Add("0 9 * * MON-FRI", "Asia/Shanghai", "http://a/b?c", "X-A", "v", "POST", "2xx", int64(0), int64(0), int64(0), int64(5), int64(1774659600000))
	f.Add("@every 5s", "UTC", "http://[::1]:80/", "Te", "v\r\n", "GET", "200,300-399", int64(1), int64(2), int64(3), int64(0), int64(0))
	f.Add("0 0 30 2 *", "Pacific/Apia", "http://u@a/", "", "", "GET / HTTP/1.1", "x", int64(-1), int64(1e18), int64(-5), int64(1e12), int64(-1))
	f.Fuzz(func(t *testing.T, spec, zone, url, name, value, method, success string, start, end, runs, jitter, now int64) {
		began := time.Now()
		defer func() {
			if took := time.Since(began); took > 100*hangs { // a fuzzer keeps the machine busy
				t.Errorf("%q in %q took %v", spec, zone, took)
			}
		}()
		d := sound()
		d.Schedule = engine.Schedule{Cron: spec, TimeZone: zone, StartAt: start, EndAt: end, MaxRuns: runs, Jitter: time.Duration(jitter) * time.Millisecond}
		d.Callback.URL, d.Callback.Method, d.Callback.Success = url, method, success
		d.Callback.Headers = []engine.Header{{Name: name, Value: value}}
		if err := Validate(&d); err != nil {
			var fault *engine.Fault
			if !errors.As(err, &fault) || len(fault.Fields) == 0 {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		if strings.ContainsAny(url+name+method, " \r\n\x00") || strings.ContainsAny(value, "\r\n\x00") {
			t.Fatalf("this would go on the wire: %q %q %q %q", method, url, name, value)
		}
		now = earliest + int64(uint64(now)%uint64(engine.MaxDue-earliest))
		if _, err := PreviewSchedule(d.Schedule, 5, now); err != nil {
			if f, ok := err.(*engine.Fault); !ok || f.Code != "max_runs_too_large" {
				t.Fatalf("valid, but has no preview: %v", err)
			}
		}
		tm := &engine.Timer{Definition: d, ID: 3, CreatedAt: now}
		if err := Resolve(tm, nil, now); err != nil {
			if _, ok := err.(*engine.Fault); !ok {
				t.Fatalf("not a fault: %v", err)
			}
			return
		}
		p, err := Of(tm)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(0)
		for range 5 {
			due, ok := p.Next(at)
			if !ok {
				break
			}
			if prev, _ := p.Prev(due); due <= at || due <= now || prev != due {
				t.Fatalf("due %d after %d, Prev %d", due, at, prev)
			}
			at = due
		}
	})
}

func TestValidateFlow(t *testing.T) {
	for keys, ok := range map[string]bool{
		"a": true, "user-17 stripe:eu/1 x.y_z b": true, "a b c d e": false, "a b a": false, "a*": false, "a  b": false,
		strings.Repeat("x", 128): true, strings.Repeat("x", 129): false,
	} {
		d := engine.NewDefinition()
		d.App, d.Name, d.Schedule.Every, d.Callback.URL, d.Flow = "a", "n", time.Second, "http://h/", engine.Flow(keys)
		if err := Validate(&d); (err == nil) != ok {
			t.Errorf("%q: %v", keys, err)
		}
	}
}

// A flow key that is empty, or has a space, is refused: it is not another number of keys.
func TestValidateFlowKeyWithSpace(t *testing.T) {
	for _, keys := range [][]string{{"a b"}, {""}, {" "}, {"a "}, {" a"}, {"a", ""}, {"a", "b c"}} {
		var f *engine.Fault
		if errors.As(CheckFlow(engine.FlowOf(keys)), &f); f == nil || f.Code != "invalid_timer" || len(f.Fields) != 1 || f.Fields[0].Field != "flow" {
			t.Errorf("%q: %+v", keys, f)
		}
	}
}

// More flow keys than a timer may have have a code of their own.
func TestTooManyFlows(t *testing.T) {
	for keys, code := range map[string]string{"a b c d": "", "a b c d e": "too_many_flows", "a *": "invalid_timer"} {
		var f *engine.Fault
		if errors.As(CheckFlow(engine.FlowOf(strings.Fields(keys))), &f); (f == nil) != (code == "") || f != nil && f.Code != code {
			t.Errorf("%s: %+v", keys, f)
		}
	}
}

// A batch with a method that it cannot have has a code of its own.
func TestValidateTellsTheMethodOfABatch(t *testing.T) {
	d := engine.NewDefinition()
	d.App, d.Name, d.Schedule.Every = "a", "n", time.Minute
	d.Callback.URL, d.Callback.Batch = "http://a/", &engine.Batch{Max: 1000, Wait: time.Second}
	for method, code := range map[string]string{"POST": "", "PUT": "", "GET": "batch_method", "PATCH": "batch_method", "DELETE": "batch_method"} {
		d.Callback.Method = method
		var f *engine.Fault
		if errors.As(Validate(&d), &f); (f == nil) != (code == "") || f != nil && f.Code != code {
			t.Errorf("%s: %+v", method, f)
		}
	}
}
