package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// A timer that is being changed when its minute is loaded is admitted when that change is
// over, whatever change of another timer is in doubt.
func TestChangeInDoubtLeavesOtherChangesAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		readOnly := w.outage("Apply", "ApplyAll", "Settle", "Raise", "Sweep")
		var slowed atomic.Uint64
		refuse := w.before.get()
		w.before.set(func(op string, arg any) error {
			if id, is := arg.(engine.TimerID); is && op == "Timer" && uint64(id) == slowed.Load() {
				slowed.Store(0)
				time.Sleep(40 * time.Second)
			}
			return refuse(op, arg)
		})
		w.start()
		from := w.now()
		var ids []engine.TimerID
		for i := range 3 { // whose dues are not in memory before their minute is loaded
			ids = append(ids, w.make(timer(fmt.Sprint(i), engine.Schedule{Every: time.Second, StartAt: from + 10*60_000})))
		}
		time.Sleep(7*time.Minute + 50*time.Second) // 10 s before
		readOnly.Store(true)
		for _, i := range []int{0, 2} {
			if _, err := w.Disable(t.Context(), ids[i], 0, "", 0); err == nil {
				t.Fatal("a disable that could not be stored was acknowledged")
			}
		}
		time.Sleep(10 * time.Second)
		slowed.Store(uint64(ids[1]))
		go func() {
			_, _ = w.Enable(context.Background(), ids[1], 0, engine.CatchUpNone) // nothing to do
		}()
		time.Sleep(6*time.Minute + 500*time.Millisecond) // between two dues
		got := dues(w.of("1"))
		if diff := difference(got, grid(from+10*60_000-1, w.now(), 1000, from%1000)); diff != "" {
			t.Errorf("dues: %s", diff)
		}
		readOnly.Store(false)
		time.Sleep(time.Minute)
	})
}

// While rows of a former generation cannot be cancelled, since the cold tier can be read but
// not written, their timer is called on, and a change of it does not wait for long.
func TestFormerRowsWhileTheColdTierIsReadOnly(t *testing.T) {
	defer scheduler.BoundEnded(5)()
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage("Settle", "Apply", "ApplyAll")
		var armed atomic.Bool
		w.after.set(func(op string, _ any) {
			if op == "Apply" && armed.CompareAndSwap(true, false) {
				away.Store(true)
			}
		})
		w.start()
		w.replies("a", fail)
		made := w.now()
		id := w.make(timer("a", every(time.Second), retry(3, time.Hour, 1)))
		time.Sleep(2 * time.Minute)
		w.settle()
		armed.Store(true)
		if err := w.reschedule(id, every(3*time.Minute)); err != nil {
			t.Fatal(err)
		}
		from := w.now()
		w.replies("a", ok)
		time.Sleep(13 * time.Minute)
		to := w.now()
		var got []int64
		for _, c := range w.of("a") {
			if c.key.Due > from {
				got = append(got, c.key.Due)
			}
		}
		if diff := difference(got, grid(from, to, 180_000, made)); diff != "" {
			t.Errorf("dues: %s", diff)
		}
		begun := time.Now()
		if _, err := w.Delete(t.Context(), id, 0); err == nil {
			t.Error("deleted")
		}
		if d := time.Since(begun); d > time.Minute {
			t.Errorf("a delete waited for %v", d)
		}
		away.Store(false)
		time.Sleep(time.Minute)
		if n := len(w.rowsOf(id)); n > 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A run by hand whose commit is in doubt does not keep its timer from being called.
func TestRunInDoubtLeavesItsTimerFiring(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage("Settle", "Apply", "ApplyAll")
		w.start()
		id := w.make(timer("a", every(3*time.Minute)))
		from := w.now()
		time.Sleep(5 * time.Minute)
		away.Store(true)
		if _, err := w.RunNow(t.Context(), id, 0); err == nil {
			t.Fatal("run")
		}
		time.Sleep(13 * time.Minute)
		if diff := difference(dues(w.of("a")), grid(from, w.now(), 180_000, from)); diff != "" {
			t.Errorf("dues: %s", diff)
		}
		away.Store(false)
		time.Sleep(time.Minute)
	})
}

