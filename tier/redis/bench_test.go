package redis

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// A million one-shots with definitions of 300 bytes over an hour, as the
// migrator fills and loads it: with -benchtime 1x. In one minute: /dense.
func BenchmarkHour(b *testing.B) {
	const n, page = 1_000_000, 10_000
	for name, spread := range map[string]int64{"hour": 3_600_000, "dense": 60_000} {
		b.Run(name, func(b *testing.B) {
			s := servertest.Redis(b, "--appendonly", "no")
			es := make([]engine.Entry, n)
			for i := range es {
				t := &engine.Timer{Definition: engine.NewDefinition(), ID: engine.TimerID(i+1) << 21, Version: 1}
				t.App, t.Callback.URL, t.At = "app", "https://example.com/"+strings.Repeat("x", 180), m0+int64(i)*spread/n
				es[i] = engine.Entry{ID: t.ID, Due: t.At, Definition: engine.AppendTimer(nil, t)}
			}
			b.ReportMetric(float64(len(es[n-1].Definition)), "B/definition")
			for b.Loop() {
				s.Do("FLUSHALL")
				w := open(b, s.Addr())
				began, cpu := time.Now(), cpuSeconds(s)
				for i := 0; i < n; i += page {
					must(b, w.Add(b.Context(), es[i:i+page]))
				}
				must(b, w.Seal(b.Context(), engine.AllShards, m0, m0+3_600_000))
				b.ReportMetric(time.Since(began).Seconds(), "s/add")
				b.ReportMetric(cpuSeconds(s)-cpu, "cpu-s/add")
				for _, line := range strings.Split(s.Do("INFO memory"), "\n") {
					if v, ok := strings.CutPrefix(line, "used_memory_human:"); ok {
						b.Log("used_memory " + v)
					}
				}
				began, cpu = time.Now(), cpuSeconds(s)
				got := 0
				for m := range int64(60) {
					must(b, w.Load(b.Context(), engine.AllShards, m0+m*minute, func(es []engine.Entry) error { got += len(es); return nil }))
				}
				b.ReportMetric(time.Since(began).Seconds(), "s/load")
				b.ReportMetric(cpuSeconds(s)-cpu, "cpu-s/load")
				if got != n {
					b.Fatalf("%d of %d", got, n)
				}
			}
		})
	}
}

// cpuSeconds is what this process and the server have used.
func cpuSeconds(s *servertest.Server) (sum float64) {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	sum = time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
	for _, line := range strings.Split(s.Do("INFO cpu"), "\n") {
		name, v, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user" || name == "used_cpu_sys" {
			f, _ := strconv.ParseFloat(v, 64)
			sum += f
		}
	}
	return sum
}

// One create's Add, many at once.
func BenchmarkAdd(b *testing.B) {
	w := open(b, servertest.Redis(b).Addr())
	es := entries(10_000, 0)
	i := make(chan int, 1)
	i <- 0
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			k := <-i
			i <- k + 1
			if err := w.Add(b.Context(), es[k%len(es):k%len(es)+1]); err != nil {
				b.Error(err)
			}
		}
	})
}
