package flow

import (
	"fmt"
	"testing"
	"time"
)

// What was kept counts after a restore for as long as before. If the clock of the owners was set back
// meanwhile, calls that were kept are of the future: they count as calls that were granted as late as
// calls are, Lookahead from now, and not until the clock has caught up.
func TestRestoredCallsCount(t *testing.T) {
	const per, taken = time.Hour, 10 * time.Hour
	for _, back := range []time.Duration{0, time.Second, 5 * time.Hour} {
		for _, burst := range []int{1, 4, 8} {
			t.Run(fmt.Sprintf("burst %d, back by %v", burst, back), func(t *testing.T) {
				l := &Limit{Rate: 8, Per: per, Burst: burst}
				var former, next Slots
				former.Set(l, 0)
				for now := taken; ; now = former.Next(now) {
					if now = former.Next(now); now > taken+Lookahead {
						break
					}
					former.Take(now)
				}
				const ms = int64(1_000_000_000)
				k := former.Keep(taken, ms)
				next.Set(l, 0)
				next.Restore(k, taken, ms-back.Milliseconds())
				at, want := next.Next(taken), former.Next(taken)+min(back, Lookahead)
				exact := time.Millisecond
				if burst == l.Rate { // the window says when, by slots
					exact = next.bucket.window.slot
				}
				if d := at - want; d < -exact || d > exact {
					t.Errorf("the next call is granted after %v, want %v", at-taken, want-taken)
				}
				if full := taken + Lookahead + per + Validity(l) + per/8; !next.IsFull(full + per/windowSlots) {
					t.Errorf("calls count %v after they were kept", full-taken)
				}
			})
		}
	}
}
