package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/plan"
)

func (w *world) disable(id engine.TimerID, until int64) {
	w.t.Helper()
	if _, err := w.Disable(w.t.Context(), id, 0, "", until); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) enable(id engine.TimerID, c engine.CatchUp) {
	w.t.Helper()
	if _, err := w.Enable(w.t.Context(), id, 0, c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) reschedule(id engine.TimerID, s engine.Schedule) error {
	_, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
		d.Schedule = s
		return d, nil
	})
	return err
}

func code(err error) string {
	var f *engine.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return ""
}

// A timer that is disabled until an instant is changed often meanwhile: since when it is
// disabled stands in an old version, and its versions are not in memory together.
func TestEnableOfATimerChangedOften(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(time.Minute)))
		time.Sleep(90 * time.Second)
		w.disable(id, w.now()+time.Hour.Milliseconds())
		before := len(w.of("a"))
		for i := range 100 {
			time.Sleep(6 * time.Second)
			if _, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				d.Labels = engine.SortLabels(map[string]string{"n": fmt.Sprint(i)})
				return d, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		var pages atomic.Int64
		w.before.set(func(op string, _ any) error {
			if op == "Versions" {
				pages.Add(1)
			}
			return nil
		})
		w.enable(id, engine.CatchUpAll)
		if n := pages.Load(); n < 5 {
			t.Errorf("its versions are read in %d pages", n)
		}
		time.Sleep(10 * time.Second)
		if n := len(w.of("a")) - before; n != 10 {
			t.Errorf("%d calls of the ten minutes for which it was disabled", n)
		}
	})
}

// To enable a one-shot never fires what passed, and what was called is not
// called again.
func TestEnableOneShot(t *testing.T) {
	for _, x := range []struct {
		name    string
		disable time.Duration
		enable  time.Duration
		catch   engine.CatchUp
		calls   int
	}{
		{"before its due", time.Second, 5 * time.Second, engine.CatchUpNone, 1},
		{"passed meanwhile", time.Second, 20 * time.Second, engine.CatchUpNone, 0},
		{"passed meanwhile, caught up", time.Second, 20 * time.Second, engine.CatchUpLatest, 1},
		{"passed meanwhile, all caught up", time.Second, 20 * time.Second, engine.CatchUpAll, 1},
		{"fired before", 15 * time.Second, 20 * time.Second, engine.CatchUpNone, 1},
		{"fired before, caught up", 15 * time.Second, 20 * time.Second, engine.CatchUpAll, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				id := w.make(timer("a", delay(10*time.Second)))
				time.Sleep(x.disable)
				w.disable(id, 0)
				time.Sleep(x.enable - x.disable)
				w.enable(id, x.catch)
				time.Sleep(time.Minute)
				w.crash(time.Second)
				w.settle()
				if cs := w.of("a"); len(cs) != x.calls {
					t.Errorf("%d calls, want %d: %+v", len(cs), x.calls, cs)
				}
			})
		})
	}
}

// A one-shot that is disabled until after its due is not called.
func TestDisableOneShotUntil(t *testing.T) {
	for _, x := range []struct {
		name    string
		disable time.Duration
		until   time.Duration
		calls   int
	}{
		{"before its due", time.Second, 5 * time.Second, 1},
		{"over its due", time.Second, 20 * time.Second, 0},
		{"after it fired", 15 * time.Second, 20 * time.Second, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				id := w.make(timer("a", delay(10*time.Second)))
				time.Sleep(x.disable)
				w.disable(id, from+x.until.Milliseconds())
				time.Sleep(time.Minute)
				w.crash(time.Second)
				w.settle()
				if cs := w.of("a"); len(cs) != x.calls {
					t.Errorf("%d calls, want %d: %+v", len(cs), x.calls, cs)
				}
			})
		})
	}
}