// A decision is stored, its answer is lost, and refill reads its rows before the decision is
// stored again: what was recorded of them meanwhile stays, and no due has two first attempts.
func TestRowsOfADecisionInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var id atomic.Uint64
		var made, refuses atomic.Bool
		var until atomic.Int64
		w.before.set(func(op string, arg any) error {
			s, _ := arg.(*engine.Settlement)
			of := func(k engine.Key) bool { return k.Timer == engine.TimerID(id.Load()) }
			decides := s != nil && len(s.Marks) == 0 && len(s.Pay) == 0 &&
				(slices.ContainsFunc(s.Owe, func(o engine.Owed) bool { return of(o.Key) && o.Task == nil }) ||
					slices.ContainsFunc(s.Tasks, func(r engine.Record) bool { return of(r.Key) && r.Status == engine.Skipped }))
			switch {
			case op != "Settle" || !decides:
			case made.CompareAndSwap(false, true):
				until.Store(time.Now().UnixMilli() + 20_000)
				refuses.Store(true)
				return errors.Join(w.cold.Settle(context.Background(), s), engine.ErrUnavailable)
			case refuses.Load() && time.Now().UnixMilli() < until.Load():
				return engine.ErrUnavailable
			}
			return nil
		})
		w.config.MaxWaiting = 100
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
		w.start()
		w.replies("b", slow(50*time.Millisecond))
		w.replies("a", fail)
		w.make(timer("b", every(10*time.Millisecond)))
		time.Sleep(10 * time.Second)
		from := w.now()
		a := w.make(timer("a", engine.Schedule{Every: time.Second, StartAt: from + 30_000}, misfire(engine.MisfireSkip, time.Hour), retry(3, time.Hour, 1)))
		id.Store(uint64(a))
		time.Sleep(20 * time.Second)
		w.step(2 * time.Minute)
		time.Sleep(time.Minute)
		if !made.Load() {
			t.Fatal("nothing was decided")
		}
		first := map[int64]int{}
		for _, c := range w.of("a") {
			if c.attempt == 1 {
				first[c.key.Due]++
			}
		}
		for due, n := range first {
			if n > 1 {
				t.Errorf("due %s had a first attempt %d times", stamp(due), n)
			}
		}
	})
}

// What a change has cancelled whose commit was in doubt for minutes ends when that is
// resolved: a reader that comes back asks history for what has ended since.
func TestCancelledByAChangeInDoubt(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		t.Run(fmt.Sprint("delete ", deletes), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				w.replies("a", fail)
				due := w.now() + 1000
				id := w.make(timer("a", at(due), retry(2, time.Hour, 1)))
				time.Sleep(20 * time.Second)
				w.before.set(func(op string, _ any) error {
					if op == "Apply" { // it is made, and nothing is answered from then on
						w.mute.Store(true)
					}
					return nil
				})
				var err error
				if deletes {
					_, err = w.Delete(t.Context(), id, 0)
				} else {
					_, err = w.Disable(t.Context(), id, 0, "", 0)
				}
				if err == nil {
					t.Fatal("a change without an answer was acknowledged")
				}
				time.Sleep(5 * time.Minute)
				resolved := w.now()
				w.mute.Store(false)
				w.settle()
				r := w.record(engine.Key{Timer: id, Due: due})
				if r.Status != engine.Cancelled || r.Ended < resolved {
					t.Errorf("the task is %s and ended %d ms before it was told", r.Status, resolved-r.Ended)
				}
				if rs := w.records(id); len(rs) != 1 {
					t.Errorf("the timer has %d records", len(rs))
				}
			})
		})
	}
}

// A cancel does not take along what waits in memory, however much that is: when the cold tier
// is back after minutes without a settle, thousands of tasks of a timer have no row, and the
// settles that go first give them theirs. The commit has what came due since, also when it is
// in doubt and stored once more.
func TestCancelAfterAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 16, 16, 16
		w.start()
		w.behave("a", func(*call) reply { return slow(10 * time.Minute) })
		id := w.make(timer("a", every(20*time.Millisecond), timeout(10*time.Minute)))
		time.Sleep(10 * time.Second)
		var away atomic.Bool
		var cancelled, again atomic.Int64
		w.before.set(func(_ string, arg any) error {
			switch x := arg.(type) {
			case *engine.Change:
				cancelled.Store(int64(len(x.Tasks) + len(x.Pay)))
				w.mute.Store(true)
			case *engine.Settlement:
				if away.Load() {
					return fmt.Errorf("the cold tier is away: %w", engine.ErrUnavailable)
				}
				if len(x.Tasks) > 0 && x.Tasks[0].Alone { // of the change, once more
					again.Store(max(again.Load(), int64(len(x.Tasks))))
				}
			}
			return nil
		})
		away.Store(true)
		time.Sleep(time.Minute)
		if n := w.Resident(); n < 2500 {
			t.Errorf("only %d tasks wait", n)
		}
		time.AfterFunc(3*time.Second, func() { away.Store(false) })
		if _, err := w.Delete(t.Context(), id, 0); err == nil {
			t.Error("a change without an answer was acknowledged")
		}
		time.Sleep(30 * time.Second)
		w.mute.Store(false)
		time.Sleep(30 * time.Second)
		if c, n := cancelled.Load(), again.Load(); c == 0 || c > 1500 || n > c {
			t.Errorf("the commit had %d rows and records, and stored once more %d", c, n)
		}
		if n := len(w.rowsOf(id)); n > 16 {
			t.Errorf("%d rows are left, with 16 calls in flight", n)
		}
	})
}
