package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/scheduler"
)

const clockAhead = 4 * time.Minute

// ahead is a world whose clock was clockAhead ahead for 42 s, and is right again: with a start at
// each change of it, or while the engine ran.
func ahead(t *testing.T, f func(t *testing.T, w *world, id engine.TimerID)) {
	for _, started := range []bool{true, false} {
		t.Run(fmt.Sprint("started ", started), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				id := w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, 24*time.Hour)))
				time.Sleep(30*time.Second + 50*time.Millisecond)
				w.settle()
				w.setClock(started, clockAhead)
				time.Sleep(42 * time.Second)
				w.setClock(started, -clockAhead)
				time.Sleep(2 * time.Second)
				f(t, w, id)
				w.settle()
				w.once("a")
			})
		})
	}
}

func (w *world) setClock(started bool, by time.Duration) {
	w.t.Helper()
	if !started {
		w.step(by)
		return
	}
	if err := w.stop(); err != nil {
		w.t.Fatal(err)
	}
	w.step(by)
	w.start()
}

// soon is how many calls of a timer began within two minutes of an instant, of dues after it.
func (w *world) soon(name string, from int64) (n int) {
	for _, c := range w.of(name) {
		if c.key.Due >= from && c.at >= from && c.at < from+120_000 {
			n++
		}
	}
	return n
}

// A clock that is far behind the watermark is told of, until it is there or was reset.
func TestClockBehindIsTold(t *testing.T) {
	ahead(t, func(t *testing.T, w *world, _ engine.TimerID) {
		if d := w.ClockBehind(); d < clockAhead-time.Minute || d > clockAhead+time.Minute {
			t.Errorf("the clock is %v behind", d)
		}
		if s := w.metric("xtimer_clock_behind_seconds"); s < (clockAhead - time.Minute).Seconds() {
			t.Errorf("the metric says %v s", s)
		}
		if ws := w.Warnings(); len(ws) != 1 || ws[0].Code != "clock_behind" {
			t.Errorf("warnings %v", ws)
		}
		if err := w.Ready(); err != nil {
			t.Errorf("not ready: %v", err)
		}
		time.Sleep(clockAhead)
		if d := w.ClockBehind(); d != 0 {
			t.Errorf("the clock is where it was, and %v behind", d)
		}
	})
}

// Recurring timers rest after the clock was set back; next_due says so.
func TestClockBehindNextDue(t *testing.T) {
	ahead(t, func(t *testing.T, w *world, id engine.TimerID) {
		now := w.now()
		v, err := w.Timer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := w.soon("a", now); n > 0 {
			t.Errorf("%d calls while the timer rests", n)
		}
		time.Sleep(clockAhead)
		calls := w.of("a")
		i := slices.IndexFunc(calls, func(c call) bool {
			return c.at > now+60_000 && c.key.Due > now+60_000 && c.at < now+2*clockAhead.Milliseconds() && c.key.Due >= v.NextDue
		})
		if i < 0 || calls[i].key.Due != v.NextDue {
			t.Errorf("next_due was %s", stamp(v.NextDue))
		}
	})
}

// A timer that is enabled anew, or gets another schedule, is called at once by the clock
// as it is, except for keys that were used.
func TestClockBehindThenChange(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, id engine.TimerID){
		"disable and enable": func(w *world, id engine.TimerID) {
			w.disable(id, 0)
			w.enable(id, engine.CatchUpNone)
		},
		"disable until": func(w *world, id engine.TimerID) { w.disable(id, w.now()+1000) },
		"schedule": func(w *world, id engine.TimerID) {
			if err := w.reschedule(id, cron("*/10 * * * * *")); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", crash ", crash), func(t *testing.T) {
				ahead(t, func(t *testing.T, w *world, id engine.TimerID) {
					change(w, id)
					time.Sleep(3 * time.Second)
					now := w.now()
					v, err := w.Timer(t.Context(), id)
					if err != nil || v.NextDue > now+10_000 {
						t.Errorf("next due %s at %s: %v", stamp(v.NextDue), stamp(now), err)
					}
					if crash {
						w.crash(time.Second)
					}
					time.Sleep(time.Minute)
					if n := w.soon("a", now); n < 5 {
						t.Errorf("%d calls in a minute", n)
					}
					time.Sleep(clockAhead)
					w.accountedFrom(id, now, w.now()-10_000)
				})
			})
		}
	}
}