// A change, a run by hand or a change that failed, at the moment when the
// migrator loads the timer's minute, does not cost it its due.
func TestChangeWhileTheMigratorLoads(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name string
		op   string // of the cold tier that takes its time
		do   func(w *world, id engine.TimerID) error
		fail bool // the commit fails
	}{
		{"patch of the callback", "Apply", func(w *world, id engine.TimerID) error {
			_, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				d.Callback.URL += "/changed"
				return d, nil
			})
			return err
		}, false},
		{"patch that fails", "Apply", func(w *world, id engine.TimerID) error { return w.reschedule(id, delay(time.Hour)) }, true},
		{"delete that fails", "Apply", func(w *world, id engine.TimerID) error {
			_, err := w.Delete(w.t.Context(), id, 0)
			return err
		}, true},
		{"run by hand", "Settle", func(w *world, id engine.TimerID) error { _, err := w.RunNow(w.t.Context(), id, 0); return err }, false},
		{"patch that is refused", "Timer", func(w *world, id engine.TimerID) error { return w.reschedule(id, engine.Schedule{}) }, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var slow atomic.Bool
				w.before.set(func(op string, arg any) error {
					if s, settle := arg.(*engine.Settlement); settle && (len(s.Owe) != 1 || s.Owe[0].Origin != engine.FromManual) {
						return nil
					}
					if op != x.op || !slow.Load() {
						return nil
					}
					slow.Store(false)
					time.Sleep(70 * time.Second)
					if x.fail && op == "Apply" {
						return engine.ErrUnavailable
					}
					return nil
				})
				w.start()
				id := w.make(timer("a", delay(5*time.Minute)))
				due := w.now() + (5 * time.Minute).Milliseconds()
				time.Sleep(3*time.Minute - 10*time.Second) // its minute is loaded one to two minutes ahead
				slow.Store(true)
				if err := x.do(w, id); (err != nil) != x.fail {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				w.settle()
				n := 0
				for _, c := range w.of("a") {
					if c.key.Due == due {
						n++
						if c.at != due {
							t.Errorf("called %d ms after its due", c.at-due)
						}
					}
				}
				if n != 1 {
					t.Errorf("its due was called %d times; records: %q", n, w.verdicts(id, due))
				}
			})
		})
	}
}

// An instant that is due at once and read by the migrator in the moment of its
// commit is called once.
func TestCreateWhileTheMigratorLoads(t *testing.T) {
	for _, s := range []engine.Schedule{delay(0), delay(20 * time.Millisecond), every(50 * time.Millisecond)} {
		t.Run(plan.Describe(&s), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.before.set(func(op string, _ any) error {
					if op == "Owed" || op == "OwedIn" || op == "Due" {
						time.Sleep(50 * time.Millisecond)
					}
					return nil
				})
				w.after.set(func(op string, _ any) {
					if op == "Apply" {
						time.Sleep(200 * time.Millisecond)
					}
				})
				w.start()
				w.make(timer("a", s))
				w.settle()
				seen := map[engine.Key]bool{}
				for _, c := range w.of("a") {
					if seen[c.key] {
						t.Fatalf("task %s was called twice", c.key)
					}
					seen[c.key] = true
				}
				if len(seen) == 0 {
					t.Error("it was not called")
				}
			})
		})
	}
}

// A create that repeats an Idempotency-Key of a timer of which no version is kept any more
// is refused: it must not make a second timer.
func TestRepeatOfARemovedTimer(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.FinishedRetention, w.config.HistoryRetention = 10*time.Minute, 10*time.Minute
		w.start()
		d := timer("a", delay(time.Second))
		once := &engine.Once{App: d.App, Key: "k", Expires: w.now() + 24*time.Hour.Milliseconds()}
		if c := w.Create(t.Context(), d, once); c.Err != nil {
			t.Fatal(c.Err)
		}
		time.Sleep(25 * time.Minute)
		if c := w.Create(t.Context(), d, once); code(c.Err) != "timer_removed" {
			t.Errorf("%+v", c)
		}
	})
}

