package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/verify"
)

// What a verification finds is counted, for alerts; what was asked for with a bound of
// lateness is not.
func TestFindingsAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		begun := w.now()
		id := w.make(timer("ok", every(time.Second)))
		time.Sleep(time.Minute)
		w.settle()
		counted := func(late time.Duration) uint64 {
			t.Helper()
			_, err := w.Verify(t.Context(), verify.Request{From: begun, To: w.now(), Late: late}, func(*verify.Finding) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			return w.set.GetOrCreateCounter("xtimer_verify_findings_total").Get()
		}
		if n := counted(time.Nanosecond); n != 0 {
			t.Errorf("%d findings in a sound history", n)
		}
		good := w.records(id)[5]
		early := *good
		early.Attempts = append([]engine.Attempt(nil), good.Attempts...)
		early.Attempts[0].Started -= 5_000_000
		put := func(r *engine.Task) {
			t.Helper()
			err := w.cold.Settle(t.Context(), &engine.Settlement{Tasks: []engine.Record{{Key: r.Key, Status: r.Status, Encoded: engine.EncodeTask(r)}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		put(&early)
		if n := counted(0); n != 1 {
			t.Errorf("%d findings, want 1", n)
		}
		put(good)
	})
}
