package alert

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// BenchmarkSteady says how much of a processor 1,000 failures a second take while 10,000
// incidents are open.
func BenchmarkSteady(b *testing.B) {
	for b.Loop() {
		w := newWorld(b, memory.NewCold())
		a := w.Alerter
		w.put(ChannelKind, "shop", "ops", Channel{Kind: "dingtalk", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 18})
		r := NewRule()
		r.On, r.Channels = []string{"dead"}, []string{"ops"}
		w.put(RuleKind, "shop", "r", r)
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = a.Run(ctx)
		}()
		end := func(i int) {
			a.Ended(&engine.Task{Key: engine.Key{Timer: engine.TimerID(i%10_000 + 1), Due: int64(i + 1)}, App: "shop", Name: fmt.Sprint("t", i%10_000), Status: engine.Dead, Ended: time.Now().UnixMilli()})
		}
		for i := range 10_000 {
			end(i)
		}
		for a.count("warning") < 9_999 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		before := processor()
		for i := range 5000 {
			end(i)
			time.Sleep(time.Millisecond)
		}
		b.ReportMetric((processor()-before).Seconds()/5, "cores")
		cancel()
		<-ended
	}
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
