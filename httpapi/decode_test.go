package httpapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/scheduler"
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
		if err := decodeTimer(body, &d); err != nil {
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
		Callback struct {
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

func BenchmarkDecodeBatch(b *testing.B) {
	body := []byte(`{"timers":[` + strings.Repeat(orderTimer+",", 999) + orderTimer + `]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		items, err := decodeBatch(body, false)
		if err != nil || len(items) != 1000 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/timer")
}

func BenchmarkRenderTimer(b *testing.B) {
	v := scheduler.View{Timer: &engine.Timer{ID: 7354000000000000000, Version: 1, CreatedAt: 1763658000250, UpdatedAt: 1763658000250}, NextDue: 1763658000250}
	v.Definition = engine.NewDefinition()
	if err := decodeTimer([]byte(orderTimer), &v.Definition); err != nil {
		b.Fatal(err)
	}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendView(buf[:0], &v)
	}
	b.SetBytes(int64(len(buf)))
}

// FuzzDecodeTimer: whatever is taken comes back the same after being rendered,
// whatever is not is somebody's fault, and nothing panics.
func FuzzDecodeTimer(f *testing.F) {
	f.Add(orderTimer)
	f.Add(hourly("a", "n", `,"labels":{"a.b":"c"},"misfire":{"policy":"all","window":5},"priority":null`))
	f.Add(`{"schedule":{"at":"2026-11-20T17:00:00.250Z","jitter":1e3},"callback":{"body_base64":"AA=="}}`)
	f.Add(`{"app":"a","app":"b"}`)
	f.Add("{\"a\":\"\xff\"}")
	f.Fuzz(func(t *testing.T, body string) {
		d := engine.NewDefinition()
		if err := decodeTimer([]byte(body), &d); err != nil {
			var fault *engine.Fault
			if !errors.As(err, &fault) || fault.Detail == "" || fault.Code == "" {
				t.Fatalf("%T %v", err, err)
			}
			if out := problemOf(err).render(nil); !jsontext.Value(out).IsValid() {
				t.Fatalf("not JSON: %s", out)
			}
			return
		}
		if plan.Validate(&d) != nil {
			return
		}
		doc := append(appendDefinition([]byte{'{'}, &d), '}')
		again := engine.NewDefinition()
		if err := decodeTimer(doc, &again); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if !again.Equal(&d) {
			t.Fatalf("it came back another:\n%s\n%s", body, doc)
		}
	})
}
