package wheel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// value is what the engine keeps of a task: as large as its real one, no pointers.
type value [2]uint64

var counts = []int{100_000, 1_000_000}

// BenchmarkAdd adds n timers with dues spread over the coming five minutes, or over
// one second, to a wheel that holds n.
func BenchmarkAdd(b *testing.B) {
	for _, n := range counts {
		for _, span := range []time.Duration{time.Second, 5 * time.Minute, time.Hour} {
			name := fmt.Sprintf("n=%d/span=%s", n, span)
			dues := make([]int64, n)
			base := time.Now().Add(time.Hour).UnixMilli()
			for i := range dues {
				dues[i] = base + rand.Int64N(span.Milliseconds())
			}
			b.Run(name+"/wheel", func(b *testing.B) {
				for b.Loop() {
					before := heapNow()
					w := New(Config{}, func(int64, []value) {})
					stop := start(w)
					t := time.Now()
					for i, due := range dues {
						w.Add(due, value{uint64(i)})
					}
					b.ReportMetric(float64(time.Since(t).Nanoseconds())/float64(n), "ns/timer")
					waitArmed(w)
					b.ReportMetric(float64(heapNow()-before)/float64(n)-16, "B/timer")
					stop()
				}
			})
			b.Run(name+"/timingwheel", func(b *testing.B) {
				for b.Loop() {
					before := heapNow()
					tw := timingwheel.NewTimingWheel(time.Millisecond, 4096)
					tw.Start()
					t := time.Now()
					for i, due := range dues {
						v := value{uint64(i)}
						tw.AfterFunc(time.Duration(due-t.UnixMilli())*time.Millisecond, func() { sink.Store(v[0]) })
					}
					b.ReportMetric(float64(time.Since(t).Nanoseconds())/float64(n), "ns/timer")
					b.ReportMetric(float64(heapNow()-before)/float64(n)-16, "B/timer")
					tw.Stop()
					runtime.KeepAlive(tw)
				}
			})
			b.Run(name+"/stdlib", func(b *testing.B) {
				for b.Loop() {
					before := heapNow()
					timers := make([]*time.Timer, n)
					t := time.Now()
					for i, due := range dues {
						v := value{uint64(i)}
						timers[i] = time.AfterFunc(time.Duration(due-t.UnixMilli())*time.Millisecond, func() { sink.Store(v[0]) })
					}
					b.ReportMetric(float64(time.Since(t).Nanoseconds())/float64(n), "ns/timer")
					b.ReportMetric(float64(heapNow()-before)/float64(n)-16, "B/timer")
					for _, t := range timers {
						t.Stop()
					}
				}
			})
		}
	}
}

var sink atomic.Uint64

// BenchmarkAddParallel adds from as many goroutines as there are cores.
func BenchmarkAddParallel(b *testing.B) {
	w := New(Config{}, func(int64, []value) {})
	defer start(w)()
	base := time.Now().Add(time.Hour).UnixMilli()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			w.Add(base+rand.Int64N(300_000), value{})
		}
	})
}

