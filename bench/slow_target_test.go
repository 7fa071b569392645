package bench

import (
	"fmt"
	"testing"
	"time"

	"xtimer/bench/target"
)

// TestSlowTargets calls healthy targets that take their time as often as they are due,
// with the settings as they are by default: p99 of lateness is at most 20 ms once the
// limit of calls in flight has followed.
func TestSlowTargets(t *testing.T) {
	const bar = 20 * time.Millisecond
	length := byForm(t, 4*time.Second, time.Minute)
	for _, c := range []struct {
		rate int
		slow time.Duration
	}{
		{5000, 100 * time.Millisecond},
		{2000, time.Second},
	} {
		t.Run(fmt.Sprintf("%d a second that take %v", c.rate, c.slow), func(t *testing.T) {
			p, own := startProcess(t), startPulse()
			f := traffic{app: "slow", target: listen(t, c.slow), rate: c.rate, every: time.Second}
			f.create(t, p, time.Second)
			// The limit follows the target: each round of answers lifts it sixfold at most,
			// so 2,000 calls in flight take four rounds, and what waited meanwhile one more.
			p.sit(time.Until(f.from.Add(4*time.Second + 4*c.slow)))
			f.target.Reset()
			from := time.Now().Add(time.Millisecond) // what is due in this ms may have been called
			p.sit(length)
			owed := f.owed(from, time.Now().Add(-bar))
			missing := p.awaitCalls(f.target, owed, time.Second)
			f.target.Look(func(l *target.Log) {
				t.Logf("%d of %d tasks were not called in time", missing, len(owed))
				if missing > 0 {
					t.Error("want all called")
				}
				onTime(t, "the target", l.Late(.99), bar, own.end())
			})
		})
	}
}
