package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
)

// fallsBehind makes a timer that is due each second and may be called every ten, and waits for 100 s.
func (w *world) fallsBehind(p engine.MisfirePolicy) (id engine.TimerID, from int64) {
	w.config.MaxWaiting = 20
	w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}}})
	w.start()
	from = w.now()
	id = w.make(timer("behind", every(time.Second), flows("k"), misfire(p, 24*time.Hour)))
	time.Sleep(100*time.Second + 500*time.Millisecond)
	return id, from
}

// between counts the dues of calls to a name in (after, before).
func (w *world) between(name string, after, before int64) (n int) {
	for _, due := range dues(w.of(name)) {
		if after < due && due < before {
			n++
		}
	}
	return n
}

// What a step of the clock made late is recorded as skipped of a timer that is behind. The clock is set right again, and
// the timer goes on in the middle of the dues of that record, also after a crash: these are not called.
func TestClockSetForwardAndBackOfATimerThatIsBehind(t *testing.T) {
	for _, crash := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			id, from := w.fallsBehind(engine.MisfireSkip)
			was := w.now()
			w.step(10 * time.Minute)
			time.Sleep(30 * time.Second)
			w.step(-10 * time.Minute)
			time.Sleep(time.Second)
			if crash {
				w.crash(time.Second)
			}
			w.SetRule(keyK, nil)
			time.Sleep(15 * time.Minute)
			if n := w.between("behind", was, was+590_000); n > 0 {
				t.Errorf("crash %v: %d dues are called that are recorded as skipped", crash, n)
			}
			w.stopAccounted(id, from, 1000)
		})
	}
}

// What a step of the clock made late of a timer that is behind, and is not called, does not count as overdue.
func TestSkippedDuesAreNotOverdue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.fallsBehind(engine.MisfireSkip)
		w.step(10 * time.Minute)
		time.Sleep(10 * time.Second)
		if err := w.CountOverdue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := w.metric("xtimer_tasks_overdue"); n < 90 || n > 120 { // 100 that were held, 20 since, and those that were called
			t.Errorf("%v tasks are overdue", n)
		}
		w.SetRule(keyK, nil)
		w.settle()
	})
}

// A run by hand between a step of the clock and the decision about the dues that the step made late changes nothing in
// that decision.
func TestRunByHandDuringAStep(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, from := w.fallsBehind(engine.MisfireSkip)
		was := w.now()
		w.step(10 * time.Minute)
		time.Sleep(10 * time.Millisecond)
		if _, err := w.RunForced(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		w.SetRule(keyK, nil)
		time.Sleep(2 * time.Minute)
		if n := w.between("behind", was, was+590_000); n > 0 {
			t.Errorf("%d dues are called that the step skipped", n)
		}
		w.disable(id, 0)
		w.settle()
		if n := len(grid(from, w.now(), 1000, from)); len(w.of("behind")) > n-500 {
			t.Errorf("%d calls of %d dues", len(w.of("behind")), n)
		}
	})
}

// The clock is set forward while the transaction is under way with which a timer catches up: what the step made late
// is decided once, and the timer goes on.
func TestStepWhileATimerCatchesUp(t *testing.T) {
	for _, p := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireAll} {
		for _, d := range []time.Duration{30 * time.Second, 10 * time.Minute} {
			t.Run(fmt.Sprint(p, " ", d), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					id, from := w.fallsBehind(p)
					var stuck, open atomic.Bool
					w.before.set(func(op string, arg any) error {
						s, ok := arg.(*engine.Settlement)
						if op != "Settle" || !ok {
							return nil
						}
						catches := false
						for _, k := range s.Pay {
							rows, _ := w.cold.OwedPage(t.Context(), k.Timer, k.Due-1, 1)
							catches = catches || len(rows) == 1 && rows[0].Key == k && rows[0].To == engine.Endless
						}
						for _, o := range s.Owe {
							catches = catches && o.To != engine.Endless
						}
						for catches && !open.Load() {
							stuck.Store(true)
							time.Sleep(10 * time.Millisecond)
						}
						return nil
					})
					w.SetRule(keyK, nil)
					for i := 0; !stuck.Load(); i++ {
						if i == 100_000 {
							t.Fatal("the timer does not catch up")
						}
						time.Sleep(time.Millisecond)
					}
					w.step(d)
					time.Sleep(time.Second)
					open.Store(true)
					time.Sleep(5 * time.Minute)
					w.stopAccounted(id, from, 1000)
					if n := w.between("behind", w.now()-290_000, w.now()); n < 280 {
						t.Errorf("%d dues are called of the last 290 s", n)
					}
				})
			})
		}
	}
}

// A timer is behind since its target is crowded. Then its app is paused, and then the clock is set forward. When the pause
// ends, all is called: what had waited for the target, what the pause held, and what the step made late during the pause.
func TestStepDuringAPauseOfATimerThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		from := w.now()
		ids, answer := w.crowdedBy(10, misfire(engine.MisfireSkip, 24*time.Hour))
		time.Sleep(time.Minute)
		w.pauseIt(t, limit.AppKey("app"))
		time.Sleep(time.Minute)
		w.step(10 * time.Minute)
		stepped := w.now()
		time.Sleep(20 * time.Second)
		answer()
		w.resumeIt(t, limit.AppKey("app"), "call")
		time.Sleep(2 * time.Minute)
		for i, id := range ids {
			if n, all := w.between(fmt.Sprint("mute", i), from, stepped), int(stepped-from)/500; n < all-25 {
				t.Errorf("timer %d: %d dues are called of %d", i, n, all)
			}
			w.stopAccounted(id, from, 500)
		}
	})
}

// What a step of the clock made late while a pause is in force waits for the end of the pause, under misfire skip too.
func TestStepDuringAPause(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		id := w.make(timer("a", every(20*time.Second), misfire(engine.MisfireSkip, time.Hour)))
		w.pauseIt(t, limit.AppKey("app"))
		time.Sleep(time.Minute)
		w.step(10 * time.Minute)
		stepped := w.now()
		time.Sleep(10 * time.Second)
		w.resumeIt(t, limit.AppKey("app"), "call")
		time.Sleep(time.Minute)
		if n := w.between("a", from, stepped); n != 32 {
			t.Errorf("%d dues are called, want 32", n)
		}
		w.stopAccounted(id, from, 20_000)
	})
}
