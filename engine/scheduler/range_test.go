package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// behind is a world whose clock was set back by an hour, behind the watermark: dues
// of what is made in it are owed as ranges.
func behind(t *testing.T, f func(t *testing.T, w *world)) {
	begin(t, func(t *testing.T, w *world) {
		w.make(timer("old", every(10*time.Second)))
		time.Sleep(40 * time.Second)
		w.settle()
		w.step(-time.Hour)
		f(t, w)
	})
}

// A run by hand in the ms before a range begins has a key of its own: the row of the
// range stands, and is not paid when the run has ended.
func TestRunNowBesideARange(t *testing.T) {
	for _, before := range []int64{1, 2} {
		t.Run(fmt.Sprint(before), func(t *testing.T) {
			behind(t, func(t *testing.T, w *world) {
				made := w.now()
				id := w.make(timer("a", every(10*time.Second)))
				time.Sleep(time.Duration(10_000-before) * time.Millisecond)
				k, err := w.RunNow(t.Context(), id, 0)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(25 * time.Second)
				w.settle()
				w.crash(time.Second)
				time.Sleep(2 * time.Minute)
				w.settle()
				var want []int64
				for due := made + 10_000; due <= w.now(); due += 10_000 {
					want = append(want, due)
				}
				var got []int64
				for _, due := range dues(w.of("a")) {
					if due != k.Due {
						got = append(got, due)
					}
				}
				equal(t, "dues", got, want)
			})
		})
	}
}

// A change after the clock was set back, while a call is open whose due is the ms
// before the first due of the new schedule: the end of the call does not pay the range.
func TestChangeBesideAnOpenCall(t *testing.T) {
	for _, later := range []int64{1, 2} {
		t.Run(fmt.Sprint(later), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.make(timer("old", every(time.Second)))
				from := w.now()
				w.behave("a", func(c *call) reply {
					if c.key.Due == from+30_000 {
						return slow(40 * time.Second)
					}
					return ok
				})
				id := w.make(timer("a", every(30*time.Second), timeout(2*time.Minute)))
				time.Sleep(58 * time.Second)
				w.step(-4 * time.Minute)
				s := every(time.Second)
				s.StartAt = from + 30_000 + later
				if err := w.reschedule(id, s); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Second)
				w.settle()
				w.crash(time.Second)
				time.Sleep(5 * time.Minute)
				w.settle()
				n := 0
				for _, due := range dues(w.of("a")) {
					if from+30_000 < due && due < from+41_000 {
						n++
					}
				}
				if n < 10 {
					t.Errorf("%d of the first ten dues were called", n)
				}
			})
		})
	}
}

// A range in which the last due of its timer lies is paid with that.
func TestRangeOfATimerThatEnds(t *testing.T) {
	behind(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", engine.Schedule{Every: 10 * time.Second, MaxRuns: 3}))
		time.Sleep(2 * time.Minute)
		w.settle()
		v, err := w.Timer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := w.cold.OwedPage(t.Context(), id, -1, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(w.of("a")); v.Status != engine.Finished || len(rows) > 0 || n != 3 {
			t.Errorf("%s after %d calls, owed are %v", v.Status, n, rows)
		}
	})
}

// A delete by a clock that was set back by hours records what was not called in runs,
// without going through each due: 86,400,000 of them took 3.2 s, with the shard locked.
// Dues that come while the delete is being stored are in the run, and only there.
func TestDeleteAfterALongStepBack(t *testing.T) {
	t.Parallel()
	const hours = 6
	for _, takes := range []time.Duration{0, 100 * time.Millisecond} {
		t.Run(takes.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.before.set(func(op string, arg any) error {
					if c, _ := arg.(*engine.Change); op == "Apply" && c.Timer == nil {
						time.Sleep(takes)
					}
					return nil
				})
				w.start()
				w.make(timer("old", every(10*time.Second)))
				time.Sleep(40 * time.Second)
				w.settle()
				w.step(-hours * time.Hour)
				made := w.now()
				id := w.make(timer("a", every(10*time.Millisecond)))
				time.Sleep(time.Second)
				if _, err := w.Delete(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
				w.settle()
				count, last := int64(0), int64(0)
				for _, r := range w.records(id) {
					count, last = count+max(r.Count, 1), max(last, r.Key.Due, r.DueLast)
				}
				if count != (last-made)/10 || last < made+hours*3_600_000-10_000 {
					t.Errorf("%d dues have a record, up to %s", count, stamp(last))
				}
				w.step(hours * time.Hour) // for the ledger
				time.Sleep(time.Second)
			})
		})
	}
}

