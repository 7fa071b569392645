package bench

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// startSlow is a receiver that counts, and answers so long after a call came.
func startSlow(t testing.TB, wait time.Duration) *receiver {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{url: "http://" + ln.Addr().String() + "/call", counting: true}
	r.srv = &fasthttp.Server{NoDefaultDate: true, NoDefaultServerHeader: true, Handler: func(c *fasthttp.RequestCtx) {
		r.take(c)
		time.Sleep(wait)
	}}
	go r.srv.Serve(ln)
	t.Cleanup(func() { r.srv.Shutdown() })
	return r
}

// everySecond makes n timers of an app that call url each second, spread over it.
func everySecond(t testing.TB, p *process, app, url string, n int) {
	t.Helper()
	for made := 0; made < n; {
		var lines bytes.Buffer
		for range min(500, n-made) {
			made++
			fmt.Fprintf(&lines, `{"app":%q,"name":"every-%d","schedule":{"every":"1s","jitter":"999ms"},"callback":{"url":%q,"timeout":"15s"}}`+"\n", app, names.Add(1), url)
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkSlowTargets makes 5,000 calls a second to a target that answers in 100 ms
// and 2,000 to one that takes 1 s, 2,500 in flight, and reports what a call in flight
// costs in memory.
func BenchmarkSlowTargets(b *testing.B) {
	p := startProcess(b)
	quick, slow := startSlow(b, 100*time.Millisecond), startSlow(b, time.Second)
	for range b.N {
		rss := p.rss()
		everySecond(b, p, "bench", quick.url, 5000)
		everySecond(b, p, "bench", slow.url, 2000)
		time.Sleep(15 * time.Second)
		quick.reset()
		slow.reset()
		const length = 20 * time.Second
		time.Sleep(length)
		for _, r := range []*receiver{quick, slow} {
			name := map[*receiver]string{quick: "100ms", slow: "1s"}[r]
			q := r.lateness(.5, .99)
			b.ReportMetric(float64(r.calls)/length.Seconds(), name+"-calls/s")
			b.ReportMetric(ms(q[0]), name+"-p50-ms")
			b.ReportMetric(ms(q[1]), name+"-p99-ms")
		}
		flying := p.metric("xtimer_calls_in_flight")
		b.ReportMetric(flying, "in-flight")
		b.ReportMetric(float64(p.rss()-rss)/flying/1024, "KB/in-flight")
	}
}

// BenchmarkMuteTargets makes 100 calls a second of a healthy target: alone, then beside
// two targets of its app and six of others that never answer, with 200 calls a second
// due to each.
func BenchmarkMuteTargets(b *testing.B) {
	p, r := startProcess(b), startReceiver(b)
	r.counting = true
	for range b.N {
		everySecond(b, p, "app", r.url, 100)
		measure := func(name string, length time.Duration) {
			r.reset()
			time.Sleep(length)
			q := r.lateness(.5, .99, 1)
			b.ReportMetric(float64(r.calls)/length.Seconds(), name+"-calls/s")
			b.ReportMetric(ms(q[0]), name+"-p50-ms")
			b.ReportMetric(ms(q[1]), name+"-p99-ms")
			b.ReportMetric(ms(q[2]), name+"-worst-ms")
		}
		time.Sleep(3 * time.Second)
		measure("alone", 10*time.Second)
		for i := range 8 {
			app := "app"
			if i > 1 {
				app = fmt.Sprint("app", i)
			}
			everySecond(b, p, app, startMute(b), 200)
		}
		measure("beside", 80*time.Second)
	}
}
