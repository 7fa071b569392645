package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/verify"
)

// Few results are settled twice a second; many sooner, in shorter pieces.
func TestSettlePace(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ timers, least, most int }{{1, 1, 2}, {30, 2, 4}, {100, 4, 5}} {
		t.Run(fmt.Sprint(x.timers*100, " fires a second"), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var settles atomic.Int64
				w.after.set(func(op string, _ any) {
					if op == "Settle" {
						settles.Add(1)
					}
				})
				w.start()
				for i := range x.timers {
					w.make(timer(fmt.Sprint(i), every(10*time.Millisecond)))
				}
				time.Sleep(1500 * time.Millisecond)
				before := settles.Load()
				time.Sleep(time.Second)
				if n := int(settles.Load() - before); n < x.least || n > x.most {
					t.Errorf("%d settles a second, want %d to %d", n, x.least, x.most)
				}
			})
		})
	}
}

// The watermarks of an idle process are written each 10 s, all in one settle.
func TestMarksOfAnIdleProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		time.Sleep(time.Second)
		settles := make(chan time.Time, 10)
		w.after.set(func(op string, x any) {
			if s, is := x.(*engine.Settlement); is && op == "Settle" {
				if len(s.Marks) != engine.Shards {
					t.Errorf("a settle with %d watermarks, want those of %d shards", len(s.Marks), engine.Shards)
				}
				settles <- time.Now()
			}
		})
		var last time.Time
		for range 6 {
			at := <-settles
			if since := at.Sub(last); !last.IsZero() && (since < 9900*time.Millisecond || since > 10100*time.Millisecond) {
				t.Errorf("the watermarks were written after %s, want 10 s", since)
			}
			last = at
		}
	})
}

// Looking at tasks that a settle stores does not make the next settle later, however long
// it takes; looking at tasks that only wait does.
func TestSettlePaceBySettled(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		waiting, least, most int // settles in 30 s
	}{{0, 45, 60}, {1000, 5, 20}} {
		t.Run(fmt.Sprint(x.waiting, " wait"), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var settles atomic.Int64
				w.after.set(func(op string, _ any) {
					if op == "Settle" {
						settles.Add(1)
					}
				})
				w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 16, 8, 8
				w.settlesLookFor(300 * time.Microsecond)
				w.start()
				w.make(timer("good", every(20*time.Millisecond)))
				for i := range x.waiting {
					w.make(timer(fmt.Sprint("mute", i), delay(time.Second), elsewhere("mute", "http://127.0.0.1:2/"), timeout(10*time.Minute)))
					w.replies(fmt.Sprint("mute", i), slow(9*time.Minute))
				}
				time.Sleep(30 * time.Second)
				before := settles.Load()
				time.Sleep(30 * time.Second)
				if n := int(settles.Load() - before); n < x.least || n > x.most {
					t.Errorf("%d settles, want %d to %d", n, x.least, x.most)
				}
			})
		})
	}
}

// settlesLookFor has each settle take so long to look at the tasks of each shard.
func (w *world) settlesLookFor(d time.Duration) {
	w.config.DiskCritical = func() bool { // asked by a settle before each shard
		time.Sleep(d)
		return false
	}
}

// The journal has what is not stored yet, and no more, also for as long as the clock stands
// behind where it was: it forgets by what its records are needed for.
func TestJournalForgetsWhateverTheClockDid(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{0, 8 * time.Hour, -8 * time.Hour} {
		bubble(t, func(t *testing.T, w *world) {
			w.step(step)
			w.start()
			w.make(timer("old", every(100*time.Millisecond)))
			time.Sleep(12 * time.Second)
			w.step(-step)
			w.make(timer("new", every(100*time.Millisecond)))
			w.make(timer("long", at(w.now()+1000), timeout(10*time.Minute)))
			w.replies("long", slow(2*time.Minute))
			records := func() int {
				w.journal.mu.Lock()
				defer w.journal.mu.Unlock()
				return len(w.journal.records)
			}
			for range 5 {
				time.Sleep(20 * time.Second)
				if n := records(); n > 1500 { // 20 calls a second, of two each, for settleWait; fewNoted
					t.Fatalf("the journal has %d records after a step of %v", n, -step)
				}
			}
			time.Sleep(time.Minute)
			for _, name := range []string{"old", "new"} {
				v, err := w.TimerByName(t.Context(), "app", name)
				if err != nil {
					t.Fatal(err)
				}
				w.disable(v.ID, 0)
			}
			w.settle()
			if n := records(); n > 1500 {
				t.Errorf("the journal has %d records of nothing", n)
			}
		})
	}
}

