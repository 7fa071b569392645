package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/mysql"
	"xtimer/tier/servertest"
)

// servers starts a MariaDB and a Redis and returns the flags that use them.
func servers(t testing.TB) []string { return startTiers(t).args() }

// tiers are the servers beside an xtimer; none when it has tiers of its own.
type tiers struct{ mysql, redis *servertest.Server }

// startTiers starts them as docs/mysql-redis.md recommends.
func startTiers(t testing.TB) *tiers {
	return &tiers{
		servertest.MariaDB(t, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M"),
		servertest.Redis(t, "--appendonly", "no"),
	}
}

func (t *tiers) args() []string {
	if t == nil {
		return nil
	}
	return []string{"--mysql-dsn", t.mysql.DSN("xtimer"), "--redis-addr", t.redis.Addr()}
}

// spending is the processor time of all who take part, in the order of spenders.
// An xtimer that is not there yet has spent nothing.
type spending [4]time.Duration

var spenders = [4]string{"xtimer", "mysql", "redis", "load"}

func spent(p *process, t *tiers) (s spending) {
	if p != nil {
		s[0] = p.cpu()
	}
	if t != nil {
		s[1], s[2] = t.mysql.CPU(), t.redis.CPU()
	}
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	s[3] = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	return s
}

// tell reports what was spent since, for each of n things.
func (s spending) tell(b *testing.B, since spending, n int, what string) {
	for i, name := range spenders {
		if each := float64((s[i] - since[i]).Nanoseconds()) / 1000 / float64(n); each > 0 {
			b.ReportMetric(each, name+"-cpu-us/"+what)
		}
	}
}

// hourMinutes are those over which BenchmarkHour spreads its timers.
const hourMinutes = 45

// BenchmarkHour loads 1,000,000 occurrences of the coming hour while 1,000 calls a
// second are made: from MySQL into Redis, the whole hour at once, and from Redis into
// memory, minute by minute as they come near. One of those minutes is waited for; each
// takes as long.
func BenchmarkHour(b *testing.B) {
	n := setting("XTIMER_HOUR_TIMERS", 1_000_000)
	t := startTiers(b)
	args := t.args()
	r := startReceiver(b)
	// Minutes from now: what is nearer goes from MySQL into memory.
	first := time.Now().Truncate(time.Minute).Add(5 * time.Minute)
	fillHour(b, args[1], r.url, n, first)
	b.ResetTimer()
	started := time.Now()
	since := spent(nil, t)
	p := startProcess(b, args...)
	r.counting = true
	var lines bytes.Buffer
	const intervals = 100 // one due in each ms
	begin := time.Now().Add(time.Second).UnixMilli()
	for i := range intervals {
		fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"100ms","start_at":%d},"callback":{"url":%q}}`+"\n", i, begin+int64(i), r.url)
	}
	if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
		b.Fatal(err)
	}
	reach := func(what string, enough func(hourStats) bool) time.Time {
		for {
			var s hourStats
			resp, err := http.Get(p.url("/v1/stats"))
			if err != nil {
				b.Fatal(err)
			}
			err = json.NewDecoder(resp.Body).Decode(&s)
			resp.Body.Close()
			if err != nil {
				b.Fatal(err)
			}
			if enough(s) {
				return time.Now()
			}
			if time.Since(started) > 10*time.Minute {
				b.Fatalf("%s: %+v", what, s)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	filled := reach("filling Redis", func(s hourStats) bool { return s.Warm >= n+intervals*hourMinutes }).Sub(started)
	until := spent(p, t)
	// A minute is loaded when the one before it begins.
	at := first.Add(-time.Minute)
	if time.Now().After(at) {
		b.Fatal("filling took so long that a minute was loaded before: start with fewer timers")
	}
	time.Sleep(time.Until(at))
	loaded := reach("loading a minute", func(s hourStats) bool { return s.Wheel >= n/hourMinutes }).Sub(at)
	q := r.lateness(.5, .99)
	b.ReportMetric(filled.Seconds(), "mysql-to-redis-s")
	b.ReportMetric(ms(loaded), "minute-to-memory-ms")
	b.ReportMetric((filled + loaded*hourMinutes).Seconds(), "load-s")
	until.tell(b, since, n, "occurrence")
	b.ReportMetric(ms(q[0]), "lateness-p50-ms")
	b.ReportMetric(ms(q[1]), "lateness-p99-ms")
	b.ReportMetric(float64(r.early), "early")
}

// hourStats is what of GET /v1/stats tells where occurrences are.
type hourStats struct{ Warm, Wheel int }

// fillHour stores n one-shots from an instant on.
func fillHour(b *testing.B, dsn, url string, n int, from time.Time) {
	store := mysql.New(mysql.Config{DSN: dsn})
	if err := store.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	now := time.Now().UnixMilli()
	cs := make([]*engine.Change, 0, 1000)
	for i := range n {
		x := &engine.Timer{
			Definition: engine.NewDefinition(), ID: engine.TimerID(i + 1), Version: 1, Generation: 1,
			ValidFrom: now, CreatedAt: now, UpdatedAt: now,
		}
		x.App, x.Name, x.Callback.URL = "bench", fmt.Sprintf("order-%d-expire", i), url
		x.Callback.Body, x.Callback.HasBody, x.Callback.BodyKind = []byte(`{"note":"`+strings.Repeat("x", 150)+`"}`), true, engine.BodyJSON
		x.At = from.UnixMilli() + int64(i)*hourMinutes*60_000/int64(n)
		x.Schedule.At, x.LastDue = x.At, x.At
		if cs = append(cs, &engine.Change{Timer: x, ID: x.ID, At: now}); len(cs) < cap(cs) && i+1 < n {
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
}
