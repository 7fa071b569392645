package bench

import (
	"fmt"
	"testing"
	"time"

	"xtimer/bench/target"
)

// TestMuteNeighbours calls a healthy target 100 times a second beside eight mute
// ones, two of its own app and six of others, that are to be called 200 times a
// second each, with a timeout of 15 s (2 s in the short
// form): every call of the healthy one is made, and
// p99 of its lateness is at most four times what it is alone, or 20 ms.
func TestMuteNeighbours(t *testing.T) {
	alone, beside := byForm(t, 3*time.Second, 20*time.Second), byForm(t, 12*time.Second, 80*time.Second)
	timeout := byForm(t, 2*time.Second, 15*time.Second)
	p, own := startProcess(t), startPulse()
	good := traffic{app: "own", target: listen(t, 0), rate: 100}
	good.create(t, p, 500*time.Millisecond)
	p.sit(2 * time.Second)
	p99 := p.p99(good.target, alone)

	for i := range 8 {
		mute := traffic{app: "own", target: listenMute(t), rate: 200, timeout: timeout}
		if i >= 2 {
			mute.app = fmt.Sprintf("other-%d", i)
		}
		mute.create(t, p, 0)
	}
	from := time.Now()
	good.target.Reset()
	p.sit(beside)
	owed := good.owed(from, time.Now())
	missing := p.awaitCalls(good.target, owed, time.Second)
	good.target.Look(func(l *target.Log) {
		t.Logf("of %d tasks %d were not called, %d calls were early; alone p99 %v", len(owed), missing, l.Early, round(p99))
		if missing > 0 || l.Early > 0 {
			t.Error("the healthy target was not called for every due")
		}
		onTime(t, "the healthy target", l.Late(.99), max(4*p99, 20*time.Millisecond), own.end())
	})
}
