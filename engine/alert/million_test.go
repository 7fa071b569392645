package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/tier/local"
)

// BenchmarkMillion tells of 1,000,000 failures of 100,000 timers as fast as it can, and says
// for how long a failure holds up the engine at most, how long all take to be counted, and how
// much memory they take.
func BenchmarkMillion(b *testing.B) {
	for b.Loop() {
		million(b)
	}
}

func million(b *testing.B) {
	const failures, timers = 1_000_000, 100_000
	log := slog.New(slog.DiscardHandler)
	cold := local.New(local.Config{Dir: b.TempDir()})
	if err := cold.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer cold.Close()
	for from := 1; from <= timers; from += 1000 {
		var cs []*engine.Change
		for i := range 1000 {
			id := engine.TimerID(from + i)
			t := &engine.Timer{ID: id, Version: 1, Definition: engine.Definition{App: "shop", Name: fmt.Sprint("t", id), Labels: []engine.Label{{Key: "team", Value: "a"}}}}
			cs = append(cs, &engine.Change{Timer: t, ID: id})
		}
		for _, r := range cold.ApplyAll(b.Context(), cs) {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	}
	set := object.New(cold, time.Now, log)
	var mu sync.Mutex
	sent := 0
	a := New(Config{Objects: set, Cold: cold, Log: log, Metrics: metrics.NewSet(), Send: func(context.Context, *Delivery) Result {
		mu.Lock()
		defer mu.Unlock()
		sent++
		return Result{Delivered: true}
	}})
	if err := set.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	put := func(kind, name string, v any) {
		body, err := json.Marshal(v)
		if err == nil {
			_, _, err = set.Put(b.Context(), engine.ObjectKey{Kind: kind, App: "shop", Name: name}, body, nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	put(ChannelKind, "ops", Channel{Kind: "dingtalk", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 18})
	r := NewRule()
	r.On, r.Channels, r.Match.Label = []string{"dead"}, []string{"ops"}, "team=a"
	put(RuleKind, "r", r)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx)
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, slowest := time.Now(), time.Duration(0)
	task := engine.Task{App: "shop", Status: engine.Dead}
	for i := range failures {
		task.Key = engine.Key{Timer: engine.TimerID(i%timers + 1), Due: int64(i/timers + 1)}
		task.Name, task.Ended = "t", time.Now().UnixMilli()
		at := time.Now()
		a.Ended(&task)
		slowest = max(slowest, time.Since(at))
	}
	told := time.Since(began)
	runtime.ReadMemStats(&after)
	count := func() (n int64) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, i := range a.open {
			n += i.Count
		}
		return n
	}
	for count() < failures && time.Since(began) < 5*time.Minute {
		time.Sleep(100 * time.Millisecond)
	}
	b.ReportMetric(told.Seconds(), "s-told")
	b.ReportMetric(time.Since(began).Seconds(), "s-counted")
	b.ReportMetric(slowest.Seconds()*1000, "ms-slowest")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	cancel()
	<-ended
	mu.Lock()
	defer mu.Unlock()
	if n := count(); n != failures || sent > 18 {
		b.Errorf("%d failures are counted, %d messages were sent", n, sent)
	}
	b.ReportMetric(float64(a.ring.lost.Get()), "behind-the-ring")
}
