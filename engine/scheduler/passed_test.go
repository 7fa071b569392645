package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// Here the journal has results of dues that the watermark has passed, and no row of them is left.

// The cold tier loses a redrive and its result: the result is in the journal.
func TestLostRedrive(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.journal.settled = &engine.Watermarks{}
		w.start()
		w.replies("x", reject, ok)
		k := engine.Key{Due: w.now() + 1000}
		k.Timer = w.make(timer("x", delay(time.Second)))
		w.make(timer("tick", every(time.Second)))
		time.Sleep(20 * time.Second)
		restore := w.cold.Snapshot()
		time.Sleep(time.Second)
		if err := w.Redrive(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		w.kill()
		restore()
		time.Sleep(time.Second)
		w.start()
		w.settle()
		if r := w.record(k); r.Status != engine.Succeeded || len(r.Attempts) != 2 {
			t.Errorf("%v after %d attempts", r.Status, len(r.Attempts))
		}
	})
}

// Without --cluster another server takes over while MySQL is away for the first, which goes on calling, and the first
// comes back. What it called is told where the second has a record of the due alone. Of dues in a run the run stays.
func TestFirstServerComesBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		due := w.now() + 5000
		shot := w.make(timer("shot", at(due), misfire(engine.MisfireSkip, time.Second)))
		often := w.make(timer("often", every(5*time.Second), misfire(engine.MisfireSkip, time.Hour)))
		away := w.outage("Settle")
		time.Sleep(4 * time.Second)
		away.Store(true)
		time.Sleep(16*time.Second + 100*time.Millisecond)
		w.kill()
		away.Store(false)
		first := w.journal
		w.journal = &disk{}
		time.Sleep(30 * time.Second)
		w.start()
		w.settle()
		want := map[engine.TimerID]string{shot: "0s missed misfire_window", often: "0s…35s ×8 skipped misfire"}
		for id, v := range want {
			if got := w.verdicts(id, due); len(got) == 0 || got[0] != v {
				t.Errorf("at the second server %v, want %s", got, v)
			}
		}
		w.kill()
		w.journal = first
		w.start()
		w.settle()
		want[shot] = "0s succeeded"
		for id, v := range want {
			if got := w.verdicts(id, due); len(got) == 0 || got[0] != v {
				t.Errorf("at the first server again %v, want %s", got, v)
			}
		}
	})
}

// A call that runs holds all later records in the journal: at the next start, the results of 1,000 timers are behind the
// watermark. History has them. It is asked for many at once, and for runs of dues not at all.
func TestResultsThatHistoryHas(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		for i := range 1000 {
			w.make(timer(fmt.Sprint("x-", i), every(time.Second)))
		}
		w.replies("slow", slow(20*time.Second))
		w.make(timer("slow", delay(3*time.Second), timeout(time.Minute)))
		time.Sleep(6*time.Second + 400*time.Millisecond)
		w.kill()
		w.listed.Store(0)
		w.start()
		if n := w.listed.Load(); n > 10 {
			t.Errorf("%d pages of history were read", n)
		}
		w.settle()
	})
}

// The row of a range cannot be read at a start: the results of its dues are stored all the same, and no call comes
// again when the row can be read.
func TestResultsOfADamagedRange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 20
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 8, 4, 8
		away := w.outage("Settle")
		w.start()
		w.replies("crowded", slow(300*time.Millisecond))
		id := w.make(timer("crowded", every(20*time.Millisecond), elsewhere("crowded", "http://127.0.0.1:9/"), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(40 * time.Second)
		away.Store(true)
		time.Sleep(3 * time.Second)
		w.kill()
		away.Store(false)
		ranges := 0
		for _, o := range w.rowsOf(id) {
			if o.To != 0 {
				w.damaged.Store(o.Key, true)
				ranges++
			}
		}
		w.start()
		time.Sleep(2 * time.Second)
		ended := map[engine.Key]bool{}
		for _, c := range w.of("crowded") {
			if c.ended == 0 || c.at >= w.starts[1] {
				continue
			}
			ended[c.key] = true
			if _, err := w.cold.Task(t.Context(), c.key); err != nil {
				t.Errorf("%s was called, and has no record: %v", c.key, err)
			}
		}
		if ranges == 0 || len(ended) == 0 {
			t.Fatalf("%d ranges, %d calls", ranges, len(ended))
		}
		w.damaged.Clear()
		w.crash(time.Second)
		w.replies("crowded", ok)
		time.Sleep(30 * time.Second)
		for _, c := range w.of("crowded") {
			if ended[c.key] && c.at >= w.starts[2] {
				t.Errorf("%s was called again", c.key)
			}
		}
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
	})
}
