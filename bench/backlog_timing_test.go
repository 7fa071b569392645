package bench

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkBacklog fires 10,000 a second for a minute (XTIMER_RATE, XTIMER_SECONDS)
// with all history into MySQL, and reports how late the calls arrived and what waited
// for MySQL: at most, and the median of each half. What grows shows in the second.
// The timers are intervals, so that all of the minute is at the rate and none of it
// creates.
func BenchmarkBacklog(b *testing.B) {
	rate, length := setting("XTIMER_RATE", 10_000), setting("XTIMER_SECONDS", 60)
	b.Run(fmt.Sprintf("%d-a-second-for-%ds", rate, length), func(b *testing.B) { benchBacklog(b, rate, length) })
}

func benchBacklog(b *testing.B, rate, seconds int) {
	t := startTiers(b)
	p, r := startProcess(b, t.args()...), startReceiver(b)
	r.counting = true
	begin := time.Now().Add(2 * time.Second)
	for n := rate / 10; n > 0; {
		var lines bytes.Buffer
		for range min(500, n) {
			at := begin.Add(time.Duration(n%100) * time.Millisecond)
			fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"100ms","start_at":%d},"callback":{"url":%q}}`+"\n", n, at.UnixMilli(), r.url)
			n--
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(time.Until(begin.Add(3 * time.Second))) // the first plans and connections
	r.reset()
	since := spent(p, t)
	from := time.Now()
	var backlog []float64
	for range seconds {
		time.Sleep(time.Second)
		backlog = append(backlog, p.metric("xtimer_settle_backlog"))
	}
	n := r.total()
	took := time.Since(from)
	until := spent(p, t)
	q := r.lateness(.5, .99, .999)
	b.ReportMetric(float64(n)/took.Seconds(), "fires/s")
	b.ReportMetric(ms(q[0]), "lateness-p50-ms")
	b.ReportMetric(ms(q[1]), "lateness-p99-ms")
	b.ReportMetric(ms(q[2]), "lateness-p99.9-ms")
	b.ReportMetric(float64(r.early), "early")
	median := func(of []float64) float64 { return slices.Sorted(slices.Values(of))[len(of)/2] }
	b.ReportMetric(slices.Max(backlog), "backlog-max")
	b.ReportMetric(median(backlog[:seconds/2]), "backlog-first-half")
	b.ReportMetric(median(backlog[seconds/2:]), "backlog-second-half")
	until.tell(b, since, n, "fire")
}