// accountedFrom checks that each due in (from, to], except for those of the 42 s, has been called, or decided.
func (w *world) accountedFrom(id engine.TimerID, from, to int64) {
	w.t.Helper()
	n := 0
	for _, r := range w.records(id) {
		if r.Key.Due > from && r.Key.Due <= to && r.Status == engine.Succeeded {
			n++
		}
	}
	if want := int(to-from) / 10_000; n < want-5 || n > want+1 {
		w.t.Errorf("%d dues of %d were called", n, want)
	}
}

// After a reset of the clock all timers are called by the clock as it is, each key once.
func TestClockReset(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			ahead(t, func(t *testing.T, w *world, id engine.TimerID) {
				op, err := w.ResetClock(t.Context(), true, change.Part{})
				if err != nil || op.Total != 1 || w.ClockBehind() == 0 {
					t.Fatalf("dry: %+v %v", op, err)
				}
				for range 2 { // again changes nothing
					if op, err = w.ResetClock(t.Context(), false, change.Part{}); err != nil || op.Total != 1 || op.Failed != 0 || !op.Ended {
						t.Fatalf("%+v %v", op, err)
					}
				}
				now := w.now()
				if v, err := w.Timer(t.Context(), id); err != nil || v.NextDue > now+10_000 {
					t.Errorf("next due %s at %s: %v", stamp(v.NextDue), stamp(now), err)
				}
				if d := w.ClockBehind(); d != 0 {
					t.Errorf("still %v behind", d)
				}
				time.Sleep(30 * time.Second)
				if crash {
					w.crash(time.Second)
				}
				time.Sleep(30 * time.Second)
				if n := w.soon("a", now); n < 5 {
					t.Errorf("%d calls in a minute", n)
				}
				time.Sleep(clockAhead)
				w.accountedFrom(id, now, w.now()-10_000)
			})
		})
	}
}

// A one-shot that a clock far ahead found too late to call, and a timer whose end it had
// passed, come back by a reset; one that was called does not.
func TestClockResetOfWhatWasFinished(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		missed := w.make(timer("missed", delay(6*time.Minute), misfire(engine.MisfireLatest, 3*time.Minute)))
		ended := w.make(timer("ended", engine.Schedule{Every: 45 * time.Second, MaxRuns: 8}, misfire(engine.MisfireSkip, 3*time.Minute)))
		w.make(timer("called", delay(19*time.Minute+50*time.Second), misfire(engine.MisfireLatest, 3*time.Minute)))
		time.Sleep(10 * time.Second)
		w.setClock(true, 20*time.Minute)
		time.Sleep(30 * time.Second) // the janitor archives them
		w.setClock(true, -20*time.Minute)
		time.Sleep(time.Second)
		if op, err := w.ResetClock(t.Context(), false, change.Part{}); err != nil || op.Failed != 0 || op.Total != 3 {
			t.Fatalf("%+v %v", op, err)
		}
		time.Sleep(10 * time.Minute)
		w.settle()
		if n := len(w.of("missed")); n != 1 {
			t.Errorf("the one-shot that was missed was called %d times: %v", n, w.verdicts(missed, w.starts[0]))
		}
		if n := len(w.of("ended")); n != 8 {
			t.Errorf("the timer that had ended was called %d times: %v", n, w.verdicts(ended, w.starts[0]))
		}
		time.Sleep(15 * time.Minute)
		if n := len(w.of("called")); n != 1 {
			t.Errorf("the one-shot that was called was called %d times", n)
		}
		for _, name := range []string{"missed", "ended", "called"} {
			w.once(name)
		}
	})
}

// Where history does not keep every success, the dues that may have been called are not
// called again, and those that were not are.
func TestClockResetOfASample(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config = scheduler.Config{HistorySampled: true}
		w.start()
		w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, 24*time.Hour)))
		time.Sleep(30 * time.Second)
		w.step(clockAhead)
		time.Sleep(42 * time.Second)
		w.settle()
		w.step(-clockAhead)
		time.Sleep(time.Second)
		if op, err := w.ResetClock(t.Context(), false, change.Part{}); err != nil || op.Failed != 0 {
			t.Fatalf("%+v %v", op, err)
		}
		now := w.now()
		time.Sleep(time.Minute)
		if n := w.soon("a", now); n < 5 {
			t.Errorf("%d calls in a minute", n)
		}
		time.Sleep(clockAhead)
		w.once("a")
	})
}