// After the 2xx of a delete, in whatever state the task is, nothing is called, over a crash.
func TestDelete(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, x := range []struct {
		name    string
		replies []reply
		after   time.Duration
		want    change.DeleteResult
		calls   int
		status  []string
	}{
		{"before its due", []reply{ok}, 5 * s, change.DeleteCancelled, 0, nil},
		{"in flight", []reply{slow(3 * s)}, 11 * s, change.DeleteInFlight, 1, []string{"10s succeeded"}},
		{"in flight, then fails", []reply{{class: engine.ClassRetry, code: 500, after: 3 * s}}, 11 * s, change.DeleteInFlight, 1, []string{"10s cancelled deleted"}},
		{"retrying", []reply{fail}, 11 * s, change.DeleteCancelled, 1, []string{"10s cancelled deleted"}},
		{"retrying, owed", []reply{fail}, 30 * s, change.DeleteCancelled, 1, []string{"10s cancelled deleted"}},
		{"far retry", []reply{fail}, 90 * s, change.DeleteCancelled, 1, []string{"10s cancelled deleted"}},
		{"finished", []reply{ok}, 30 * s, change.DeleteFinished, 1, []string{"10s succeeded"}},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(x.name, func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					w.replies("a", x.replies...)
					backoff := time.Minute
					if x.after > time.Minute {
						backoff = 5 * time.Minute
					}
					id := w.make(timer("a", delay(10*s), retry(5, backoff, 1)))
					time.Sleep(x.after)
					got, err := w.Delete(t.Context(), id, 0)
					if err != nil || got != x.want {
						t.Errorf("%q, %v; want %q", got, err, x.want)
					}
					if crash {
						if x.want == change.DeleteInFlight {
							time.Sleep(10 * s)
						}
						w.crash(s)
					}
					time.Sleep(10*s + backoff)
					if n := len(w.of("a")); n != x.calls {
						t.Errorf("%d calls, want %d", n, x.calls)
					}
					equal(t, "verdicts", w.verdicts(id, from), x.status)
				})
			})
		}
	}
}

// A PATCH of the callback keeps dues and what is under way; one of the schedule
// cancels what has not been called.
func TestPatch(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.replies("a", fail, ok)
		id := w.make(timer("a", every(10*time.Second), retry(3, 15*time.Second, 1)))
		time.Sleep(12 * time.Second)
		v, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Callback.URL = "http://127.0.0.1:1/new"
			return d, nil
		})
		if err != nil || v.Version != 2 || v.Generation != 1 {
			t.Fatalf("%+v, %v", v.Timer, err)
		}
		time.Sleep(20 * time.Second)
		cs := w.of("a")
		if len(cs) != 4 || cs[2].key.Due != from+10_000 || cs[2].attempt != 2 || cs[2].url != "http://127.0.0.1:1/new" {
			t.Errorf("calls: %+v", cs)
		}
		w.replies("a", fail, ok)
		time.Sleep(10 * time.Second) // 40 s: fails, to be tried again at 55 s
		if err := w.reschedule(id, every(7*time.Second)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		w.crash(0)
		w.settle()
		got := w.verdicts(id, from)
		equal(t, "verdicts", got, []string{"10s succeeded", "20s succeeded", "30s succeeded", "40s cancelled replaced", "49s succeeded", "56s succeeded", "1m3s succeeded"})
	})
}

// A key that was begun is not used for another due.
func TestAlreadyFired(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		due := w.now() + 5000
		id := w.make(timer("a", at(due)))
		if err := w.reschedule(id, at(due+5000)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		if err := w.reschedule(id, at(due)); err != nil {
			t.Errorf("an instant that was given up before it came: %v", err)
		}
		w.settle()
		if err := w.reschedule(id, at(due+1)); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if err := w.reschedule(id, at(due)); code(err) != "already_fired" {
			t.Errorf("an instant that was called: %v", err)
		}
		equal(t, "calls", dues(w.of("a")), []int64{due, due + 1})
	})
}

// The record of many dues that were missed is not replaced by that of one.
func TestAlreadyRecorded(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		d := timer("a", every(10*time.Second))
		d.Misfire.Policy = engine.MisfireSkip
		id := w.make(d)
		w.crash(47 * time.Second)
		w.settle()
		before := w.verdicts(id, from)
		if err := w.reschedule(id, at(from+10_000)); code(err) != "already_recorded" {
			t.Errorf("the first of the dues that were missed: %v", err)
		}
		if err := w.reschedule(id, at(from+20_001)); err != nil {
			t.Error(err)
		}
		w.settle()
		equal(t, "verdicts", w.verdicts(id, from), slices.Insert(before, 1, "20.001s succeeded"))
	})
}

