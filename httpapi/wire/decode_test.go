package wire

import (
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
)

// orderTimer is a timer of 300 bytes, as a shop would send it.
const orderTimer = `{"app":"billing","name":"order-1842-expire","schedule":{"delay":"30m"},` +
	`"callback":{"url":"https://orders.example.com/hooks/expire","headers":{"Content-Type":"application/json"},` +
	`"body":{"order":1842,"customer":"c-77"},"timeout":"10s"},"retry":{"max_attempts":6},"labels":{"team":"checkout"}}`

func BenchmarkDecodeTimer(b *testing.B) {
	body := []byte(orderTimer)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d := engine.NewDefinition()
		if err := DecodeTimer(body, &d); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecodeReflect is the obvious way: the same fields in structs.
func BenchmarkDecodeReflect(b *testing.B) {
	type timer struct {
		App      string `json:"app"`
		Name     string `json:"name"`
		Schedule struct {
			Cron  string `json:"cron"`
			Every any    `json:"every"`
			At    any    `json:"at"`
			Delay any    `json:"delay"`
		} `json:"schedule"`
		Caller struct {
			URL     string            `json:"url"`
			Headers map[string]string `json:"headers"`
			Body    any               `json:"body"`
			Timeout any               `json:"timeout"`
		} `json:"callback"`
		Retry struct {
			MaxAttempts *int `json:"max_attempts"`
		} `json:"retry"`
		Labels map[string]string `json:"labels"`
	}
	body := []byte(orderTimer)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var t timer
		if err := json.Unmarshal(body, &t, json.RejectUnknownMembers(true)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRenderTimer(b *testing.B) {
	v := inspect.View{Timer: &engine.Timer{ID: 7354000000000000000, Version: 1, CreatedAt: 1763658000250, UpdatedAt: 1763658000250}, NextDue: 1763658000250}
	v.Definition = engine.NewDefinition()
	if err := DecodeTimer([]byte(orderTimer), &v.Definition); err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendView(buf[:0], &v)
	}
	b.SetBytes(int64(len(buf)))
}

// FuzzDecodeTimer: whatever is taken comes back the same after being rendered,
// whatever is not is somebody's fault, and nothing panics.
func FuzzDecodeTimer(f *testing.F) {
	f.Add(orderTimer)
	f.Add(`{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/x"},` +
		`"labels":{"a.b":"c"},"misfire":{"policy":"all","window":5},"priority":null}`)
	f.Add(`{"schedule":{"at":"2026-11-20T17:00:00.250Z","jitter":1e3},"callback":{"body_base64":"AA=="}}`)
	f.Add(`{"app":"a","app":"b"}`)
	f.Add("{\"a\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, body string) {
		d := engine.NewDefinition()
		if err := DecodeTimer([]byte(body), &d); err != nil {
			var fault *engine.Fault
			if !errors.As(err, &fault) || fault.Detail == "" || fault.Code == "" {
				t.Fatalf("%T %v", err, err)
			}
			if out := AppendText(nil, fault.Detail); !jsontext.Value(out).IsValid() {
				t.Fatalf("not JSON: %s", out)
			}
			return
		}
		if plan.Validate(&d) != nil {
			return
		}
		doc := append(appendDefinition([]byte{'{'}, &d), '}')
		again := engine.NewDefinition()
		if err := DecodeTimer(doc, &again); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if !again.Equal(&d) {
			t.Fatalf("it came back another:\n%s\n%s", body, doc)
		}
	})
}

// FuzzTimes: a time is never read as an earlier one, and what was read is read
// again from what is written.
func FuzzTimes(f *testing.F) {
	for _, s := range []string{
		"2026-11-20T17:00:00.250001Z", "2026-11-20T17:00:00,5+23:59", "9999-12-31T23:59:59.999Z", "1970-01-01T00:00:00.0005Z", "2026-12-31T23:59:60Z",
		"1h30m", "250ms", "-1s", "2562047h47m16.854775807s", "1e3", "9223372036854", "1.5us", "0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, text := range []string{s, string(AppendText(nil, s))} {
			var at, same int64
			if Decode([]byte(text), func(d *Decoder) { d.Instant(&at) }) == nil && text != "null" {
				if at <= 0 || at > engine.MaxDue {
					t.Fatalf("%s is %d", text, at)
				}
				if exact, err := time.Parse(time.RFC3339Nano, s); err == nil && text != s {
					if late := time.UnixMilli(at).Sub(exact); late < 0 || late >= time.Millisecond {
						t.Fatalf("%s is read %v late", text, late)
					}
				}
				if err := Decode(AppendTime(nil, at), func(d *Decoder) { d.Instant(&same) }); err != nil || same != at {
					t.Fatalf("%s: %d is read again as %d, %v", text, at, same, err)
				}
			}
			var span, again time.Duration
			if Decode([]byte(text), func(d *Decoder) { d.duration(&span) }) == nil {
				if err := Decode(appendDuration(nil, span), func(d *Decoder) { d.duration(&again) }); err != nil || again != span {
					t.Fatalf("%s: %v is written %s, and read again as %v, %v", text, span, appendDuration(nil, span), again, err)
				}
			}
		}
	})
}

// TestOneFaultAField: a field with a wrong type is not told to be empty as well.
func TestOneFaultAField(t *testing.T) {
	d := engine.NewDefinition()
	var f *engine.Fault
	err := DecodeTimer([]byte(`{"app":"a","name":"n","schedule":{"cron":5},"callback":{"url":"http://127.0.0.1/"}}`), &d)
	if !errors.As(err, &f) || len(f.Fields) != 1 || f.Fields[0].Detail != "must be a string, not a number" {
		t.Errorf("%+v", err)
	}
}