// A start waits for the clock when there is something that a wrong clock would call, and
// decides by the clock as it is then.
func TestStartAwaitsTheClock(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var asked []time.Time
		w.config.AwaitClock = func(_ context.Context, last time.Time) {
			asked = append(asked, last)
			w.step(-clockAhead)
		}
		w.start()
		if len(asked) > 0 {
			t.Error("a new server waits for the clock")
		}
		from := w.now()
		id := w.make(timer("a", every(10*time.Second)))
		time.Sleep(35 * time.Second)
		w.kill()
		w.step(clockAhead)
		w.start()
		if len(asked) != 1 || asked[0].UnixMilli() > w.now() || asked[0].UnixMilli() < w.now()-20_000 {
			t.Fatalf("asked with %v at %s", asked, stamp(w.now()))
		}
		time.Sleep(30 * time.Second)
		w.settle()
		w.accounted(id, from, w.now()-6000, 10_000)
		if w.ClockBehind() != 0 {
			t.Error("the watermark went by the wrong clock")
		}
	})
}

// A due that is called and settled while a reset takes its time is not called again.
func TestClockResetBesideCalls(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		var resets atomic.Bool
		w.after.set(func(op string, _ any) {
			if op == "OwedPage" && resets.Load() {
				time.Sleep(11 * time.Second)
			}
		})
		id := w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, 24*time.Hour)))
		time.Sleep(30*time.Second + 50*time.Millisecond)
		w.step(clockAhead)
		time.Sleep(42 * time.Second)
		w.step(-clockAhead)
		time.Sleep(2 * time.Second)
		w.disable(id, 0)
		w.enable(id, engine.CatchUpNone)
		resets.Store(true)
		if op, err := w.ResetClock(t.Context(), false, change.Part{}); err != nil || op.Total != 1 || op.Failed != 0 {
			t.Fatalf("%+v %v", op, err)
		}
		resets.Store(false)
		now := w.now()
		time.Sleep(clockAhead)
		w.accountedFrom(id, now, w.now()-10_000)
		w.once("a")
	})
}

// When the clock is set forward while a reset reads what was called, the timers follow their
// policies, as they do at any step.
func TestStepForwardDuringAClockReset(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		var resets, stepped atomic.Bool
		w.before.set(func(op string, arg any) error {
			if op == "OwedPage" && resets.Load() && stepped.CompareAndSwap(false, true) {
				w.step(time.Hour)
				time.Sleep(time.Second)
			}
			return nil
		})
		w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, 24*time.Hour)))
		time.Sleep(30*time.Second + 50*time.Millisecond)
		w.step(clockAhead)
		time.Sleep(42 * time.Second)
		w.step(-clockAhead)
		time.Sleep(2 * time.Second)
		resets.Store(true)
		if op, err := w.ResetClock(t.Context(), false, change.Part{}); err != nil || op.Total != 1 || op.Failed != 0 {
			t.Fatalf("%+v %v", op, err)
		}
		if !stepped.Load() {
			t.Fatal("the clock was not set: the test tests nothing")
		}
		resets.Store(false)
		time.Sleep(time.Minute)
		w.settle()
		w.once("a")
		for _, c := range w.of("a") {
			if c.at-c.key.Due > 11_000 {
				t.Errorf("due %s was called at %s", stamp(c.key.Due), stamp(c.at))
			}
		}
		if c := w.of("a"); w.now()-c[len(c)-1].at > 15_000 {
			t.Errorf("it was last called at %s", stamp(c[len(c)-1].at))
		}
	})
}

// A timer is changed twice after the clock was set back. None of the dues that it had used before
// is called again, though the range of the second change cannot have the key that the range of the
// first has.
func TestChangedTwiceAfterAStepBack(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(10*time.Second)))
		made := w.now()
		time.Sleep(time.Minute + 5*time.Second)
		w.step(-5 * time.Minute)
		time.Sleep(10 * time.Second)
		w.disable(id, w.now()+20_000)
		time.Sleep(5 * time.Second)
		w.enable(id, engine.CatchUpLatest)
		time.Sleep(7 * time.Minute)
		w.settle()
		equal(t, "dues", dues(w.of("a")), grid(made, w.now(), 10_000, made%10_000))
	})
}