// Disable, enable, until and what is caught up.
func TestDisableEnable(t *testing.T) {
	const s = int64(1000)
	for _, x := range []struct {
		name  string
		until int64 // s after the creation
		catch engine.CatchUp
		dues  []int64 // s
	}{
		{"none", 0, engine.CatchUpNone, []int64{10, 20, 60, 70}},
		{"latest", 0, engine.CatchUpLatest, []int64{10, 20, 50, 60, 70}},
		{"all", 0, engine.CatchUpAll, []int64{10, 20, 30, 40, 50, 60, 70}},
		{"until", 45, engine.CatchUpNone, []int64{10, 20, 50, 60, 70}},
		{"enabled before until", 3600, engine.CatchUpAll, []int64{10, 20, 30, 40, 50, 60, 70}},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(x.name, func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					id := w.make(timer("a", every(10*time.Second)))
					time.Sleep(25 * time.Second)
					until := x.until * s
					if until != 0 {
						until += from
					}
					w.disable(id, until)
					if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Disabled || v.Until != until {
						t.Errorf("%v until %d, %v", v.Status, v.Until, err)
					}
					time.Sleep(2 * time.Second)
					if crash {
						w.crash(time.Second)
					} else {
						time.Sleep(time.Second)
					}
					time.Sleep(27 * time.Second) // 55 s
					w.enable(id, x.catch)
					time.Sleep(2 * time.Second)
					if crash {
						w.crash(0)
					}
					time.Sleep(18 * time.Second) // 75 s
					var got []int64
					for _, c := range w.of("a") {
						got = append(got, (c.key.Due-from)/s)
					}
					slices.Sort(got) // what is caught up is called at the same time
					equal(t, "dues", got, x.dues)
				})
			})
		}
	}
}

// What is caught up counts from when the timer was disabled first, whatever
// became of it meanwhile; a new schedule has nothing to catch up from before it.
func TestCatchUpSince(t *testing.T) {
	off := func(until time.Duration) func(w *world, id engine.TimerID) {
		return func(w *world, id engine.TimerID) {
			end := int64(0)
			if until != 0 {
				end = w.starts[0] + until.Milliseconds()
			}
			if _, err := w.Disable(w.t.Context(), id, 0, fmt.Sprint("at ", w.now()), end); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	patch := func(w *world, id engine.TimerID) {
		if _, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Callback.URL += "/changed"
			return d, nil
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	reschedule := func(s engine.Schedule) func(w *world, id engine.TimerID) {
		return func(w *world, id engine.TimerID) {
			if err := w.reschedule(id, s); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	runs := func(n int64, every time.Duration) engine.Schedule {
		return engine.Schedule{Every: every, MaxRuns: n}
	}
	for _, x := range []struct {
		name string
		do   []func(w *world, id engine.TimerID) // at 25 s, 35 s, 45 s
		dues []int64                             // caught up at 55 s
	}{
		{"twice", []func(*world, engine.TimerID){off(0), off(0), patch}, []int64{30, 40, 50}},
		{"until, patched", []func(*world, engine.TimerID){off(time.Hour), patch, patch}, []int64{30, 40, 50}},
		{"until, then for ever", []func(*world, engine.TimerID){off(time.Hour), patch, off(0)}, []int64{30, 40, 50}},
		{"for ever, then until", []func(*world, engine.TimerID){off(0), patch, off(time.Hour)}, []int64{30, 40, 50}},
		{"until, then until", []func(*world, engine.TimerID){off(time.Hour), off(2 * time.Hour), patch}, []int64{30, 40, 50}},
		{"until was over", []func(*world, engine.TimerID){off(32 * time.Second), patch, off(time.Hour)}, []int64{50}},
		{"until, another schedule", []func(*world, engine.TimerID){off(time.Hour), reschedule(every(5 * time.Second)), patch}, []int64{40, 45, 50, 55}},
		{"another schedule", []func(*world, engine.TimerID){off(0), reschedule(every(5 * time.Second)), off(0)}, []int64{40, 45, 50, 55}},
		{"two runs, one was called", []func(*world, engine.TimerID){reschedule(runs(2, 10*time.Second)), off(0), patch}, []int64{40}},
		{"two runs, given meanwhile", []func(*world, engine.TimerID){off(0), reschedule(runs(2, 5*time.Second)), off(0)}, []int64{40, 45}},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.starts[0]
				id := w.make(timer("a", every(10*time.Second)))
				time.Sleep(15 * time.Second)
				for _, do := range x.do {
					time.Sleep(10 * time.Second)
					do(w, id)
				}
				time.Sleep(10*time.Second + 100*time.Millisecond)
				before := len(w.of("a"))
				w.enable(id, engine.CatchUpAll)
				time.Sleep(time.Second)
				var got []int64
				for _, c := range w.of("a")[before:] {
					got = append(got, (c.key.Due-from)/1000)
				}
				slices.Sort(got)
				equal(t, "dues", got, x.dues)
			})
		})
	}
}

// More than a thousand dues cannot be caught up.
func TestCatchUpTooMany(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(100*time.Millisecond)))
		w.disable(id, 0)
		time.Sleep(2 * time.Minute)
		if _, err := w.Enable(t.Context(), id, 0, engine.CatchUpAll); code(err) != "catch_up_too_many" {
			t.Errorf("%v", err)
		}
	})
}

