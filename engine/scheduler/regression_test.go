package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// REGRESSIONS.md says which defect each of these is about.

// However often the process is restarted, no part of the window is left uncovered.
func TestRestartsWithinTheWindow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.Window = 5 * time.Minute
		w.start()
		from := w.now()
		w.make(timer("minute", cron("30 * * * * *"), misfire(engine.MisfireAll, time.Hour)))
		w.make(timer("three", cron("0 7/3 * * * *"), misfire(engine.MisfireAll, time.Hour)))
		for i := range 6 {
			time.Sleep(110*time.Second + time.Duration(i)*7*time.Second)
			if err := w.stop(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			w.start()
		}
		to := w.now()
		w.settle()
		equal(t, "minute", dues(w.of("minute")), grid(from, to, 60_000, 30_000))
		equal(t, "three", dues(w.of("three")), slices.DeleteFunc(grid(from, to, 180_000, 60_000), func(d int64) bool { return time.UnixMilli(d).Minute() < 7 }))
	})
}

// A thousand timers of one process are due at the same instant, and all are
// called in its first millisecond: nothing is loaded at a pace of one by one.
func TestManyTimersAtOneInstant(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.Window = 3 * time.Minute
		w.start()
		const n = 1000
		for i := range n {
			w.make(timer(fmt.Sprint(i), cron("0 */2 * * * *")))
		}
		time.Sleep(5 * time.Minute) // from 16:59:30 on: 17:00, 17:02 and 17:04
		w.settle()
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.calls {
			if c.at != c.key.Due {
				t.Fatalf("%s was called %d ms after its due", c.key, c.at-c.key.Due)
			}
		}
		if len(w.calls) != 3*n {
			t.Errorf("%d calls, want %d", len(w.calls), 3*n)
		}
	})
}

// A load that fails in the middle, for whatever reason and however often, gives
// up nothing of its minute.
func TestLoadsThatFail(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var n atomic.Int64
		w.before.set(func(op string, _ any) error {
			if (op == "Load" || op == "Due" || op == "Owed" || op == "OwedIn") && n.Add(1)%3 != 0 && len(w.starts) > 0 && w.now()-w.starts[0] > 2000 {
				return errors.New("two of three fail")
			}
			return nil
		})
		w.start()
		from := w.now()
		ids := map[int64]engine.TimerID{}
		for due := from + 3*60_000; due < from+10*60_000; due += 11_000 {
			ids[due] = w.make(timer(fmt.Sprint(due), at(due))) // not in memory before its minute
		}
		time.Sleep(11 * time.Minute)
		w.settle()
		for due, id := range ids {
			w.exact(fmt.Sprint(due), id, []int64{due}, 0)
		}
	})
}

// A spec whose last tick lies within the hour that is loaded is taken, enabled
// again, called once, and finished.
func TestLastTickWithinTheHour(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		due := w.now()/60_000*60_000 + 5*60_000 + 38_000
		d := timer("a", cron(time.UnixMilli(due).UTC().Format("5 4 15 2 1 *")))
		d.Schedule.MaxRuns = 1
		id := w.make(d)
		time.Sleep(time.Minute)
		w.disable(id, 0)
		w.enable(id, engine.CatchUpNone)
		time.Sleep(6 * time.Minute)
		w.exact("a", id, []int64{due}, 0)
		if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Finished {
			t.Errorf("%v, %v", v.Status, err)
		}
	})
}

// Who starts in the middle of a minute, after an end or a crash, calls the rest
// of that minute on time, and what passed meanwhile at once.
func TestStartWithinAMinute(t *testing.T) {
	for into, crash := range map[time.Duration]bool{
		500 * time.Millisecond: false, 21400 * time.Millisecond: true, 37250 * time.Millisecond: false, 59990 * time.Millisecond: true,
	} {
		t.Run(fmt.Sprint(into, " crash ", crash), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.make(timer("old", cron("* * * * * *"), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(90*time.Second + into)
				if crash {
					w.kill()
				} else if err := w.stop(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(4650 * time.Millisecond) // no due falls on the instants looked at
				w.start()
				began := w.starts[1]
				w.make(timer("new", cron("* * * * * *")))
				time.Sleep(30 * time.Second)
				to := w.now()
				cs := append(w.of("old"), w.of("new")...)
				for _, c := range cs {
					if late := c.at - max(c.key.Due, began); c.at > began && late > 10 {
						t.Errorf("%s %s was called %d ms late", c.name, stamp(c.key.Due), late)
					}
				}
				got := dues(w.of("old"))
				slices.Sort(got)
				equal(t, "old", slices.Compact(got), grid(from, to, 1000, 0))
				equal(t, "new", dues(w.of("new")), grid(began, to, 1000, 0))
			})
		})
	}
}

