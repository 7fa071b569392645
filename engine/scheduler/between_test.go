package scheduler_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
)

// What happens between two steps of something else: each of these lost a due, or
// called one again.

// A change that has read the clock before it was set forward knows nothing of what
// was decided by the new one: it is made again.
func TestStepForwardWhileAChangeReads(t *testing.T) {
	for _, x := range []struct {
		oneShot bool
		policy  engine.MisfirePolicy
	}{{true, engine.MisfireLatest}, {false, engine.MisfireLatest}, {false, engine.MisfireSkip}} {
		bubble(t, func(t *testing.T, w *world) {
			var slow atomic.Bool
			w.before.set(func(op string, _ any) error {
				if op == "Timer" && slow.CompareAndSwap(true, false) {
					time.Sleep(time.Second)
				}
				return nil
			})
			w.start()
			from := w.now()
			d, s := timer("a", every(10*time.Second), misfire(x.policy, time.Hour)), every(5*time.Second)
			if x.oneShot {
				d.Schedule, s = at(from+25_000), at(from+45_000)
			}
			id := w.make(d)
			time.Sleep(5 * time.Second)
			slow.Store(true)
			go func() {
				time.Sleep(100 * time.Millisecond)
				w.step(time.Minute)
			}()
			err := w.reschedule(id, s)
			time.Sleep(time.Minute)
			w.settle()
			called := slices.Contains(dues(w.of("a")), from+45_000)
			if x.oneShot && err == nil && !called {
				t.Error("the instant that the change gave was not called")
			}
		})
	}
}

// A crash while the change of a timer is being committed, one of whose calls runs: the
// watermark has not passed the due of that call.
func TestCrashWhileAChangeIsCommitted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var late atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Apply" && late.Load() {
				time.Sleep(time.Minute)
			}
			return nil
		})
		w.start()
		first := w.now() + 30_000
		w.behave("a", func(c *call) reply {
			if c.key.Due == first && c.attempt == 1 && !c.redelivered {
				return slow(8 * time.Minute)
			}
			return ok
		})
		id := w.make(timer("a", every(30*time.Second), timeout(10*time.Minute)))
		time.Sleep(30*time.Second + 10*time.Millisecond)
		late.Store(true)
		w.all.Go(func() { _, _ = w.Disable(t.Context(), id, 0, "", 0) })
		time.Sleep(40 * time.Second)
		late.Store(false)
		w.crash(time.Second)
		time.Sleep(time.Minute)
		w.settle()
		if n := len(w.callsOf("a", first)); n != 2 {
			t.Errorf("%d calls of what was in a call, want 2", n)
		}
	})
}

// The same of a task that waits for its retry, whose row could not be stored before.
func TestCrashWhileAChangeIsCommittedAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away, slow atomic.Bool
		w.before.set(func(op string, _ any) error {
			switch {
			case op == "Settle" && away.Load():
				return engine.ErrUnavailable
			case op == "Apply" && slow.Load():
				time.Sleep(time.Minute)
			}
			return nil
		})
		w.start()
		first := w.now() + 30_000
		w.replies("a", fail, ok)
		id := w.make(timer("a", every(30*time.Minute), retry(4, time.Minute, 1), func(d *engine.Definition) {
			d.Schedule.StartAt = first
		}))
		time.Sleep(29 * time.Second)
		away.Store(true)
		time.Sleep(25 * time.Second)
		slow.Store(true)
		w.all.Go(func() { _, _ = w.Disable(t.Context(), id, 0, "", 0) })
		time.Sleep(time.Millisecond)
		away.Store(false)
		time.Sleep(12 * time.Second)
		slow.Store(false)
		w.power(time.Second)
		time.Sleep(2 * time.Minute)
		w.settle()
		if n := len(w.callsOf("a", first)); n != 2 {
			t.Errorf("%d calls, want the retry, too", n)
		}
	})
}

