package bench

import (
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

func startTiers(t testing.TB) *tiers {
	return &tiers{servertest.MariaDB(t, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=256M"), servertest.Redis(t)}
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

// BenchmarkHour loads 1,000,000 occurrences of the coming hour: from MySQL into
// Redis, and the next minutes into memory, while 1,000 timers a second fire.
func BenchmarkHour(b *testing.B) {
	n := setting("XTIMER_HOUR_TIMERS", 1_000_000)
	t := startTiers(b)
	args := t.args()
	store := mysql.New(mysql.Config{DSN: args[1]})
	if err := store.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	r := startReceiver(b)
	now := time.Now().UnixMilli()
	cs := make([]*engine.Change, 0, 1000)
	for i := range n {
		x := &engine.Timer{
			Definition: engine.NewDefinition(), ID: engine.TimerID(i + 1), Version: 1, Generation: 1,
			ValidFrom: now, CreatedAt: now, UpdatedAt: now,
		}
		x.App, x.Name, x.Callback.URL = "bench", fmt.Sprintf("order-%d-expire", i), r.url
		x.Callback.Body, x.Callback.HasBody, x.Callback.BodyKind = []byte(`{"note":"`+strings.Repeat("x", 150)+`"}`), true, engine.BodyJSON
		x.At = now + 10*60_000 + int64(i)*45*60_000/int64(n)
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
	b.ResetTimer()
	started := time.Now()
	since := spent(nil, t)
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
	took, until := time.Since(started), spent(p, t)
	r.await(b, 20_000, time.Minute)
	q := r.lateness(.5, .99)
	b.ReportMetric(took.Seconds(), "load-s")
	until.tell(b, since, n, "occurrence")
	b.ReportMetric(ms(q[0]), "lateness-p50-ms")
	b.ReportMetric(ms(q[1]), "lateness-p99-ms")
	b.ReportMetric(float64(r.early), "early")
}
