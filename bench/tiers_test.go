package bench

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// loss is something that happens to a tier while xtimer fires.
type loss struct {
	name  string
	lasts time.Duration
	begin func()
	end   func()
}

// TestLosingATier takes MySQL and Redis away in every way there is, one after
// the other: nothing is missing, nothing early, nothing comes twice. How late
// calls are before, during and after each is logged; with XTIMER_AWAY, the p99 of the
// better half of the time after each is held against that before, see asBefore: what
// lasts shows in both, a neighbour's tenth of a second in one. Without, the spans are
// of a second, and what else the machine does would be judged.
//
// XTIMER_AWAY is how many seconds MySQL is away, XTIMER_RATE the fires a second:
// 60 and 1000 are the figures to hold.
func TestLosingATier(t *testing.T) {
	beside(t)
	away := time.Duration(setting("XTIMER_AWAY", 6)) * time.Second
	judged := os.Getenv("XTIMER_AWAY") != ""
	rate := setting("XTIMER_RATE", 300)
	hang := away / 3

	mysql, redis := servertest.MariaDB(t), servertest.Redis(t)
	toMySQL, toRedis := servertest.NewProxy(t, mysql.Addr()), servertest.NewProxy(t, redis.Addr())
	losses := []loss{
		{"redis: FLUSHALL", 0, func() { redis.Do("FLUSHALL") }, func() {}},
		{"redis: killed", hang, redis.Kill, redis.Start},
		{"redis: hangs", hang, redis.Pause, redis.Resume},
		{"redis: answers lost", hang / 2, func() { toRedis.SwallowReplies(true) }, toRedis.Heal},
		{"mysql: stopped", away, mysql.Stop, mysql.Start},
		{"mysql: killed", hang, mysql.Kill, mysql.Start},
		{"mysql: hangs", hang, mysql.Pause, mysql.Resume},
		{"mysql: answers lost", hang / 2, func() { toMySQL.SwallowReplies(true) }, toMySQL.Heal},
		{"mysql: slow", hang / 2, func() { toMySQL.Delay(20 * time.Millisecond) }, toMySQL.Heal},
		{"both: killed", hang / 2, func() { mysql.Kill(); redis.Kill() }, func() { mysql.Start(); redis.Start() }},
	}
	calm := max(hang/2, time.Second)
	total := calm + 5*time.Second
	for _, l := range losses {
		total += l.lasts + back + calm
	}

	// A third each: intervals, what is created seconds ahead (none while MySQL is
	// away), and what is created now for the whole trial.
	tr := &trial{t: t, rate: rate / 3, intervals: rate / 3 / 10}
	tr.begin("--mysql-dsn", strings.Replace(mysql.DSN("xtimer"), mysql.Addr(), toMySQL.Addr(), 1), "--redis-addr", toRedis.Addr())
	tr.ahead(rate/3, total)

	time.Sleep(2 * time.Second) // what was created goes its way
	var spans []span
	quiet := func(name string) {
		from := time.Now()
		time.Sleep(calm)
		spans = append(spans, span{name, from, time.Now()})
	}
	if n := mysql.Do("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'xtimer'"); n == "0\n" {
		t.Fatal("xtimer does not use MySQL: the trial says nothing")
	}
	if n := redis.Do("DBSIZE"); n == "0\n" {
		t.Fatal("xtimer does not use Redis: the trial says nothing")
	}
	quiet(before)
	for _, l := range losses {
		from := time.Now()
		l.begin()
		time.Sleep(l.lasts)
		l.end()
		time.Sleep(back) // connections are made anew, what waited is called
		spans = append(spans, span{l.name, from, time.Now()})
		quiet(after)
	}
	tr.finish()
	tr.check(false)
	tr.describe(spans, judged)
}

// ahead creates one-shots at the rate for the time that comes.
func (tr *trial) ahead(rate int, total time.Duration) {
	from := time.Now().Add(5 * time.Second)
	n := int(total.Seconds() * float64(rate))
	for i := 0; i < n; {
		var b bytes.Buffer
		var dues []int64
		for range min(1000, n-i) {
			due := from.Add(time.Duration(i) * time.Second / time.Duration(rate))
			oneShot(&b, tr.r.url, due, patience)
			dues = append(dues, due.UnixMilli())
			i++
		}
		ids, err := createBatch(tr.p.url(""), b.Bytes())
		if err != nil {
			tr.t.Fatal(err)
		}
		tr.acknowledge(ids, dues)
	}
}

// span is a part of a trial's time.
type span struct {
	name     string
	from, to time.Time
}

const (
	before, after = "before", "after"
	// back is how much of the time after its end belongs to an event.
	back = time.Second
	// likeBefore is a p99 (ms) that is good at any time: where it was a third of a
	// ms before, a neighbour on the machine makes twice that of it.
	likeBefore = 5
)

// asBefore reports whether the p99 (ms) after an event is as it was: twice that
// before at most.
func asBefore(was, is float64) bool { return is <= max(2*was, likeBefore) }

func TestAsBefore(t *testing.T) {
	for _, c := range []struct {
		was, is float64
		want    bool
	}{{0.3, 5, true}, {0.3, 5.1, false}, {4, 8, true}, {4, 8.1, false}, {4, 1, true}} {
		if asBefore(c.was, c.is) != c.want {
			t.Errorf("%v ms after %v ms: %v", c.is, c.was, !c.want)
		}
	}
}

// describe logs how late the calls were that were due in each span, and judges
// those after an event.
func (tr *trial) describe(spans []span, judged bool) {
	tr.r.mu.Lock()
	defer tr.r.mu.Unlock()
	late := make([][]float64, len(spans))
	halves := make([][2][]float64, len(spans))
	for key, at := range tr.r.arrivals {
		due, _ := strconv.ParseInt(key[strings.LastIndexByte(key, '_')+1:], 10, 64)
		for i, s := range spans {
			if due < s.from.UnixMilli() || due >= s.to.UnixMilli() {
				continue
			}
			half, by := 0, ms(at[0].Sub(time.UnixMilli(due)))
			if due >= (s.from.UnixMilli()+s.to.UnixMilli())/2 {
				half = 1
			}
			late[i], halves[i][half] = append(late[i], by), append(halves[i][half], by)
		}
	}
	out := fmt.Sprintf("%-20s %8s %8s %10s %10s %10s\n", "late, in ms", "seconds", "fires", "p50", "p99", "most")
	was, event := 0.0, ""
	for i, s := range spans {
		if len(late[i]) == 0 && s.to.Sub(s.from) >= time.Second {
			tr.t.Errorf("nothing was due in %q: the trial says nothing of it", s.name)
		}
		p99 := quantile(late[i], .99)
		is := min(quantile(halves[i][0], .99), quantile(halves[i][1], .99))
		switch {
		case s.name == before:
			was, event = p99, before
		case s.name != after:
			event = s.name
		case judged && !asBefore(was, is):
			tr.t.Errorf("p99 after %q is %.2f ms, before it all %.2f", event, is, was)
		}
		out += fmt.Sprintf("%-20s %8.1f %8d %10.2f %10.2f %10.2f\n", s.name, s.to.Sub(s.from).Seconds(), len(late[i]), quantile(late[i], .5), p99, quantile(late[i], 1))
	}
	tr.t.Logf("\n%s", out)
}

// quantile sorts what it is given; of nothing it is not a number.
func quantile(of []float64, q float64) float64 {
	slices.Sort(of)
	if len(of) == 0 {
		return math.NaN()
	}
	return of[min(int(q*float64(len(of))), len(of)-1)]
}