// A change that fails when its timer's misfires have been decided leaves the timer
// in the wheel.
func TestFailedChangeWhileMisfiresAreDecided(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var wait, refuse atomic.Bool
		under := make(chan struct{}, 1)
		w.before.set(func(op string, arg any) error {
			s, is := arg.(*engine.Settlement)
			if is && slices.ContainsFunc(s.Tasks, func(r engine.Record) bool { return r.Status == engine.Skipped }) && wait.CompareAndSwap(true, false) {
				under <- struct{}{}
				time.Sleep(300 * time.Millisecond)
			}
			if op == "Apply" && refuse.CompareAndSwap(true, false) {
				time.Sleep(50 * time.Millisecond)
				return engine.ErrConflict
			}
			return nil
		})
		w.start()
		made := w.now()
		id := w.make(timer("a", every(30*time.Second), misfire(engine.MisfireSkip, time.Hour)))
		time.Sleep(35 * time.Second)
		wait.Store(true)
		w.step(42 * time.Second) // the last due is 17 s old
		<-under
		time.Sleep(time.Millisecond)
		refuse.Store(true)
		if err := w.reschedule(id, every(7*time.Second)); code(err) != "changed_meanwhile" {
			t.Fatal(err)
		}
		from := w.now()
		time.Sleep(3 * time.Minute)
		w.settle()
		got := slices.DeleteFunc(dues(w.of("a")), func(due int64) bool { return due <= from })
		equal(t, "dues", got, grid(from, w.now(), 30_000, made%30_000))
	})
}

// Who has read a row before its task was called, and left memory until its retry is
// near, does not call it again.
func TestRowReadBeforeItsTaskLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var armed atomic.Bool
		var id engine.TimerID
		w.before.set(func(op string, arg any) error {
			if ids, is := arg.([]engine.TimerID); is && op == "Load" && armed.Load() && slices.Contains(ids, id) && armed.CompareAndSwap(true, false) {
				time.Sleep(2 * time.Second)
			}
			return nil
		})
		w.after.set(func(_ string, arg any) {
			if s, is := arg.(*engine.Settlement); is && len(s.Owe) > 10 {
				armed.Store(true)
			}
		})
		w.start()
		w.behave("a", func(c *call) reply {
			if c.attempt == 1 {
				return reply{class: engine.ClassRetry, code: 503, retry: 20 * time.Minute}
			}
			return ok
		})
		id = w.make(timer("a", every(10*time.Second), misfire(engine.MisfireAll, time.Hour), retry(3, time.Second, 1), func(d *engine.Definition) {
			d.Retry.MaxBackoff = time.Hour
		}))
		time.Sleep(35 * time.Second)
		w.step(10 * time.Minute)
		time.Sleep(time.Minute)
		w.settle()
		first := map[int64]int{}
		for _, c := range w.of("a") {
			if first[c.key.Due]++; first[c.key.Due] == 2 {
				t.Errorf("due %s: called again at %s, attempt %d", stamp(c.key.Due), stamp(c.at), c.attempt)
			}
		}
	})
}

// A row that was read before its timer was deleted is not cancelled once more.
func TestRowReadBeforeItsTimerWasDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var armed atomic.Bool
		under := make(chan struct{}, 2)
		w.before.set(func(op string, _ any) error {
			if op == "Load" && armed.Load() { // also that of a reader that comes first
				select {
				case under <- struct{}{}:
				default:
				}
				time.Sleep(time.Second)
			}
			return nil
		})
		w.after.set(func(op string, _ any) {
			if op == "OwedIn" {
				armed.Store(true) // by a start, when it runs
			}
		})
		w.start()
		due := w.now() + 10_000
		id := w.make(timer("a", at(due)))
		time.Sleep(8 * time.Second)
		armed.Store(false)
		w.crash(5 * time.Second)
		<-under
		_, err := w.Delete(t.Context(), id, 0)
		if armed.Store(false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if r := w.record(engine.Key{Timer: id, Due: due}); r.Status != engine.Cancelled || r.App != "app" || r.Name != "a" {
			t.Errorf("the record says %s of %q in app %q", r.Status, r.Name, r.App)
		}
	})
}

// A PUT of the delay that a timer has does not arm it again while its task waits for
// a retry, in memory or not.
func TestPutOfADelayWhileItsRetryIsFar(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", fail, ok)
		d := timer("a", delay(10200*time.Millisecond), retry(4, 5*time.Minute, 1))
		w.make(d)
		due := w.now() + 10_200
		for _, after := range []time.Duration{11 * time.Second, time.Minute} {
			time.Sleep(after)
			if _, is, err := w.Put(t.Context(), d, 0); err != nil || is != change.PutUnchanged {
				t.Errorf("after %v: %v, %v", after, is, err)
			}
		}
		time.Sleep(time.Until(time.UnixMilli(due + 5*60_000 + 10)))
		if _, is, err := w.Put(t.Context(), d, 0); err != nil || is != change.PutUpdated { // it has just ended
			t.Errorf("when it has ended: %v, %v", is, err)
		}
		time.Sleep(12 * time.Minute)
		w.settle()
		if n := len(w.of("a")); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
	})
}

