package callback

import (
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/httpapi/wire"
)

// benchReceiver is a fasthttp server that takes anything.
func benchReceiver(tb testing.TB) string {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	srv := &fasthttp.Server{
		Handler:            func(ctx *fasthttp.RequestCtx) { ctx.SetStatusCode(200) },
		MaxRequestBodySize: 2 << 20,
	}
	go srv.Serve(ln)
	tb.Cleanup(func() { srv.Shutdown() })
	return "http://" + ln.Addr().String() + "/hook/order-1842?x=1"
}

func benchTimer(url string) *engine.Timer {
	tm := &engine.Timer{Definition: engine.NewDefinition(), ID: 7354000000000001}
	tm.App, tm.Name = "billing", "order-1842-expire"
	tm.Callback.URL = url
	return tm
}

// The fewest goroutines that keep both cores busy.
const benchParallel = 32

// callLoop makes n calls.
func callLoop(tb testing.TB, cb *Caller, tm *engine.Timer, n int) {
	each(n, func(next func() bool) {
		for i := int64(0); next(); i++ {
			call := engine.Call{Timer: tm, Key: engine.Key{Timer: tm.ID, Due: 1763658000250 + i}, Attempt: 1}
			if o := cb.Call(&call); o.Class != engine.ClassOK {
				tb.Errorf("%+v", o)
				return
			}
		}
	})
}

// bareLoop makes n requests with the same headers and body and nothing else:
// each goroutine writes its request once and sends it again and again.
func bareLoop(tb testing.TB, hc *fasthttp.HostClient, tm *engine.Timer, n int) {
	each(n, func(next func() bool) {
		key := engine.Key{Timer: tm.ID, Due: 1763658000250}
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		req.SetRequestURI(tm.Callback.URL)
		req.Header.SetMethod("POST")
		req.Header.SetUserAgent("xtimer/dev")
		req.Header.SetContentType("application/json")
		req.Header.Set("Idempotency-Key", key.String())
		req.Header.Set("X-Xtimer-Task", key.String())
		req.Header.Set("X-Xtimer-Timer", tm.ID.String())
		req.Header.Set("X-Xtimer-App", tm.App)
		req.Header.Set("X-Xtimer-Name", tm.Name)
		req.Header.Set("X-Xtimer-Due", "2025-11-20T17:00:00.250Z")
		req.Header.Set("X-Xtimer-Attempt", "1")
		req.SetBody(appendEnvelope(nil, &engine.Call{Timer: tm, Key: key, Attempt: 1}, key.Append(nil), wire.AppendTime(nil, key.Due)))
		for next() {
			if err := hc.DoTimeout(req, resp, 15*time.Second); err != nil || resp.StatusCode() != 200 {
				tb.Error(err, resp.StatusCode())
				return
			}
		}
	})
}

func each(n int, loop func(next func() bool)) {
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	for range benchParallel {
		wg.Go(func() { loop(func() bool { return left.Add(-1) >= 0 }) })
	}
	wg.Wait()
}

func bareClient(tm *engine.Timer) *fasthttp.HostClient {
	origin, _ := splitURL(tm.Callback.URL)
	return &fasthttp.HostClient{
		Addr: strings.TrimPrefix(origin, "http://"), MaxConns: 512, MaxIdemponentCallAttempts: 1,
		MaxResponseBodySize: maxBody, ReadBufferSize: maxHead,
		ConnPoolStrategy: fasthttp.LIFO,
	}
}

func BenchmarkBareFasthttp(b *testing.B) {
	tm := benchTimer(benchReceiver(b))
	hc := bareClient(tm)
	bareLoop(b, hc, tm, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	bareLoop(b, hc, tm, b.N)
}

func BenchmarkCallback(b *testing.B) {
	tm := benchTimer(benchReceiver(b))
	cb, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer cb.Close()
	callLoop(b, cb, tm, 1000)
	b.ReportAllocs()
	b.ResetTimer()
	callLoop(b, cb, tm, b.N)
}

// BenchmarkCallbackOfBare takes turns between the two, for what a busy machine
// does to one it does to the other. x-of-bare-loop is the median over the
// turns of calls made by us for each that the bare loop makes: more is better.
func BenchmarkCallbackOfBare(b *testing.B) {
	tm := benchTimer(benchReceiver(b))
	cb, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer cb.Close()
	hc := bareClient(tm)
	callLoop(b, cb, tm, 1000)
	bareLoop(b, hc, tm, 1000)
	const turn = 5000
	spent := func(loop func()) float64 {
		runtime.GC()
		start := time.Now()
		loop()
		return time.Since(start).Seconds()
	}
	var ratios []float64
	for n := 0; n < b.N || n == 0; n += turn {
		ours := func() { callLoop(b, cb, tm, turn) }
		bare := func() { bareLoop(b, hc, tm, turn) }
		if n/turn%2 == 0 {
			first := spent(bare)
			ratios = append(ratios, first/spent(ours))
		} else {
			first := spent(ours)
			ratios = append(ratios, spent(bare)/first)
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-of-bare-loop")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRequest is the cost of writing a request down; the signed one, of
// signing it too.
func BenchmarkRequest(b *testing.B) {
	for _, secrets := range []int{0, 1, 2} {
		b.Run("secrets-"+strconv.Itoa(secrets), func(b *testing.B) {
			tm := benchTimer("http://127.0.0.1:80/hook/order-1842?x=1")
			both := []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_QfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
			cb, err := New(Config{Secrets: map[string][]string{"billing": both[:secrets]}})
			if err != nil {
				b.Fatal(err)
			}
			origin, path := splitURL(tm.Callback.URL)
			t, err := cb.target(origin)
			if err != nil {
				b.Fatal(err)
			}
			defer cb.Close()
			call := &engine.Call{Timer: tm, Key: engine.Key{Timer: tm.ID, Due: 1763658000250}, Attempt: 1}
			s, now := &scratch{}, time.Now()
			b.ReportAllocs()
			for b.Loop() {
				s.request = cb.appendRequest(s, call, t, path, now)
			}
		})
	}
}

// BenchmarkBatch is the cost of a call of 1,000 tasks.
func BenchmarkBatch(b *testing.B) {
	url := benchReceiver(b)
	cb, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer cb.Close()
	const size = 1000
	batch := &engine.BatchCall{ID: 1}
	for i := range size {
		tm := benchTimer(url)
		tm.ID += engine.TimerID(i)
		batch.Calls = append(batch.Calls, &engine.Call{Timer: tm, Key: engine.Key{Timer: tm.ID, Due: 1763658000250}, Attempt: 1})
	}
	call := *batch.Calls[0]
	call.Batch = batch
	b.ReportAllocs()
	for b.Loop() {
		if o := cb.Call(&call); o.Code != 200 {
			b.Fatal(o)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/task")
}

// BenchmarkPeek is the cost of looking at a kept connection before a request.
func BenchmarkPeek(b *testing.B) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	cn := &link{Conn: c}
	if err := cn.open(c); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if !cn.quiet() {
			b.Fatal("not quiet")
		}
	}
}
