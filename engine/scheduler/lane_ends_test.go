package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// Many timers of one lane fell behind while the process was down, and a dozen dues of the lane
// come while the cold tier answers once. Their dues come through the wheel again, on time.
func TestLaneIsOnTimeAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.before.set(func(op string, _ any) error {
			if op == "OwedIn" || op == "Settle" || op == "Load" {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		w.start()
		for i := range 100 {
			s := every(200 * time.Millisecond)
			s.StartAt = w.now() + 1000 + int64(2*i)
			w.make(timer(fmt.Sprint("t-", i), s, misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(5 * time.Second)
		w.crash(2 * time.Second)
		time.Sleep(5 * time.Second)
		from := w.now()
		time.Sleep(5 * time.Second)
		late, calls := int64(0), 0
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.calls {
			if c.at >= from {
				late, calls = max(late, c.at-c.key.Due), calls+1
			}
		}
		if calls < 2000 || late > 5 {
			t.Errorf("%d calls in 5 s, the latest %d ms late", calls, late)
		}
	})
}
