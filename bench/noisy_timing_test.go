package bench

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// BenchmarkNoisyApp makes 1,000 calls a second for one app: alone, and while another
// app, with a target of its own, has far more due at one instant than the machine can
// call. Apps take turns, so the first should hardly notice; what it notices is that
// both cores are busy.
func BenchmarkNoisyApp(b *testing.B) {
	b.Run("300000-due-at-once", func(b *testing.B) { benchNoisyApp(b, 300_000) })
}

func benchNoisyApp(b *testing.B, n int) {
	p, quiet, noisy := startProcess(b), startReceiver(b), startReceiver(b)
	quiet.counting, noisy.counting = true, true
	var lines bytes.Buffer
	begin := time.Now().Add(time.Second).UnixMilli()
	for i := range int64(100) { // one due in each ms
		fmt.Fprintf(&lines, `{"app":"quiet","name":"every-%d","schedule":{"every":"100ms","start_at":%d},"callback":{"url":%q}}`+"\n", i, begin+i, quiet.url)
	}
	if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
		b.Fatal(err)
	}
	const alone = 10 * time.Second
	at := time.Now().Add(5*time.Second + time.Duration(n)*60*time.Microsecond + alone)
	schedule(b, p, noisy, n, func(int) time.Time { return at })
	if time.Until(at) < alone {
		b.Fatal("creating took longer than the lead: the figure would be wrong")
	}
	time.Sleep(time.Until(at.Add(-alone)))
	quiet.reset()
	time.Sleep(time.Until(at))
	before := quiet.lateness(.5, .99)
	quiet.reset()
	noisy.await(b, n, 2*time.Minute)
	beside := quiet.lateness(.5, .99)
	b.ReportMetric(float64(n)/noisy.last.Sub(at).Seconds(), "noisy-fires/s")
	b.ReportMetric(ms(before[0]), "alone-p50-ms")
	b.ReportMetric(ms(before[1]), "alone-p99-ms")
	b.ReportMetric(ms(beside[0]), "beside-p50-ms")
	b.ReportMetric(ms(beside[1]), "beside-p99-ms")
	b.ReportMetric(float64(beside[1])/float64(before[1]), "x-of-alone-p99")
}