// A run by hand at the very ms of a due that a disabled timer passes over has another
// key: the due is there to be caught up, also by an enable that follows at once, which
// cancels the run if it has not begun.
func TestRunNowBesideACatchUp(t *testing.T) {
	for _, until := range []time.Duration{0, time.Minute} {
		for _, pause := range []time.Duration{0, 100 * time.Millisecond} {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				id := w.make(timer("a", every(10*time.Second), atMostOnce))
				time.Sleep(15 * time.Second)
				if until != 0 {
					w.disable(id, w.now()+until.Milliseconds())
				} else {
					w.disable(id, 0)
				}
				time.Sleep(5 * time.Second)
				k, err := w.RunNow(t.Context(), id, 0)
				if err != nil || k.Due != from+20_001 {
					t.Errorf("due %s, %v", stamp(k.Due), err)
				}
				time.Sleep(pause)
				w.enable(id, engine.CatchUpAll)
				w.settle()
				got := dues(w.of("a"))
				if !slices.Contains(got, from+20_000) {
					t.Errorf("%v until, %v later: the due is not caught up: %v", until, pause, w.verdicts(id, from))
				}
				if r := w.record(k); !r.Status.Final() || pause > 0 && r.Status != engine.Succeeded {
					t.Errorf("the run by hand is %s", r.Status)
				}
				w.once("a")
			})
		}
	}
}

// A task by hand has a key of its own, follows overlap, and is made when the
// timer is disabled, over a crash.
func TestRunNow(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(5*time.Minute), overlap(engine.OverlapSkip)))
		time.Sleep(5*time.Minute - 5*time.Second)
		keys := map[engine.Key]bool{}
		run := func() engine.Key {
			k, err := w.RunNow(t.Context(), id, 0)
			if err != nil || keys[k] {
				t.Fatalf("key %s, %v", k, err)
			}
			keys[k] = true
			return k
		}
		run()
		run()
		due := w.starts[0] + (5 * time.Minute).Milliseconds()
		time.Sleep(time.Duration(due-w.now()) * time.Millisecond) // the due of the plan, at this very ms
		if k := run(); k.Due != due+1 {
			t.Errorf("the key by hand is %d ms from the due, want 1", k.Due-due)
		}
		w.settle()
		w.disable(id, 0)
		w.replies("a", slow(2*time.Second), ok)
		run()
		time.Sleep(time.Second)
		skipped := run()
		w.settle()
		if r := w.record(skipped); r.Status != engine.Skipped || r.Reason != engine.ReasonOverlap || r.Origin != engine.FromManual {
			t.Errorf("a run by hand beside another: %+v", r)
		}
		last := run()
		w.crash(0)
		w.settle()
		if r := w.record(last); r.Status != engine.Succeeded {
			t.Errorf("a run by hand over a crash: %+v", r)
		}
		if len(w.of("a")) < 6 {
			t.Errorf("%d calls", len(w.of("a")))
		}
	})
}

// A commit that takes its time: the watermark does not pass what is being created.
func TestSlowCommitOfACreate(t *testing.T) {
	for _, s := range []engine.Schedule{delay(time.Second), every(4 * time.Second)} {
		t.Run(plan.Describe(&s), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.after.set(func(op string, _ any) {
					if op == "Apply" {
						time.Sleep(15 * time.Second)
					}
				})
				w.start()
				from := w.now()
				w.make(timer("a", s))
				w.settle()
				time.Sleep(500 * time.Millisecond) // no due falls on the instant looked at
				want := []int64{from + 1000}
				if !s.OneShot() {
					want = grid(from, w.now(), 4000, from)
				}
				got := dues(w.of("a"))
				slices.Sort(got)
				equal(t, "calls", got, want)
			})
		})
	}
}

