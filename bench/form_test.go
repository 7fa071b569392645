package bench

import (
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Some trials hold the service to bounds that are stated for minutes of load. With
// XTIMER_TRIALS=full they run as long as stated (make torture does so), with
// XTIMER_TRIALS=1 in a short form of some seconds. Without it they are skipped.

// byForm chooses by the form that is asked for.
func byForm[T any](t testing.TB, short, full T) T {
	t.Helper()
	switch os.Getenv("XTIMER_TRIALS") {
	case "":
		t.Skip("XTIMER_TRIALS=1 runs this trial in a short form, XTIMER_TRIALS=full in full")
	case "full":
		return full
	}
	return short
}

// besides is how many trials run at a time, where there are fewer cores.
const besides = 3

// beside lets a trial run beside another one, in its short form: most of its time it
// waits. One that was made longer or heavier by its settings has the machine to itself.
func beside(t *testing.T) {
	t.Helper()
	for _, env := range os.Environ() {
		name, _, _ := strings.Cut(env, "=")
		if strings.HasPrefix(name, "XTIMER_") && name != "XTIMER_SEED" && name != "XTIMER_BINARY" {
			return
		}
	}
	t.Parallel()
}

// oneCluster is held by the trial whose nodes run.
var oneCluster sync.Mutex

// besideAsCluster lets a trial of several nodes run beside others, but not beside another cluster:
// six nodes and their servers are seconds late on two cores.
func besideAsCluster(t *testing.T) {
	t.Helper()
	beside(t)
	oneCluster.Lock()
	t.Cleanup(oneCluster.Unlock)
}

// pulse measures how late this machine's own timers are while a trial runs: what is
// measured beside other load says less about xtimer.
type pulse struct {
	done, ended chan struct{}
	late        []time.Duration
}

func startPulse() *pulse {
	p := &pulse{done: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for {
			select {
			case <-p.done:
				return
			default:
			}
			asked := time.Now()
			time.Sleep(time.Millisecond)
			p.late = append(p.late, time.Since(asked)-time.Millisecond)
		}
	}()
	return p
}

// end ends the measurement and returns its p99.
func (p *pulse) end() time.Duration {
	close(p.done)
	<-p.ended
	slices.Sort(p.late)
	return p.late[len(p.late)*99/100]
}

// onTime fails the test when a quantile of lateness is over the bar. A machine whose own timers are
// more than 1 ms late at p99 raises the bar, by 50 ms for each ms more.
func onTime(t testing.TB, what string, late, bar, own time.Duration) {
	t.Helper()
	t.Logf("%s: %v late, at most %v asked; this machine's own timers %v at p99", what, round(late), bar, round(own))
	if late > bar+50*max(0, own-time.Millisecond) {
		t.Errorf("%s is late", what)
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