func BenchmarkRemove(b *testing.B) {
	for _, n := range counts {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				w := New(Config{}, func(int64, []value) {})
				stop := start(w)
				base := time.Now().Add(time.Hour).UnixMilli()
				handles := make([]Handle, n)
				for i := range handles {
					handles[i] = w.Add(base+rand.Int64N(300_000), value{})
				}
				rand.Shuffle(n, func(i, j int) { handles[i], handles[j] = handles[j], handles[i] })
				b.StartTimer()
				t := time.Now()
				for _, h := range handles {
					if !w.Remove(h) {
						b.Fatal("not there")
					}
				}
				b.ReportMetric(float64(time.Since(t).Nanoseconds())/float64(n), "ns/timer")
				b.StopTimer()
				stop()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkFire is the bar of this package: n timers due within one second, added
// before it begins; all must fire, none early, and the tail not be late.
func BenchmarkFire(b *testing.B) {
	for _, n := range counts {
		for _, who := range []struct {
			name string
			run  func(dues []int64, got func(due int64, k int)) (stop func())
		}{{"wheel", fireWheel(false)}, {"wheel-and-far", fireWheel(true)}, {"timingwheel-20x1ms", fireRaw(20)}, {"timingwheel-512x1ms", fireRaw(512)}, {"timingwheel-4096x1ms", fireRaw(4096)}, {"stdlib", fireStdlib}} {
			b.Run(fmt.Sprintf("n=%d/%s", n, who.name), func(b *testing.B) {
				for b.Loop() {
					runtime.GC()
					p := fireOnce(n, who.run)
					b.ReportMetric(p.p50, "lateness-p50-ms")
					b.ReportMetric(p.p99, "lateness-p99-ms")
					b.ReportMetric(p.max, "lateness-max-ms")
					b.ReportMetric(float64(p.early), "early")
					if p.fired != n {
						b.Fatalf("%d of %d fired", p.fired, n)
					}
				}
			})
		}
	}
}

type lateness struct {
	p50, p99, max float64
	early, fired  int
}

func fireOnce(n int, run func([]int64, func(int64, int)) func()) lateness {
	// Enough time for the slowest to add them all.
	begin := time.Now().Add(time.Duration(n)*2*time.Microsecond + 500*time.Millisecond).UnixMilli()
	dues := make([]int64, n)
	for i := range dues {
		dues[i] = begin + rand.Int64N(1000)
	}
	late := make([]int64, n)
	var next atomic.Int64
	all := make(chan struct{})
	stop := run(dues, func(due int64, k int) {
		ns := time.Now().UnixNano() - due*1e6
		end := next.Add(int64(k))
		for i := end - int64(k); i < end; i++ {
			late[i] = ns
		}
		if end == int64(n) {
			close(all)
		}
	})
	select {
	case <-all:
	case <-time.After(time.Minute):
	}
	stop()
	l := lateness{fired: int(next.Load())}
	slices.Sort(late)
	at := func(q float64) float64 { return float64(late[int(q*float64(n-1))]) / 1e6 }
	l.p50, l.p99, l.max = at(.5), at(.99), at(1)
	for _, ns := range late {
		if ns < 0 {
			l.early++
		}
	}
	return l
}

// fireWheel adds as many again for the ten minutes after, when far.
func fireWheel(far bool) func([]int64, func(int64, int)) func() {
	return func(dues []int64, got func(int64, int)) func() {
		w := New(Config{}, func(due int64, batch []value) { got(due, len(batch)) })
		stop := start(w)
		for i, due := range dues {
			w.Add(due, value{uint64(i)})
			if far {
				w.Add(due+5000+rand.Int64N(600_000), value{})
			}
		}
		return stop
	}
}

func fireRaw(slots int64) func([]int64, func(int64, int)) func() {
	return func(dues []int64, got func(int64, int)) func() {
		tw := timingwheel.NewTimingWheel(time.Millisecond, slots)
		tw.Start()
		for _, due := range dues {
			tw.AfterFunc(time.Until(time.UnixMilli(due)), func() { got(due, 1) })
		}
		return tw.Stop
	}
}

func fireStdlib(dues []int64, got func(int64, int)) func() {
	for _, due := range dues {
		time.AfterFunc(time.Until(time.UnixMilli(due)), func() { got(due, 1) })
	}
	return func() {}
}

// BenchmarkSparse is the wheel at rest between single timers: how late is one that
// comes alone, at a given rate.
func BenchmarkSparse(b *testing.B) {
	for _, rate := range []int{20, 1000, 10_000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			for b.Loop() {
				n := 2 * rate
				begin := time.Now().Add(100 * time.Millisecond).UnixMilli()
				late := make([]float64, 0, n)
				done := make(chan struct{})
				w := New(Config{}, func(due int64, batch []value) {
					ns := time.Now().UnixNano() - due*1e6
					for range batch {
						late = append(late, float64(ns)/1e6)
					}
					if len(late) == n {
						close(done)
					}
				})
				stop := start(w)
				for range n {
					w.Add(begin+rand.Int64N(2000), value{})
				}
				<-done
				stop()
				slices.Sort(late)
				b.ReportMetric(late[n/2], "lateness-p50-ms")
				b.ReportMetric(late[n*99/100], "lateness-p99-ms")
				b.ReportMetric(late[n-1], "lateness-max-ms")
				b.ReportMetric(float64(w.Stats().Missed), "missed")
			}
		})
	}
}

// BenchmarkIdle is the share of one core that a wheel takes while nothing is due.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{0, 1_000_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				w := New(Config{}, func(int64, []value) {})
				stop := start(w)
				for range n {
					w.Add(time.Now().UnixMilli()+3600_000+rand.Int64N(600_000), value{})
				}
				waitArmed(w)
				runtime.GC()
				const wall = 5 * time.Second
				before := cpu()
				time.Sleep(wall)
				b.ReportMetric(100*float64(cpu()-before)/float64(wall), "cpu-%")
				stop()
			}
		})
	}
}

func cpu() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// waitArmed waits until the winder has handed everything to the library.
func waitArmed(w *Wheel[value]) {
	for {
		w.mu.Lock()
		c := w.works
		w.mu.Unlock()
		c.mu.Lock()
		n := len(c.pending)
		c.mu.Unlock()
		if n == 0 {
			time.Sleep(50 * time.Millisecond)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// start runs a wheel; the function it returns ends it and waits.
func start[V any](w *Wheel[V]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}
