package bench

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkMemory is what waiting timers of about 300 bytes cost, and how long a
// start takes after kill -9 with all of them pending.
func BenchmarkMemory(b *testing.B) {
	b.Run("1000000-within-the-hour", func(b *testing.B) {
		benchMemory(b, setting("XTIMER_TIMERS", 1_000_000), 3*time.Minute, 57*time.Minute)
	})
	b.Run("10000000-later", func(b *testing.B) {
		benchMemory(b, setting("XTIMER_TIMERS", 10_000_000), 3*time.Hour, 24*time.Hour)
	})
}

func benchMemory(b *testing.B, n int, from, over time.Duration) {
	for range b.N {
		p := startProcess(b)
		time.Sleep(5 * time.Second)
		none := p.rss()
		start := time.Now().Add(from)
		for i := 0; i < n; {
			var lines bytes.Buffer
			for range min(1000, n-i) {
				lines.WriteString(createBody(int64(i), start.Add(time.Duration(rand.Int64N(int64(over))))))
				lines.WriteByte('\n')
				i++
			}
			if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
		time.Sleep(30 * time.Second)
		b.ReportMetric(float64(p.rss())/(1<<20), "rss-MB")
		b.ReportMetric(float64(p.rss()-none)/(1<<20), "more-than-none-MB")
		before := p.cpu()
		time.Sleep(10 * time.Second)
		b.ReportMetric(float64(p.cpu()-before)/float64(10*time.Second)*100, "idle-%-of-a-core")
		p.kill()
		b.ReportMetric(p.start().Seconds(), "ready-s")
		p.kill()
	}
}
