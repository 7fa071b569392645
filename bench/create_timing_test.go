package bench

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// createBody is one timer of about 300 bytes, due in an hour or so.
func createBody(n int64, due time.Time) string {
	return fmt.Sprintf(`{"app":"bench","name":"order-%d-expire","schedule":{"at":%d},"callback":{"url":"http://127.0.0.1:9/orders/expire","headers":{"X-Order":"%d"},"body":{"order":%d,"kind":"expire","note":"%s"}}}`,
		n, due.UnixMilli(), n, n, strings.Repeat("x", 90))
}

// BenchmarkCreate creates timers over HTTP, each durable before its answer.
func BenchmarkCreate(b *testing.B) {
	b.Run("one-a-request-64-connections", func(b *testing.B) { benchCreate(b, 64, 1, 150_000, nil) })
	b.Run("batches-of-1000-4-connections", func(b *testing.B) { benchCreate(b, 4, 1000, 400_000, nil) })
	b.Run("servers/one-a-request-64-connections", func(b *testing.B) { benchCreate(b, 64, 1, 60_000, startTiers(b)) })
	b.Run("servers/batches-of-1000-4-connections", func(b *testing.B) { benchCreate(b, 4, 1000, 200_000, startTiers(b)) })
}

func benchCreate(b *testing.B, conns, batch, total int, t *tiers) {
	p := startProcess(b, t.args()...)
	c := &fasthttp.HostClient{Addr: p.addr, MaxConns: conns, MaxResponseBodySize: 64 << 20}
	due := time.Now().Add(2 * time.Hour)
	var next atomic.Int64
	var rate float64
	var since, until spending
	for range b.N {
		// Bodies are made before the clock runs: what is measured is xtimer.
		bodies := make([][]byte, total/batch)
		for i := range bodies {
			var w bytes.Buffer
			for j := range batch {
				n := next.Add(1)
				if j > 0 {
					w.WriteByte('\n')
				}
				w.WriteString(createBody(n, due.Add(time.Duration(n)*time.Millisecond)))
			}
			bodies[i] = w.Bytes()
		}
		path, kind := "/v1/timers", "application/json"
		if batch > 1 {
			path, kind = "/v1/timers/batch", "application/x-ndjson"
		}
		b.ResetTimer()
		since = spent(p, t)
		started := time.Now()
		createAll(b, c, p.url(path), kind, bodies, conns, batch)
		rate = max(rate, float64(total)/time.Since(started).Seconds())
		until = spent(p, t)
	}
	b.ReportMetric(rate, "creates/s")
	until.tell(b, since, total, "create")
}

// createAll sends each body once, over so many connections at a time. A body has batch timers.
func createAll(b *testing.B, c *fasthttp.HostClient, url, kind string, bodies [][]byte, conns, batch int) {
	var at atomic.Int64
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			for {
				i := int(at.Add(1)) - 1
				if i >= len(bodies) {
					return
				}
				req.SetRequestURI(url)
				req.Header.SetMethod("POST")
				req.Header.SetContentType(kind)
				req.SetBodyRaw(bodies[i])
				err := c.Do(req, resp)
				if want := 201 - min(batch-1, 1); err != nil || resp.StatusCode() != want {
					b.Errorf("%v: %d %.200s", err, resp.StatusCode(), resp.Body())
					return
				}
				if batch > 1 && bytes.Count(resp.Body(), []byte(`"status":201`)) != batch {
					b.Errorf("not all of a batch were made: %.300s", resp.Body())
					return
				}
			}
		})
	}
	wg.Wait()
}
