package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
)

// A stored timer that cannot be planned keeps nobody else from firing, and can be
// deleted.
func TestTimerThatCannotBePlanned(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		bad := &engine.Timer{Definition: timer("bad", cron("* * * * * *")), ID: 7, Version: 1, Generation: 1, ValidFrom: w.now()}
		bad.Schedule.TimeZone = "Mars/Olympus"
		if _, err := w.cold.Apply(t.Context(), &engine.Change{Timer: bad, ID: 7}); err != nil {
			t.Fatal(err)
		}
		w.start()
		from := w.now()
		id := w.make(timer("good", every(5*time.Second)))
		time.Sleep(10 * time.Minute)
		w.crash(500 * time.Millisecond)
		time.Sleep(time.Minute)
		if _, err := w.Delete(t.Context(), 7, 0); err != nil {
			t.Errorf("it cannot be deleted: %v", err)
		}
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.accounted(id, from, to, 5000)
		if n := w.metric("xtimer_audit_violations_total"); n == 0 {
			t.Error("nobody was told")
		}
	})
}