// More is due than can be called: it waits and is called once, however long
// that takes, and there is no lease that could end meanwhile.
func TestOverloadIsCalledOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
		w.start()
		from := w.now()
		ids := map[string]engine.TimerID{}
		for i := range 20 {
			name := fmt.Sprint(i)
			w.replies(name, slow(2*time.Second))
			d := timer(name, every(time.Second))
			d.Schedule.MaxRuns = 10
			ids[name] = w.make(d)
		}
		time.Sleep(5 * time.Minute) // 200 calls of 2 s, 4 at a time: 100 s
		for name, id := range ids {
			w.exact(name, id, grid(from, from+10_000, 1000, from), 100_000)
		}
	})
}

// A timer may be disabled and enabled at any time, within one window as well:
// each due while it is enabled is called, and no other.
func TestEnabledAgainAndAgain(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		id := w.make(timer("a", every(time.Second)))
		var want []int64
		on := from
		time.Sleep(200 * time.Millisecond) // no change is made in the very ms of a due
		for i := range 30 {
			time.Sleep(time.Duration(3+i%4)*time.Second + 500*time.Millisecond)
			want = append(want, grid(on, w.now(), 1000, from)...)
			w.disable(id, 0)
			time.Sleep(time.Duration(1+i%3)*time.Second + 500*time.Millisecond)
			w.enable(id, engine.CatchUpNone)
			on = w.now()
		}
		w.disable(id, 0)
		w.settle()
		w.exact("a", id, want, 0)
	})
}

// An app may make, change and delete as often as it likes, without the warm
// tier too: there is no lock that a rate could run into.
func TestChangesOfOneAppWithoutTheWarmTier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.warmFault.set(func(string) error { return engine.ErrUnavailable })
		w.start()
		began := time.Now()
		for i := range 200 {
			id := w.make(timer(fmt.Sprint(i), every(time.Hour)))
			w.disable(id, 0)
			w.enable(id, engine.CatchUpNone)
			if _, err := w.Delete(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("800 changes took %v on a machine that is infinitely fast", d)
		}
	})
}

// With nothing to do the tiers are asked next to nothing.
func TestIdleAsksNextToNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var asked atomic.Int64
		w.before.set(func(string, any) error { asked.Add(1); return nil })
		w.warmFault.set(func(string) error { asked.Add(1); return nil })
		w.start()
		time.Sleep(time.Minute)
		asked.Store(0)
		time.Sleep(10 * time.Minute)
		if n := asked.Load(); n > 600 {
			t.Errorf("%d questions and settles in ten idle minutes", n)
		} else {
			t.Logf("%d questions and settles in ten idle minutes", n)
		}
	})
}

// To enable a timer of every second writes its row, and an entry a minute of the
// hour; one that is due in years has no entry before its hour.
func TestEnableWritesNoDues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var commits, owed atomic.Int64
		w.before.set(func(op string, arg any) error {
			if c, ok := arg.(*engine.Change); ok && op == "Apply" {
				commits.Add(1)
				owed.Add(int64(len(c.Owe)))
			}
			return nil
		})
		w.start()
		time.Sleep(time.Minute)
		id := w.make(timer("second", cron("* * * * * *")))
		w.disable(id, 0)
		commits.Store(0)
		before := w.metric("xtimer_warm_entries")
		w.enable(id, engine.CatchUpNone)
		w.make(timer("year", cron("@yearly")))
		if commits.Load() != 1+1 || owed.Load() != 0 {
			t.Errorf("%d commits with %d rows of dues", commits.Load(), owed.Load())
		}
		if n := w.metric("xtimer_warm_entries") - before; n > 62 {
			t.Errorf("the warm tier got %v entries, want one a minute", n)
		}
	})
}