// TestStepBackOfAFullLane: what fills a lane waits for its due again when the clock was set back by
// hours. What is made for the same target by the new clock is called meanwhile.
func TestStepBackOfAFullLane(t *testing.T) {
	for _, how := range []engine.Overlap{engine.OverlapAllow, engine.OverlapQueue} {
		t.Run(fmt.Sprint(how), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 1, 1, 1
				w.start()
				w.behave("full", func(*call) reply { return slow(3 * time.Second) })
				w.make(timer("full", every(time.Second), overlap(how)))
				time.Sleep(17_500 * time.Millisecond) // 8 tasks are in memory
				w.step(-3 * time.Hour)
				time.Sleep(30 * time.Second)
				from := w.now()
				w.make(timer("every", every(5*time.Second)))
				w.make(timer("once", delay(7*time.Second)))
				time.Sleep(time.Minute)
				if n, m := len(w.of("every")), len(w.of("once")); n < 11 || m != 1 {
					t.Errorf("%d calls of a timer every 5 s and %d of one to be called once, in the first minute", n, m)
				}
				for _, c := range append(w.of("every"), w.of("once")...) {
					if late := c.at - c.key.Due; c.key.Due <= from || late > 2500 {
						t.Errorf("due %s is called %d ms late", stamp(c.key.Due), late)
					}
				}
			})
		})
	}
}

// TestStepForwardBeforeARefill: refill brings the dues of a timer that is behind into memory right
// after a step of the clock, before the wheel has noticed the step. The timer has what a step makes late
// skipped.
func TestStepForwardBeforeARefill(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 1, 1, 1
		w.start()
		w.replies("a", slow(10_780*time.Millisecond), ok)
		from := w.now()
		w.make(timer("a", every(time.Second), misfire(engine.MisfireSkip, time.Hour)))
		time.Sleep(11_770 * time.Millisecond)
		w.step(20 * time.Minute)
		time.Sleep(time.Minute)
		late := from + 20*time.Minute.Milliseconds()
		for _, due := range dues(w.of("a")) {
			if from+12_000 <= due && due < late {
				t.Errorf("%s is called, which the step has made late", stamp(due))
			}
		}
	})
}

// TestCutBeforeAStepIsNoticed: no watermark passes a step of the clock before the wheel has noticed the step.
func TestCutBeforeAStepIsNoticed(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		time.Sleep(time.Second)
		was := w.now()
		w.step(time.Minute)
		if cut := w.Cut(); cut > was {
			t.Errorf("a watermark may go %d ms beyond the step", cut-was)
		}
		time.Sleep(5 * time.Second)
		if cut := w.Cut(); cut < was+60_000 {
			t.Errorf("a watermark stays %d ms before the end of the step", was+60_000-cut)
		}
	})
}

// TestStepBackBehindAReplacement: the disable of a timer that was over when it got another schedule
// stays over when the clock is set back.
func TestStepBackBehindAReplacement(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(time.Minute)))
		w.disable(id, w.now()+5_000)
		time.Sleep(20 * time.Second)
		if err := w.reschedule(id, every(30*time.Second)); err != nil {
			t.Fatal(err)
		}
		w.step(-time.Minute)
		time.Sleep(100 * time.Millisecond)
		if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Enabled {
			t.Errorf("after a step back the timer is %s (%v), want enabled", v.Status, err)
		}
	})
}

// TestStepBackThenMaxRuns: a timer that got max_runs while it was disabled, by a clock that was set back,
// has its missed dues called when it is enabled, though it was called for a later instant before.
func TestStepBackThenMaxRuns(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", cron("0 * * * *")))
		time.Sleep(time.Minute)
		if _, err := w.RunNow(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.step(-110 * time.Second)
		time.Sleep(time.Second)
		w.disable(id, 0)
		time.Sleep(time.Second)
		from := w.now()
		if err := w.reschedule(id, engine.Schedule{Every: 2 * time.Second, MaxRuns: 3}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		w.enable(id, engine.CatchUpAll)
		time.Sleep(time.Second)
		got := slices.DeleteFunc(dues(w.of("a")), func(due int64) bool { return due > from+10_000 })
		if diff := difference(got, grid(from, from+6_000, 2_000, from%2_000)); diff != "" {
			t.Errorf("of the dues that it missed: %s", diff)
		}
	})
}