// Dues of a range that come while a change is being stored are called if the change fails.
func TestRangeAfterAFailedChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.before.set(func(op string, arg any) error {
			if c, _ := arg.(*engine.Change); op == "Apply" && c.Timer == nil {
				time.Sleep(100 * time.Millisecond)
				return &engine.Fault{Kind: engine.FaultConflict, Code: "changed_meanwhile"}
			}
			return nil
		})
		w.start()
		w.make(timer("old", every(10*time.Second)))
		time.Sleep(40 * time.Second)
		w.settle()
		w.step(-time.Hour)
		made := w.now()
		id := w.make(timer("a", every(10*time.Millisecond)))
		time.Sleep(time.Second)
		if _, err := w.Delete(t.Context(), id, 0); err == nil {
			t.Fatal("the delete was made")
		}
		time.Sleep(time.Second - 5*time.Millisecond)
		called := dues(w.of("a"))
		slices.Sort(called)
		for i, due := range called {
			if want := made + int64(i+1)*10; due != want {
				t.Fatalf("call %d is of due %s, want %s", i, stamp(due), stamp(want))
			}
		}
		if len(called) != 209 {
			t.Errorf("%d calls, want 209", len(called))
		}
		w.step(time.Hour) // for the ledger
		time.Sleep(time.Second)
	})
}

// The last due of a range comes while its timer is being changed: the range is not paid
// before that due has a row of its own, whatever ends the process.
func TestRangeEndsWhileItsTimerIsChanged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var slow atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Apply" && slow.Load() {
				time.Sleep(20 * time.Second)
				return errors.New("the cold tier is away")
			}
			return nil
		})
		w.start()
		w.make(timer("old", every(10*time.Second)))
		time.Sleep(40 * time.Second)
		w.settle()
		w.step(-time.Hour)
		made := w.now()
		id := w.make(timer("a", engine.Schedule{Every: 10 * time.Second, MaxRuns: 3}))
		time.Sleep(29 * time.Second)
		slow.Store(true)
		disable := w.Disable // of this life
		w.all.Go(func() { _, _ = disable(t.Context(), id, 0, "", 0) })
		time.Sleep(8 * time.Second) // the third due has come, and settles as well
		slow.Store(false)
		w.crash(time.Second)
		w.settle()
		equal(t, "dues", dues(w.of("a")), []int64{made + 10_000, made + 20_000, made + 30_000})
	})
}

// A settle that read the clock before it was set back does not move the watermark
// over the dues of a change that is made after.
func TestChangeBesideASettle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var armed atomic.Bool
		between := func() {}
		w.config.DiskCritical = func() bool { // asked by a settle before each shard
			if armed.CompareAndSwap(true, false) {
				between()
			}
			return false
		}
		w.start()
		id := w.make(timer("a", every(30*time.Second)))
		for { // another of its shard, so that each settle moves the watermark
			other := w.make(timer("other", every(100*time.Millisecond)))
			if other.Shard() == id.Shard() {
				break
			}
			if _, err := w.Delete(t.Context(), other, 0); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(58 * time.Second)
		from := w.now() + 10
		s := every(100 * time.Millisecond)
		s.StartAt = from
		between = func() {
			w.step(-4 * time.Minute)
			if err := w.reschedule(id, s); err != nil {
				t.Error(err)
			}
		}
		armed.Store(true)
		time.Sleep(20 * time.Second)
		w.settle()
		w.crash(time.Second)
		time.Sleep(5 * time.Minute)
		w.settle()
		equal(t, "dues", dues(w.of("a")), append([]int64{from - 28_010}, grid(from-1, w.now(), 100, from%100)...))
	})
}

