package bench

import (
	"context"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// answering is a receiver without a network: every call is answered at once.
type answering struct{ calls atomic.Int64 }

func (a *answering) Call(c *engine.Call) engine.Outcome {
	a.calls.Add(1)
	return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: time.Now()}
}

// BenchmarkPipe is what a fire costs besides its call: engine, journal and cold
// tier on the disk, for timers due every 10 ms.
func BenchmarkPipe(b *testing.B) {
	for _, n := range []int{300, 600} {
		b.Run("every-10ms/timers="+strconv.Itoa(n), func(b *testing.B) {
			dir, caller := b.TempDir(), &answering{}
			e := scheduler.New(scheduler.Config{
				Cold:    local.New(local.Config{Dir: filepath.Join(dir, "cold")}),
				Warm:    memory.NewWarm(),
				Journal: wal.New(wal.Config{Dir: filepath.Join(dir, "journal"), Logger: slog.New(slog.DiscardHandler)}),
				Caller:  caller,
				Log:     slog.New(slog.DiscardHandler),
			})
			if err := e.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			ctx, end := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			for e.Ready() != nil {
				time.Sleep(time.Millisecond)
			}
			for i := range n {
				d := engine.NewDefinition()
				d.App, d.Name, d.Schedule.Every = "bench", strconv.Itoa(i), 10*time.Millisecond
				d.Callback.URL = "http://127.0.0.1:9/"
				if c := e.Create(b.Context(), d, nil); c.Err != nil {
					b.Fatal(c.Err)
				}
			}
			time.Sleep(time.Second)
			calls, spent, from := caller.calls.Load(), processTime(), time.Now()
			time.Sleep(5 * time.Second)
			calls, spent = caller.calls.Load()-calls, processTime()-spent
			b.ReportMetric(float64(calls)/time.Since(from).Seconds(), "fires/s")
			b.ReportMetric(float64(spent.Nanoseconds())/1000/float64(calls), "cpu-us/fire")
			end()
			if err := <-ended; err != nil {
				b.Fatal(err)
			}
		})
	}
}

// processTime is the processor time that this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
