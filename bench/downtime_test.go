package bench

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/bench/target"
	"xtimer/engine"
)

// TestLongDowntime starts over timers that missed millions of dues while the process
// was down: it is ready within 3 s with at most 500 MiB resident, and each timer is
// called for what its policy leaves. In the full form the ledger proves itself as well.
func TestLongDowntime(t *testing.T) {
	const ready, most = 3 * time.Second, 500 << 20
	minutely := engine.Schedule{Cron: "* * * * *", TimeZone: "America/New_York"}
	secondly, fast := engine.Schedule{Every: time.Second}, engine.Schedule{Every: 10 * time.Millisecond}
	for _, c := range []struct {
		name     string
		timers   int
		schedule engine.Schedule
		policy   engine.MisfirePolicy
		down     time.Duration
	}{
		{"20,000 each minute of a zone, 72 h, latest", 20_000, minutely, engine.MisfireLatest, 72 * time.Hour},
		{"100 each 10 ms, 24 h, latest", 100, fast, engine.MisfireLatest, 24*time.Hour - time.Minute},
		{"5,000 each second, 10 min, all", 5000, secondly, engine.MisfireAll, 10 * time.Minute},
		{"5,000 each second, 10 min, latest", 5000, secondly, engine.MisfireLatest, 10 * time.Minute},
		{"5,000 each second, 10 min, skip", 5000, secondly, engine.MisfireSkip, 10 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			within := byForm(t, 10*time.Second, 10*time.Minute)
			g := listen(t, 0)
			d := engine.NewDefinition()
			d.App, d.Schedule, d.Misfire.Policy, d.Callback.URL = "down", c.schedule, c.policy, g.URL
			from := time.Now().Add(-c.down)
			p, took := startSeeded(t, alike(c.timers, from.Add(-time.Minute), d), from)
			rss := p.sit(2 * time.Second)
			t.Logf("ready after %v, %d MiB resident", round(took), rss>>20)
			if took > ready || rss > most {
				t.Errorf("want it ready within %v with at most %d MiB", ready, most>>20)
			}
			if t.Failed() {
				return
			}
			start := time.Now().Add(-took - 2*time.Second)
			enough := map[engine.MisfirePolicy]int{engine.MisfireLatest: c.timers, engine.MisfireAll: byForm(t, 10_000, c.timers*int(c.down/time.Second))}[c.policy]
			for end := time.Now().Add(within); called(g, start) < enough && time.Now().Before(end); {
				time.Sleep(200 * time.Millisecond)
			}
			// A due in the last ten seconds before the start is no misfire.
			n, old := called(g, start), called(g, start.Add(-10*time.Second))
			t.Logf("%d missed dues were called, %d of them older than 10 s", n, old)
			if most := map[engine.MisfirePolicy]int{engine.MisfireLatest: c.timers, engine.MisfireAll: n}[c.policy]; n < enough || old > most {
				t.Errorf("want %d, at most %d of them old", enough, most)
			}
			if byForm(t, false, true) {
				proveLedger(t, p, from)
			}
		})
	}
}

// called counts the tasks due before an instant that were called.
func called(g *target.Server, before time.Time) (n int) {
	g.Look(func(l *target.Log) {
		for k := range l.Calls {
			if k.Due < before.UnixMilli() {
				n++
			}
		}
	})
	return n
}

// proveLedger has the ledger hold itself against what should have fired after an instant:
// what is due up to the watermark of a seed has ended without a record.
func proveLedger(t *testing.T, p *process, since time.Time) {
	t.Helper()
	out, err := exec.Command(binary, "verify", "--server", p.url(""), "--from", strconv.FormatInt(since.UnixMilli()+1, 10)).CombinedOutput()
	t.Log(strings.TrimSpace(string(out)))
	if err != nil {
		t.Errorf("the ledger does not prove itself: %v", err)
	}
}