// While a change of one timer is in doubt, since the cold tier can be read but not
// written, the rows of that timer wait, and nothing else does.
func TestChangeInDoubtLeavesTheRestFiring(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		readOnly := w.outage("Apply", "ApplyAll", "Settle", "Raise", "Sweep")
		w.start()
		made := w.now()
		w.make(timer("b", every(10*time.Second)))
		w.replies("a", fail, ok)
		id := w.make(timer("a", at(made+5_000), retry(4, 4*time.Minute, 1)))
		time.Sleep(20 * time.Second)
		readOnly.Store(true)
		if _, err := w.Disable(t.Context(), id, 0, "", 0); err == nil {
			t.Fatal("a disable that could not be stored was acknowledged")
		}
		time.Sleep(10*time.Minute + 3*time.Second)
		equal(t, "dues", dues(w.of("b")), grid(made, w.now(), 10_000, made%10_000))
		readOnly.Store(false)
		time.Sleep(10 * time.Second)
		w.settle()
		if n := len(w.of("a")); n != 2 {
			t.Errorf("%d calls of the timer that stayed as it was, want its retry, too", n)
		}
	})
}

// A call runs whose row could not be stored; its timer is disabled, and the process
// ends: the change has left a row.
func TestCrashAfterAChangeOfWhatIsOwedInMemory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage()
		w.start()
		first := w.now() + 30_000
		w.behave("a", func(c *call) reply { return slow(5 * time.Minute) })
		id := w.make(timer("a", every(30*time.Minute), timeout(10*time.Minute), func(d *engine.Definition) { d.Schedule.StartAt = first }))
		time.Sleep(35 * time.Second)
		away.Store(true)
		time.Sleep(20 * time.Second)
		away.Store(false)
		w.disable(id, 0)
		w.crash(time.Second)
		time.Sleep(10 * time.Second)
		w.settle()
		w.record(engine.Key{Timer: id, Due: first})
	})
}

// Rows are read by several after a start. A range of dues is unfolded once: what was
// called and left memory for a far retry is not made anew.
func TestRangeIsUnfoldedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.before.set(func(op string, arg any) error {
			switch r, is := arg.([2]int64); {
			case op == "Load":
				time.Sleep(400 * time.Millisecond)
			case is && op == "Owed" && r[0] > 0:
				time.Sleep(1500 * time.Millisecond) // by then a part of the range is unfolded
			}
			return nil
		})
		w.start()
		w.behave("a", func(c *call) reply {
			if c.attempt == 1 {
				return reply{class: engine.ClassRetry, code: 503, retry: 20 * time.Minute, after: 10 * time.Millisecond}
			}
			return ok
		})
		w.make(timer("a", every(time.Second), misfire(engine.MisfireAll, 2*time.Hour), retry(3, time.Second, 1), func(d *engine.Definition) {
			d.Retry.MaxBackoff = time.Hour
		}))
		time.Sleep(5 * time.Second)
		w.crash(80 * time.Minute)
		from := w.now()
		time.Sleep(2 * time.Minute)
		first := map[int64]int{}
		for _, c := range w.of("a") {
			if c.at < from {
				continue
			}
			if first[c.key.Due]++; c.attempt == 1 && first[c.key.Due] == 2 {
				t.Errorf("due %s: called again at %s as attempt 1", stamp(c.key.Due), stamp(c.at))
			}
		}
	})
}

// The clock is set back while a range of past dues is being unfolded: what of it is to
// come again is called when it is.
func TestStepBackWhileARangeIsUnfolded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var armed atomic.Bool
		w.before.set(func(_ string, arg any) error {
			if s, is := arg.(*engine.Settlement); is && len(s.Pay) > 0 && slices.ContainsFunc(s.Owe, func(o engine.Owed) bool { return o.To != 0 }) && armed.CompareAndSwap(true, false) {
				w.step(-20 * time.Minute)
			}
			return nil
		})
		w.start()
		made := w.now()
		w.make(timer("a", every(10*time.Second), misfire(engine.MisfireAll, 24*time.Hour)))
		time.Sleep(15 * time.Second)
		armed.Store(true)
		w.crash(5 * time.Hour)
		time.Sleep(30*time.Minute + time.Second)
		w.settle()
		if armed.Load() {
			t.Fatal("no range was unfolded")
		}
		got := dues(w.of("a"))
		slices.Sort(got)
		if d := difference(slices.Compact(got), grid(made, w.now(), 10_000, made%10_000)); d != "" {
			t.Error(d)
		}
	})
}