// Of ranges that unfold together, the cold tier is asked at once which dues are taken.
func TestRangesAreLookedAtTogether(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		const timers, down = 40, 20
		for i := range timers {
			w.make(timer(fmt.Sprint(i), every(time.Second), misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(5 * time.Second)
		var looks, reads atomic.Int64
		w.before.set(func(op string, _ any) error {
			switch op {
			case "Taken":
				looks.Add(1)
			case "OwedPage", "Tasks":
				reads.Add(1)
			}
			return nil
		})
		w.crash(down * time.Second)
		time.Sleep(5 * time.Second)
		for i := range timers {
			if n := len(w.of(fmt.Sprint(i))); n < down+8 {
				t.Errorf("timer %d has %d calls", i, n)
			}
		}
		if l, n := looks.Load(), reads.Load(); l == 0 || l > 4 || n > 8 {
			t.Errorf("%d looks and %d reads for the ranges of %d timers", l, n, timers)
		}
	})
}

// What a step of the clock made late is decided while ranges of the timer are about to unfold: what is skipped is not called.
func TestDecisionWhileRangesAreLookedAt(t *testing.T) {
	for _, p := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireLatest} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 20
				w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}}})
				w.start()
				from := w.now()
				id := w.make(timer("behind", every(time.Second), flows("k"), misfire(p, 24*time.Hour)))
				time.Sleep(32*time.Second + 500*time.Millisecond)
				var armed, looked, decides, decided atomic.Bool
				isDecision := func(arg any) bool {
					s, ok := arg.(*engine.Settlement)
					return ok && armed.Load() && slices.ContainsFunc(s.Tasks, func(r engine.Record) bool {
						return r.Status == engine.Skipped || r.Status == engine.Missed
					})
				}
				wait := func(is *atomic.Bool) {
					for i := 0; !is.Load() && i < 300; i++ {
						time.Sleep(10 * time.Millisecond)
					}
				}
				w.before.set(func(op string, arg any) error {
					if op == "Settle" && isDecision(arg) {
						decides.Store(true)
						wait(&looked)
					}
					return nil
				})
				w.after.set(func(op string, arg any) {
					switch {
					case op == "Settle" && isDecision(arg):
						decided.Store(true)
					case op == "Taken" && decides.Load():
						looked.Store(true)
						wait(&decided)
						time.Sleep(50 * time.Millisecond)
					}
				})
				was := w.now()
				armed.Store(true)
				w.step(10 * time.Minute)
				wait(&decides)
				w.SetRule(keyK, nil)
				time.Sleep(15 * time.Minute)
				most := 0
				if p == engine.MisfireLatest {
					most = 1
				}
				if n := w.between("behind", was+1, was+590_000); n > most {
					t.Errorf("%d dues are called that are recorded as skipped", n)
				}
				w.stopAccounted(id, from, 1000)
			})
		})
	}
}

// A timer is behind, and a step of the clock has records made of later dues of its range. When the range unfolds, its
// earlier dues are stale: the records that are made of these have none of the recorded dues.
func TestStaleDuesBeforeSkippedOnes(t *testing.T) {
	for _, wait := range []time.Duration{0, 200 * time.Second} {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 20
				w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}}})
				w.start()
				from := w.now()
				id := w.make(timer("behind", every(time.Second), flows("k"), misfire(engine.MisfireSkip, 24*time.Hour), staleAfter(time.Minute)))
				time.Sleep(100*time.Second + 500*time.Millisecond)
				w.step(10 * time.Minute)
				time.Sleep(wait)
				w.SetRule(keyK, nil)
				time.Sleep(15 * time.Minute)
				w.stopAccounted(id, from, 1000)
			})
		})
	}
}
