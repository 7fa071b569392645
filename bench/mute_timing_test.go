package bench

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"
)

// startMute is a host that accepts and never answers.
func startMute(t testing.TB) (url string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		ln.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			c.Close()
		}
	})
	return "http://" + ln.Addr().String() + "/mute"
}

// BenchmarkMuteTarget is what 2,000 timers of a host that never answers do to
// the lateness of 5,000 of a healthy one: all of one app, each every second.
func BenchmarkMuteTarget(b *testing.B) {
	p, r := startProcess(b), startReceiver(b)
	r.counting = true
	mute := startMute(b)
	every := func(url string, n int) {
		for made := 0; made < n; {
			var lines bytes.Buffer
			for range min(500, n-made) {
				made++
				// Spread over the second by their anchors: created in turn.
				fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"1s","jitter":"999ms"},"callback":{"url":%q}}`+"\n", names.Add(1), url)
			}
			if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
				b.Fatal(err)
			}
		}
	}
	measure := func() (p50, p99 time.Duration) {
		time.Sleep(3 * time.Second)
		r.reset()
		time.Sleep(10 * time.Second)
		q := r.lateness(.5, .99)
		return q[0], q[1]
	}
	for range b.N {
		every(r.url, 5000)
		p50, p99 := measure()
		b.ReportMetric(ms(p50), "alone-p50-ms")
		b.ReportMetric(ms(p99), "alone-p99-ms")
		every(mute, 2000)
		p50, p99 = measure()
		b.ReportMetric(ms(p50), "beside-p50-ms")
		b.ReportMetric(ms(p99), "beside-p99-ms")
		b.ReportMetric(float64(r.early), "early")
	}
}