// What a disk that is all but full kept out of history is unproven, in this life
// and in the next, and only that.
func TestLeftOutOfHistory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var critical atomic.Bool
		w.config.DiskCritical = critical.Load
		w.start()
		w.make(timer("ok", every(time.Second)))
		failing := w.make(timer("failing", every(time.Second)))
		w.replies("failing", reject)
		begun := w.now()
		time.Sleep(5 * time.Minute)
		critical.Store(true)
		from := w.now()
		time.Sleep(3 * time.Minute)
		critical.Store(false)
		to := w.now()
		time.Sleep(5 * time.Minute)
		verify := func(what string, from, to int64) (unproven int64) {
			t.Helper()
			v, err := w.Verify(t.Context(), verify.Request{From: from, To: to}, func(f *verify.Finding) error {
				if f.Kind != verify.Unproven || f.Timer == failing {
					t.Errorf("%s: %s of %s, %s to %s", what, f.Kind, f.Name, stamp(f.Due), stamp(f.DueLast))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return v.Found[verify.Unproven]
		}
		for _, what := range []string{"in this life", "in the next"} {
			if n := verify(what, begun, w.now()); n < 170 || n > 185 {
				t.Errorf("%s: %d are unproven of 180 s", what, n)
			}
			// The settles of a few seconds fall on either side.
			if n := verify(what, begun, from-10_000) + verify(what, to+10_000, w.now()); n != 0 {
				t.Errorf("%s: %d are unproven beside the time in which they were left out", what, n)
			}
			w.crash(time.Second)
		}
	})
}

// A call that is under way when its schedule becomes a one-shot's is not that one-shot's
// due: its record needs its place in the index by timer.
func TestRecordOfAFormerSchedule(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		alone := make(chan int64, 100)
		w.before.set(func(_ string, arg any) error {
			if s, ok := arg.(*engine.Settlement); ok {
				for _, r := range s.Tasks {
					if r.Alone {
						alone <- r.Key.Due
					}
				}
			}
			return nil
		})
		w.start()
		w.replies("a", slow(3*time.Second), ok)
		id := w.make(timer("a", every(time.Minute)))
		time.Sleep(61 * time.Second)
		due := w.now() + 30_000
		if err := w.reschedule(id, engine.Schedule{At: due}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.settle()
		if got := <-alone; got != due || len(alone) > 0 {
			t.Errorf("the due %s is alone, and %d others; want %s", stamp(got), len(alone), stamp(due))
		}
	})
}

// A success that is left out of history counts once, however often its settle fails.
func TestLeftOutCountsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage("Settle")
		w.config.DiskCritical = func() bool { return true }
		w.start()
		w.make(timer("a", delay(2*time.Second)))
		time.Sleep(time.Second)
		away.Store(true)
		time.Sleep(20 * time.Second)
		away.Store(false)
		w.settle()
		if n := w.metric("xtimer_history_left_out_total"); n != 1 {
			t.Errorf("%v successes were left out, want 1", n)
		}
	})
}

// What is called of a range is over, also while a disk that is all but full keeps successes
// out of history: a delete does not cancel it, and a start does not call it again.
func TestRangeThatLeavesNoRecords(t *testing.T) {
	for _, what := range []string{"delete", "crash"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var critical atomic.Bool
				w.config.DiskCritical = critical.Load
				w.start()
				w.make(timer("old", every(10*time.Second)))
				time.Sleep(time.Minute)
				w.settle()
				w.step(-10 * time.Minute)
				id := w.make(timer("a", every(time.Second), misfire(engine.MisfireAll, time.Hour)))
				critical.Store(true)
				time.Sleep(30*time.Second + 500*time.Millisecond)
				w.settle()
				critical.Store(false)
				if what == "crash" {
					w.crash(time.Second)
				} else if _, err := w.Delete(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second)
				w.settle()
				w.once("a")
				called := map[int64]bool{}
				for _, c := range w.of("a") {
					called[c.key.Due] = true
				}
				for _, r := range w.records(id) {
					for d := r.Key.Due; d <= max(r.DueLast, r.Key.Due); d += 1000 {
						if r.Status != engine.Succeeded && called[d] {
							t.Errorf("due %s was called, and is %s", stamp(d), r.Status)
						}
					}
				}
			})
		})
	}
}
