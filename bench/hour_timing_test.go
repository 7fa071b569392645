package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/mysql"
	"xtimer/tier/servertest"
)

// servers starts a MariaDB and a Redis and returns the flags that use them.
func servers(t testing.TB) []string {
	return []string{"--mysql-dsn", servertest.MariaDB(t, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M").DSN("xtimer"), "--redis-addr", servertest.Redis(t).Addr()}
}

// BenchmarkHour loads 1,000,000 occurrences of the coming hour: from MySQL into
// Redis, and the next minutes into memory, while 1,000 timers a second fire.
func BenchmarkHour(b *testing.B) {
	n := setting("XTIMER_HOUR_TIMERS", 1_000_000)
	args := servers(b)
	store := mysql.New(mysql.Config{DSN: args[1]})
	if err := store.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := startReceiver(b)
	now := time.Now().UnixMilli()
	cs := make([]*engine.Change, 0, 1000)
	for i := range n {
		t := &engine.Timer{
			Definition: engine.NewDefinition(), ID: engine.TimerID(i + 1), Version: 1, Generation: 1,
			ValidFrom: now, CreatedAt: now, UpdatedAt: now,
		}
		t.App, t.Name, t.Callback.URL = "bench", fmt.Sprintf("order-%d-expire", i), r.url
		t.Callback.Body, t.Callback.HasBody, t.Callback.BodyKind = []byte(`{"note":"`+strings.Repeat("x", 150)+`"}`), true, engine.BodyJSON
		t.At = now + 5*60_000 + int64(i)*50*60_000/int64(n)
		t.Schedule.At, t.LastDue = t.At, t.At
		if cs = append(cs, &engine.Change{Timer: t, ID: t.ID, At: now}); len(cs) < cap(cs) && i+1 < n {
			continue
		}
		for _, a := range store.ApplyAll(b.Context(), cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
		cs = cs[:0]
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	started := time.Now()
	p := startProcess(b, args...)
	r.counting = true
	schedule(b, p, r, 20_000, func(i int) time.Time { return started.Add(6*time.Second + time.Duration(i)*time.Millisecond) })
	for {
		var s struct{ Warm int }
		resp, err := http.Get(p.url("/v1/stats"))
		if err != nil {
			b.Fatal(err)
		}
		err = json.NewDecoder(resp.Body).Decode(&s)
		resp.Body.Close()
		if err != nil {
			b.Fatal(err)
		}
		if s.Warm >= n {
			break
		}
		if time.Since(started) > 10*time.Minute {
			b.Fatalf("%d of %d are in Redis", s.Warm, n)
		}
		time.Sleep(100 * time.Millisecond)
	}
	took := time.Since(started)
	r.await(b, 20_000, time.Minute)
	q := r.lateness(.5, .99)
	b.ReportMetric(took.Seconds(), "load-s")
	b.ReportMetric(ms(q[0]), "lateness-p50-ms")
	b.ReportMetric(ms(q[1]), "lateness-p99-ms")
	b.ReportMetric(float64(r.early), "early")
}
