package bench

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/bench/target"
)

// TestWaitingLane lets 10,000 tasks a second wait for a mute target, in a control
// group of 512 MiB. Meanwhile no create of another app is refused, resident memory is
// at most 300 MiB and does not follow what waits, and another app's calls are at most
// 50 ms late at p99. Then the target answers: every task is called, the oldest first
// within a timer, and the neighbour is still on time.
//
// The tasks are of 100 timers, each every 10 ms, or of a timer each.
func TestWaitingLane(t *testing.T) {
	t.Run("recurring", func(t *testing.T) {
		l := beginLane(t, 24<<20)
		rate := byForm(t, 20_000, 10_000) // more, where the time is short, for a difference to show
		stuck := traffic{app: "stuck", target: l.stuck, rate: rate, every: 10 * time.Millisecond, until: time.Now().Add(l.length)}
		stuck.create(t, l.p, 500*time.Millisecond)
		l.judge(func() []target.Key { return stuck.owed(stuck.from, stuck.until) })
	})
	t.Run("one-shots", func(t *testing.T) {
		l := beginLane(t, 64<<20)
		from, n := time.Now().Add(2*time.Second), int(l.length/time.Second)*10_000
		made := make(chan []target.Key, 1)
		go func() { // 5,000 half a second, 2 s ahead
			var all []target.Key
			for i := 0; i < n && l.p.alive(); i += 5000 {
				at := from.Add(time.Duration(i/10) * time.Millisecond)
				time.Sleep(time.Until(at.Add(-2 * time.Second)))
				all = append(all, shots(t, l.p, "stuck", l.stuck, 5000, 0, func(k int) time.Time {
					return at.Add(time.Duration(k/10) * time.Millisecond)
				})...)
			}
			made <- all
		}()
		l.judge(func() []target.Key { return <-made })
	})
}

// waitingLane is a limited process with a mute target and a healthy neighbour.
type waitingLane struct {
	t      *testing.T
	p      *process
	stuck  *target.Server
	good   traffic
	length time.Duration
	// slack is how much more memory the later part of the short form may take than
	// the first; in the full form the bound of all of it is enough.
	slack int64
}

func beginLane(t *testing.T, slack int64) *waitingLane {
	t.Helper()
	l := &waitingLane{t: t, slack: byForm(t, slack, 512<<20), length: time.Duration(setting("XTIMER_SECONDS", byForm(t, 10, 600))) * time.Second}
	limitMemory(t, 512<<20)
	l.p, l.stuck = startProcess(t), listenMute(t)
	l.good = traffic{app: "good", target: listen(t, 0), rate: 100}
	l.good.create(t, l.p, 500*time.Millisecond)
	l.p.sit(time.Second)
	return l
}

// judge sits beside the load until it ends, has the target answer, and waits for
// what is owed.
func (l *waitingLane) judge(owed func() []target.Key) {
	const most, bar = 300 << 20, 50 * time.Millisecond
	t, own := l.t, startPulse()
	l.good.target.Reset()
	done, refused := make(chan struct{}), make(chan int, 1)
	go func() { refused <- l.createUntil(done) }()
	early := l.p.sit(l.length / 3)
	late := l.p.sit(l.length - l.length/3)
	all := owed()
	close(done)
	if n := <-refused; n > 0 {
		t.Errorf("%d creates of another app were refused", n)
	}
	t.Logf("%d tasks wait: %d MiB resident at most in the first third of the time, %d MiB later", len(all), early>>20, late>>20)
	if max(early, late) > most || late-early > l.slack {
		t.Errorf("want at most %d MiB, and %d MiB more later", most>>20, l.slack>>20)
	}
	l.neighbour("the neighbour while the target is mute", bar, own)

	own, now := startPulse(), time.Now()
	l.good.target.Reset()
	l.stuck.Answer()
	missing := l.p.awaitCalls(l.stuck, all, 30*time.Second+2*l.length)
	l.stuck.Look(func(g *target.Log) {
		t.Logf("after %v %d tasks were not called, %d calls came after a later one of their timer", round(time.Since(now)), missing, g.Disordered)
		// Calls that run at once may overtake one another: where the machine stood still for
		// a second, 5 of 5,995,010 began behind a due more than a second later.
		if missing > 0 || g.Disordered*100_000 > len(all) {
			t.Error("want all called, and at most 1 in 100,000 out of order")
		}
	})
	l.neighbour("the neighbour while the target catches up", bar, own)
}

func (l *waitingLane) neighbour(what string, bar time.Duration, own *pulse) {
	l.good.target.Look(func(g *target.Log) { onTime(l.t, what, g.Late(.99), bar, own.end()) })
}

// createUntil creates ten timers a second of another app, and counts those refused.
func (l *waitingLane) createUntil(done chan struct{}) (refused int) {
	for {
		select {
		case <-done:
			return refused
		case <-time.After(100 * time.Millisecond):
		}
		body := fmt.Sprintf(`{"app":"third","name":"t-%d","schedule":{"delay":"1h"},"callback":{"url":%q}}`, names.Add(1), l.good.target.URL)
		r, err := client.Post(l.p.url("/v1/timers"), "application/json", strings.NewReader(body))
		if err == nil {
			r.Body.Close()
		}
		if err != nil || r.StatusCode != http.StatusCreated {
			refused++
		}
	}
}
