package wal

import (
	"cmp"
	"fmt"
	"log/slog"
	"sort"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
)

// payload is about what a task with one attempt and a short answer encodes to.
const payload = 120

func onDisk(b *testing.B) *journal {
	return start(b, Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
}

// BenchmarkCommit appends a Begin and a Finish a time and waits for the disk:
// the cost of a record and the time until it is durable.
func BenchmarkCommit(b *testing.B) {
	for _, c := range []struct {
		name    string
		writers int
	}{{"writers=1", 1}, {"writers=64", 64}, {"writers=1024", 1024}} {
		b.Run(c.name, func(b *testing.B) {
			j := onDisk(b)
			defer j.end()
			task := make([]byte, payload)
			took := make([][]time.Duration, c.writers)
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for w := range c.writers {
				wg.Go(func() {
					for i := w; i < b.N; i += c.writers {
						j.Begin(sample)
						at := time.Now()
						j.sync(j.Finish(task))
						took[w] = append(took[w], time.Since(at))
						if i%10000 == 0 {
							_ = j.Forget(j.Next(), nil)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "records/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/record")
			reportSync(b, took)
		})
	}
}

func reportSync(b *testing.B, took [][]time.Duration) {
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	if len(all) == 0 {
		return
	}
	sort.Slice(all, func(i, k int) bool { return all[i] < all[k] })
	at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1000 }
	b.ReportMetric(at(.5), "sync-p50-ms")
	b.ReportMetric(at(.99), "sync-p99-ms")
}

// BenchmarkAppend is what the fire path pays: Begin and Finish, nobody waiting,
// as fast as it goes.
func BenchmarkAppend(b *testing.B) {
	j := onDisk(b)
	defer j.end()
	task := make([]byte, payload)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		j.Begin(sample)
		p := j.Finish(task)
		if i%10000 == 9999 {
			j.sync(p) // as the engine pauses at 50,000
			_ = j.Forget(p, nil)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/record")
}

// BenchmarkStream is a server at 50,000 fires/s, 100,000 records/s, with a
// settle every 200 ms: what it costs in CPU, commits and disk. One op is a
// second of it. The last one keeps what is settled, as over MySQL.
func BenchmarkStream(b *testing.B) {
	for _, cfg := range []Config{{Spacing: -1}, {Spacing: time.Millisecond}, {Spacing: 2 * time.Millisecond}, {Spacing: 5 * time.Millisecond}, {}, {Keep: time.Minute}} {
		name := "spacing=" + max(cmp.Or(cfg.Spacing, 10*time.Millisecond), 0).String()
		if cfg.Keep > 0 {
			name += "/keep=" + cfg.Keep.String()
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			cfg.Dir, cfg.Logger = dir, slog.New(slog.DiscardHandler)
			j := start(b, cfg)
			defer j.end()
			task := make([]byte, payload)
			const tick = time.Millisecond
			const perTick = 50
			var settled engine.Position
			w := &engine.Watermarks{}
			for i := range w {
				w[i] = int64(i)
			}
			var worst time.Duration
			disk := uint64(0)
			cpu := cpuTime(b)
			commits := j.commits()
			b.ResetTimer()
			begin := time.Now()
			for n := range b.N * int(time.Second/tick) {
				for range perTick {
					j.Begin(sample)
					j.Finish(task)
				}
				if n%200 == 199 {
					_ = j.Forget(settled, w)
					settled = j.Next()
					disk = max(disk, diskUse(b, dir))
				}
				_, age := j.Unsynced()
				worst = max(worst, age)
				time.Sleep(time.Until(begin.Add(time.Duration(n+1) * tick)))
			}
			b.StopTimer()
			s := b.Elapsed().Seconds()
			b.ReportMetric(float64(b.N)*2*perTick*1000/s, "records/s")
			b.ReportMetric(float64(j.commits()-commits)/s, "commits/s")
			b.ReportMetric((cpuTime(b)-cpu).Seconds()/s*100, "cpu-%")
			b.ReportMetric(worst.Seconds()*1000, "unsynced-max-ms")
			b.ReportMetric(float64(disk)/(1<<20), "disk-max-MiB")
		})
	}
}

// BenchmarkForget drops the oldest group of a journal that keeps many: the cost
// must not go with what stays.
func BenchmarkForget(b *testing.B) {
	for _, kept := range []uint64{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("kept=%d", kept), func(b *testing.B) {
			l := New(Config{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
			if err := l.Open(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			c := committer{Log: l, alarm: time.AfterFunc(time.Hour, func() {})}
			n := kept + uint64(b.N)
			for i := range n { // as that many commits of one record leave it
				l.kept.add(i, 1, time.Time{})
			}
			l.pending.next = n
			l.durable.Store(n)
			b.ResetTimer()
			for i := range uint64(b.N) {
				if err := l.Forget(engine.Position(i+1), nil); err != nil {
					b.Fatal(err)
				}
				if err := c.commit(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
