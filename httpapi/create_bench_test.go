package httpapi

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

// benchServer is a server on a durable engine, reached through TCP; the client
// shares its cores.
func benchServer(b *testing.B) (do func(path, body string) int) {
	s, err := NewServer(newEngine(b, answers(200), nil), ServerConfig{})
	if err != nil {
		b.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, ln) }()
	b.Cleanup(func() { cancel(); <-ended })
	client := &fasthttp.HostClient{Addr: ln.Addr().String(), MaxConns: 64}
	return func(path, body string) int {
		q, p := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(q)
		defer fasthttp.ReleaseResponse(p)
		q.SetRequestURI("http://x" + path)
		q.Header.SetMethod("POST")
		q.SetBodyString(body)
		if err := client.Do(q, p); err != nil {
			b.Error(err)
		}
		return p.StatusCode()
	}
}

// orderBody is a timer of 300 bytes, as a shop would send it.
const orderBody = `{"app":"billing","name":"order-1842-expire","schedule":{"delay":"30m"},` +
	`"callback":{"url":"https://orders.example.com/hooks/expire","headers":{"Content-Type":"application/json"},` +
	`"body":{"order":1842,"customer":"c-77"},"timeout":"10s"},"retry":{"max_attempts":6},"labels":{"team":"checkout"}}`

func order(n int64) string {
	return strings.Replace(orderBody, "order-1842-expire", fmt.Sprint("order-", n), 1)
}

// BenchmarkCreate64 creates timers one a request, over 64 connections, durably.
func BenchmarkCreate64(b *testing.B) {
	do := benchServer(b)
	var n atomic.Int64
	b.SetParallelism(32) // times GOMAXPROCS = 2
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if st := do("/v1/timers", order(n.Add(1))); st != 201 {
				b.Errorf("status %d", st)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "timers/s")
}

// BenchmarkCreateBatch1000 creates timers in batches of 1,000, 4 at a time.
func BenchmarkCreateBatch1000(b *testing.B) {
	do := benchServer(b)
	var n atomic.Int64
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			items := make([]string, 1000)
			for i := range items {
				items[i] = order(n.Add(1))
			}
			if st := do(batchPath, `{"timers":[`+strings.Join(items, ",")+`]}`); st != 200 {
				b.Errorf("status %d", st)
			}
		}
	})
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "timers/s")
}

func BenchmarkDecodeBatch(b *testing.B) {
	body := []byte(`{"timers":[` + strings.Repeat(orderBody+",", 999) + orderBody + `]}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		items, err := decodeBatch(body, false)
		if err != nil || len(items) != 1000 {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/timer")
}