// While a change is being committed no attempt starts; what came due meanwhile
// is cancelled by the commit, and goes on, late, when it fails.
func TestSlowCommitOfAChange(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var slow atomic.Bool
				w.before.set(func(op string, _ any) error {
					if op != "Apply" || !slow.Load() {
						return nil
					}
					time.Sleep(15 * time.Second)
					if fails {
						return engine.ErrUnavailable
					}
					return nil
				})
				w.start()
				from := w.now()
				id := w.make(timer("a", every(4*time.Second)))
				time.Sleep(5 * time.Second)
				slow.Store(true)
				if err := w.reschedule(id, every(time.Hour)); (err != nil) != fails {
					t.Fatal(err)
				}
				w.settle() // 25 s
				got := dues(w.of("a"))
				slices.Sort(got)
				want := grid(from, from+25_000, 4000, from)
				if !fails {
					want = want[:1]
				}
				equal(t, "calls", got, want)
				for _, c := range w.of("a") {
					if c.at > from+5000 && c.at < from+20_000 {
						t.Errorf("an attempt started while the change was being committed")
					}
				}
				if !fails {
					equal(t, "verdicts", w.verdicts(id, from)[:1], []string{"4s succeeded"})
					for _, r := range w.records(id)[1:] {
						if r.Status != engine.Cancelled {
							t.Errorf("%+v", r)
						}
					}
				}
			})
		})
	}
}

// A change comes when dues of the timer lie in the wheel that are past, as after a create that took its time. The
// change has decided about them: none of them is skipped as well while the change is being stored. If the change
// fails, they fire.
func TestChangeOfDuesThatAreStillToFire(t *testing.T) {
	for i := range 40 { // in some of them, the change is there before the wheel has handed over a due
		fails := i%2 == 1
		t.Run(fmt.Sprint(i, ", fails ", fails), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				n := 0
				w.before.set(func(op string, _ any) error {
					if op != "Apply" {
						return nil
					}
					if n++; n > 2 {
						return nil
					}
					time.Sleep(5 * time.Second)
					if n == 2 && fails {
						return engine.ErrConflict
					}
					return nil
				})
				w.rules(inLine)
				w.start()
				from := w.now()
				id := w.make(timer("x", every(250*time.Millisecond), flows("k"), overlap(engine.OverlapSkip)))
				w.behave("x", func(*call) reply { return slow(100 * time.Millisecond) })
				_, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
					d.Schedule = cron("0 0 1 1 *")
					return d, nil
				})
				if (err != nil) != fails {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if _, err := w.Disable(t.Context(), id, 0, "", 0); err != nil {
					t.Fatal(err)
				}
				w.settle()
				has := map[int64]int{}
				for _, r := range w.records(id) {
					for due := r.Key.Due; due <= max(r.Key.Due, r.DueLast); due += 250 {
						has[due]++
					}
				}
				for due := from + 250; due <= from+4_750; due += 250 { // those that came before the change
					if has[due] != 1 {
						t.Errorf("%s has %d records", stamp(due), has[due])
					}
				}
				if fails && len(w.of("x")) == 0 {
					t.Error("nothing was called")
				}
			})
		})
	}
}

// Dues come while a change is being stored. They are the next definition's, which calls them: the overlap of the
// former one ends none.
func TestDuesThatComeWhileAChangeIsStored(t *testing.T) {
	for _, former := range []engine.Overlap{engine.OverlapSkip, engine.OverlapQueue, engine.OverlapAllow} {
		t.Run(former.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.rules(inLine)
				w.start()
				id := w.make(timer("x", cron("* * * * * *"), flows("k"), overlap(former)))
				time.Sleep(4*time.Second + 300*time.Millisecond)
				w.slowly("Apply", 5*time.Second)
				from := w.now()
				_, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
					d.Schedule, d.Overlap = cron("*/2 * * * * *"), engine.OverlapAllow
					return d, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				w.slowly("Apply", 0)
				time.Sleep(10 * time.Second)
				for due := from - from%2000 + 2000; due < w.now()-1000; due += 2000 {
					if n := len(w.callsOf("x", due)); n != 1 {
						t.Errorf("the due %s was called %d times", stamp(due), n)
					}
				}
				w.settle()
			})
		})
	}
}
