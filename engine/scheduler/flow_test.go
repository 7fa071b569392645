package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
	"xtimer/engine/scheduler"
)

var (
	keyK   = flow.Name{Kind: flow.OfFlow, App: "app", Key: "k"}
	appApp = flow.Name{Kind: flow.OfApp, App: "app"}
	pause  = flow.Rule{Paused: flow.Never}
)

func flows(keys ...string) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Flow = engine.FlowOf(keys) }
}

// rules has each life of the world begin with rules.
func (w *world) rules(rules map[flow.Name]flow.Rule) {
	w.tune = func(e *scheduler.Scheduler) {
		for n, r := range rules {
			r.Started = true
			e.SetRule(n, &r)
		}
	}
}

// gated is how many tasks of a lane with gates may be in memory in tests with more of them.
const gated = 2000

// boundGated has the engine of each life keep to that.
func (w *world) boundGated() {
	tune := w.tune
	w.tune = func(e *scheduler.Scheduler) {
		tune(e)
		e.BoundGated(gated)
	}
}

func perSecond(n int) flow.Rule {
	return flow.Rule{Limit: &flow.Limit{Rate: n, Per: time.Second, Burst: 1}}
}

// makeAll makes so many timers that are due at an instant. Their names are numbers.
func (w *world) makeAll(n int, due int64, opts ...func(*engine.Definition)) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(i))
		w.make(timer(names[i], at(due), opts...))
	}
	return names
}

// keepsRate fails the test if more than so many calls of timers began within a second. It returns how many began, and
// for how long none did.
func (w *world) keepsRate(names []string, rate int) (n int, longest int64) {
	w.t.Helper()
	sent := sentOf(w, names)
	for i := rate; i < len(sent); i++ {
		longest = max(longest, sent[i]-sent[i-1])
		if sent[i]-sent[i-rate] < 1000 {
			w.t.Fatalf("%d calls within %d ms, from %s on", rate+1, sent[i]-sent[i-rate], stamp(sent[i-rate]))
		}
	}
	return len(sent), longest
}

// sentOf are the first bytes of the calls of timers, in order.
func sentOf(w *world, names []string) (sent []int64) {
	for _, name := range names {
		for _, c := range w.of(name) {
			sent = append(sent, c.at)
		}
	}
	slices.Sort(sent)
	return sent
}

// A rate holds as well after a time in which no call began: the results could not be stored, or
// the process did not know whether the timers are its own.
func TestARateHoldsAfterAStall(t *testing.T) {
	for how, stalls := range map[string]func(w *world) *atomic.Bool{
		"results": func(w *world) *atomic.Bool {
			limit := w.tune
			w.tune = func(e *scheduler.Scheduler) { limit(e); e.BoundUnsettled(20, 1<<40) }
			return w.outage("Settle")
		},
		"ownership": func(w *world) *atomic.Bool {
			paused, _ := w.pausable()
			return paused
		},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.rules(map[flow.Name]flow.Rule{keyK: perSecond(10)})
				stalled := stalls(w)
				w.start()
				names := w.makeAll(300, w.now()+5_000, flows("k"))
				time.Sleep(10 * time.Second)
				stalled.Store(true)
				time.Sleep(20 * time.Second)
				stalled.Store(false)
				time.Sleep(30 * time.Second)
				if n, longest := w.keepsRate(names, 10); n != 300 || longest < 10_000 {
					t.Errorf("%d calls, and none for %d ms", n, longest)
				}
				w.settle()
			})
		})
	}
}

// A task that is deleted while its call waits until calls may begin does not wait any more.
func TestADeletedTaskIsNotQueuedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(10)})
		paused, _ := w.pausable()
		w.start()
		paused.Store(true)
		id := w.make(timer("a", delay(5*time.Second), flows("k")))
		time.Sleep(10 * time.Second)
		w.SetRule(keyK, &pause)
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		paused.Store(false)
		time.Sleep(10 * time.Second)
		if s, _, ok := w.Gate(keyK); !ok || s.Waiting != 0 || len(w.of("a")) != 0 {
			t.Errorf("%d tasks wait, and %d calls were made", s.Waiting, len(w.of("a")))
		}
	})
}

// All calls of a key keep its rate, retries and those after a crash included, and what
// held a task is in its record.
func TestARateHoldsAcrossRetriesAndCrashes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(10)})
		w.start()
		due := w.now() + 5_000
		for i := range 100 {
			name := fmt.Sprint(i)
			if i%5 == 0 {
				w.replies(name, fail, ok)
			}
			w.make(timer(name, at(due), flows("k"), retry(3, 300*time.Millisecond, 1)))
		}
		id := w.make(timer("free", at(due)))
		time.Sleep(10 * time.Second)
		w.crash(3 * time.Second)
		time.Sleep(20 * time.Second)
		w.settle()
		var at []int64
		for i := range 100 {
			for _, c := range w.of(fmt.Sprint(i)) {
				at = append(at, c.at)
			}
		}
		slices.Sort(at)
		if len(at) < 120 {
			t.Errorf("%d calls", len(at))
		}
		for i := 10; i < len(at); i++ {
			if at[i]-at[i-10] < 1000 {
				t.Fatalf("11 calls within %d ms, from %s on", at[i]-at[i-10], stamp(at[i-10]))
			}
		}
		if late := w.record(engine.Key{Timer: id, Due: due}).Lateness; late > time.Millisecond {
			t.Errorf("a timer without a key was %v late", late)
		}
	})
}

// The rate of a key also holds across crashes if it is for longer than a start waits.
func TestASlowRateHoldsAcrossCrashes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 10, Per: 10 * time.Minute, Burst: 10}}})
		w.start()
		due := w.now() + 5_000
		for i := range 25 {
			w.make(timer(fmt.Sprint(i), at(due), flows("k")))
		}
		for range 5 {
			time.Sleep(5 * time.Minute)
			w.crash(3 * time.Second)
		}
		time.Sleep(time.Minute)
		w.settle()
		var at []int64
		for i := range 25 {
			for _, c := range w.of(fmt.Sprint(i)) {
				at = append(at, c.at)
			}
		}
		slices.Sort(at)
		if len(at) != 25 {
			t.Errorf("%d calls, want 25", len(at))
		}
		for i := 10; i < len(at); i++ {
			if at[i]-at[i-10] < 600_000 {
				t.Fatalf("11 calls within %d ms, from %s on", at[i]-at[i-10], stamp(at[i-10]))
			}
		}
	})
}

// A limit that is written again after a start, as a pause and its end do, is as old as it was: a
// key that nobody has named since waits for what the former process may have called.
func TestALimitThatIsWrittenAgainIsNotNew(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		limit := flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}
		w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &limit}})
		w.start()
		time.Sleep(20 * time.Second) // else the first start holds the key
		from := w.now()
		w.make(timer("before", at(from+1000), flows("k")))
		time.Sleep(1100 * time.Millisecond)
		w.crash(100 * time.Millisecond)
		for _, paused := range []time.Duration{flow.Never, 0} {
			again := limit
			w.SetRule(keyK, &flow.Rule{Limit: &again, Paused: paused})
		}
		w.make(timer("after", at(w.now()+500), flows("k")))
		time.Sleep(time.Minute)
		w.settle()
		a, b := w.of("before"), w.of("after")
		if len(a) != 1 || len(b) != 1 || b[0].at-a[0].at < 10_000 {
			t.Errorf("called %+v, then %+v", a, b)
		}
	})
}

func TestARecordSaysWhatHeldTheTask(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.SetRule(keyK, new(perSecond(1)))
		due := w.now() + 5_000
		var ids []engine.TimerID
		for i := range 4 {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due), flows("k"))))
		}
		time.Sleep(5500 * time.Millisecond)
		if now, _ := w.Task(t.Context(), engine.Key{Timer: ids[3], Due: due}); now == nil || now.Reason != "flow k" || now.Held().Round(time.Millisecond) != 500*time.Millisecond || now.NotBefore < due+999 {
			t.Errorf("while it is held: %+v", now)
		}
		time.Sleep(6500 * time.Millisecond)
		var held []time.Duration
		for _, id := range ids {
			r := w.record(engine.Key{Timer: id, Due: due})
			if own := r.OwnLateness(); own > time.Millisecond || r.Lateness < r.Held() {
				t.Errorf("its own lateness is %v of %v, held for %v", own, r.Lateness, r.Held())
			}
			if p := r.Attempts[0].Phases; p.Queue > time.Millisecond || p.Hold != r.Held() {
				t.Errorf("%+v", p)
			}
			for _, h := range r.Holds {
				if h.By != "flow" || h.Name != "k" {
					t.Errorf("%+v", h)
				}
			}
			held = append(held, r.Held().Round(time.Second))
		}
		if slices.Sort(held); !slices.Equal(held, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}) {
			t.Errorf("held for %v", held)
		}
		if n := w.metric(`xtimer_hold_seconds_count{by="flow"}`); n != 3 {
			t.Errorf("%v holds are counted", n)
		}
	})
}

// A row that was held is no misfire: its due is late by somebody's will.
func TestWhatIsHeldIsNoMisfire(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{appApp: pause})
		w.start()
		from := w.now()
		w.make(timer("cron", every(20*time.Second), misfire(engine.MisfireSkip, time.Hour)))
		shot := w.make(timer("shot", at(from+10_000), misfire(engine.MisfireSkip, time.Minute)))
		time.Sleep(3 * time.Minute)
		if n := len(w.of("cron")) + len(w.of("shot")); n != 0 {
			t.Fatalf("%d calls of an app that is paused", n)
		}
		w.crash(5 * time.Minute)
		time.Sleep(30 * time.Second)
		w.SetRule(appApp, nil)
		time.Sleep(30 * time.Second)
		w.settle()
		called := dues(w.of("cron"))
		for due := from + 20_000; due <= from+160_000; due += 20_000 {
			if !slices.Contains(called, due) {
				t.Errorf("due %s was not called", stamp(due))
			}
		}
		if slices.Contains(called, from+300_000) {
			t.Error("a due of the outage was called, under misfire skip")
		}
		r := w.record(engine.Key{Timer: shot, Due: from + 10_000})
		if r == nil || r.Status != engine.Succeeded {
			t.Fatalf("the one-shot: %+v", r)
		}
		// Without the time of the outage it was held for about 170 s and 30 s.
		if h := r.Held(); h < 180*time.Second || h > 215*time.Second || r.Holds[0].By != "pause" {
			t.Errorf("held for %v: %+v", h, r.Holds)
		}
	})
}

// A timer has fallen behind by the rate of its key. What was due before a stop or a crash is called,
// also if there are two of them; what was due without a process is judged by the misfire policy.
func TestAnOutageOfATimerBehindItsRate(t *testing.T) {
	for _, crash := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			w.config.MaxWaiting = 20
			w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}}})
			w.start()
			from := w.now()
			w.make(timer("behind", cron("* * * * * *"), flows("k"), misfire(engine.MisfireSkip, time.Hour)))
			time.Sleep(100*time.Second + 500*time.Millisecond)
			down := w.now()
			end := func(away time.Duration) {
				if crash {
					w.crash(away)
					return
				}
				if err := w.stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(away)
				w.start()
			}
			end(60 * time.Second)
			up := w.now()
			time.Sleep(5 * time.Second)
			end(40 * time.Second)
			w.SetRule(keyK, nil)
			time.Sleep(20 * time.Second)
			w.settle()
			called := dues(w.of("behind"))
			for _, due := range grid(from, up-11_000, 1000, 0) {
				if is := slices.Contains(called, due); is != (due < down) && (due < down-2000 || due > down) {
					t.Errorf("crash %v: due %s, %d ms after the end, is called: %v", crash, stamp(due), due-down, is)
				}
			}
		})
	}
}

// A held task is busy: what comes due meanwhile does not pile up behind it.
func TestAHeldTaskIsBusy(t *testing.T) {
	for _, o := range []engine.Overlap{engine.OverlapSkip, engine.OverlapQueue} {
		t.Run(o.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				w.SetRule(appApp, &pause)
				id := w.make(timer("cron", every(time.Second), overlap(o)))
				time.Sleep(10500 * time.Millisecond)
				w.SetRule(appApp, nil)
				time.Sleep(400 * time.Millisecond)
				want := map[engine.Overlap]int{engine.OverlapSkip: 1, engine.OverlapQueue: 10}[o]
				if n := len(w.of("cron")); n != want {
					t.Errorf("%d calls, want %d", n, want)
				}
				w.settle()
				if skipped := slices.DeleteFunc(w.records(id), func(t *engine.Task) bool { return t.Status != engine.Skipped }); o == engine.OverlapSkip && len(skipped) != 9 {
					t.Errorf("%d were skipped", len(skipped))
				}
			})
		})
	}
}

// With a place that is kept until the end, tasks run strictly one after the other, in the
// order of their dues, also across a crash; likewise for a target, where no key is named.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	for of, keys := range map[flow.Name][]string{keyK: {"k"}, {Kind: flow.OfTarget, Key: "http://127.0.0.1:1"}: nil} {
		t.Run(of.Key, func(t *testing.T) { bubble(t, func(t *testing.T, w *world) { oneAfterTheOther(t, w, of, keys) }) })
	}
}

func oneAfterTheOther(t *testing.T, w *world, of flow.Name, keys []string) {
	w.rules(map[flow.Name]flow.Rule{of: {Limit: &flow.Limit{Concurrency: 1, HoldTask: true}}})
	w.start()
	due := w.now() + 2_000
	for i := range 6 {
		name := fmt.Sprint(i)
		w.make(timer(name, at(due+int64(i)*100), flows(keys...), retry(4, 150*time.Second, 1)))
		w.replies(name, fail, reply{after: 500 * time.Millisecond})
	}
	time.Sleep(7 * time.Second)
	w.crash(2 * time.Second)
	time.Sleep(20 * time.Minute)
	w.settle()
	order := w.order()
	if got := slices.Compact(slices.Clone(order)); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("the calls were of %v", order)
	}
}

// order has the name of the timer of each call, as the calls came.
func (w *world) order() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		names = append(names, c.name)
	}
	return names
}

// No limit holds a forced run, before and after a crash; a pause of the app does.
func TestAForcedRunSkipsLimits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		rules := map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Cooldown: true}, Cooldown: flow.Never}}
		w.rules(rules)
		w.start()
		id := w.make(timer("a", every(24*time.Hour), flows("k"), overlap(engine.OverlapAllow), retry(4, 3*time.Minute, 1)))
		w.replies("a", fail, fail, reply{})
		run := func(run func(context.Context, engine.TimerID, uint32) (engine.Key, error)) {
			t.Helper()
			if _, err := run(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		calls := func(want int) {
			t.Helper()
			if n := w.made(); n != want {
				t.Fatalf("%d calls, want %d", n, want)
			}
		}
		run(w.RunNow)
		calls(0)
		run(w.RunForced)
		calls(1)
		rules[appApp] = pause
		w.crash(time.Second)
		time.Sleep(4 * time.Minute)
		calls(1)
		w.SetRule(appApp, nil)
		time.Sleep(time.Second)
		calls(2) // the retry
		time.Sleep(4 * time.Minute)
		calls(3)
		time.Sleep(15 * time.Minute)
		calls(3)
	})
}

// A key that lets little through keeps little in memory: the rest are rows, which come
// back in order.
func TestMuchForASlowKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	bubble(t, func(t *testing.T, w *world) {
		w.boundGated()
		w.start()
		w.SetRule(keyK, new(perSecond(80)))
		due := w.now() + 5_000
		const n = 3600
		for i := range n {
			w.make(timer(fmt.Sprint(i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(15 * time.Second)
		if r := w.Resident(); r > gated+100 {
			t.Errorf("%d tasks are in memory", r)
		}
		time.Sleep(40 * time.Second)
		w.settle()
		if r := w.Resident(); r != 0 || w.made() != n {
			t.Errorf("%d tasks are left, %d calls", r, w.made())
		}
	})
}

// What an object says is in force when its write returns, and after a start.
func TestObjectsAreRules(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		put := func(k engine.ObjectKey, x limit.Object) {
			t.Helper()
			if _, _, err := w.Objects().Put(t.Context(), k, x.Body(), nil); err != nil {
				t.Fatal(err)
			}
		}
		put(limit.FlowKey("app", "user-*"), limit.Object{Limit: &flow.Limit{Rate: 1, Per: 2 * time.Second, Burst: 1}})
		put(limit.AppKey("app"), limit.Object{PausedUntil: engine.MaxDue})
		due := w.now() + 1000
		for i := range 4 {
			w.make(timer(fmt.Sprint(i), at(due), flows(fmt.Sprint("user-", i%2))))
		}
		time.Sleep(30 * time.Second)
		w.crash(time.Second)
		time.Sleep(5 * time.Second)
		if n := w.made(); n != 0 {
			t.Fatalf("%d calls of an app that is paused", n)
		}
		if n := w.metric(`xtimer_held_tasks{by="pause"}`); n != 4 {
			t.Errorf("%v tasks are held", n)
		}
		if err := w.Objects().Delete(t.Context(), limit.AppKey("app"), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := w.made(); n != 2 {
			t.Errorf("%d calls of two keys", n)
		}
		time.Sleep(2 * time.Second)
		if n := w.made(); n != 4 {
			t.Errorf("%d calls at last", n)
		}
	})
}

// made is how many calls the receiver saw.
func (w *world) made() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

// The max_age of a task stands still while a breaker is open, also of one that the rate held when it opened.
func TestMaxAgeStandsStillWhileABreakerIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		limit := perSecond(10)
		limit.Limit.Breaker = flow.Breaker{Share: 1, Of: 3, Within: time.Minute, Open: time.Minute, MaxOpen: time.Hour}
		w.rules(map[flow.Name]flow.Rule{keyK: limit})
		w.start()
		var heals atomic.Bool
		var ids []engine.TimerID
		for i := range 60 {
			name := fmt.Sprint(i)
			w.behave(name, func(*call) reply {
				if heals.Load() {
					return ok
				}
				return fail
			})
			ids = append(ids, w.make(timer(name, at(w.now()+1000), flows("k"), func(d *engine.Definition) {
				d.Callback.URL, d.Retry.MaxAge = fmt.Sprintf("http://127.0.0.1:%d/", 1+i%3), 20*time.Second
			})))
		}
		time.Sleep(30 * time.Second)
		heals.Store(true)
		time.Sleep(time.Minute)
		w.settle()
		for i, id := range ids {
			for _, r := range w.records(id) {
				if r.Status != engine.Succeeded {
					t.Errorf("task %d is %v, %s: %+v", i, r.Status, r.Reason, r.Holds)
				}
			}
		}
	})
}

// A key is paused while calls that were handed out are being prepared: their bodies are read slowly, or a batch waits
// for more tasks. None of them begins during the pause, and all do when it is over.
func TestPauseOfCallsThatAreBeingPrepared(t *testing.T) {
	for _, how := range []string{"bodies", "batch"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				const n = 100
				w.config.Bodies = 2 << 20
				w.posts(postbox{took: 2 * time.Millisecond})
				w.start()
				due := w.now() + 5_000
				for i := range n {
					name := fmt.Sprint(i)
					if how == "bodies" {
						w.make(timer(name, at(due), flows("k"), heavy(name, 40_000)))
					} else {
						w.make(timer(name, at(due+int64(i)*8), flows("k"), batches(2*n, time.Second)))
					}
				}
				slowTo := due + 3_000
				w.before.set(func(op string, _ any) error {
					if op == "Timer" {
						time.Sleep(time.Duration(slowTo-w.now()) * time.Millisecond)
					}
					return nil
				})
				time.Sleep(5*time.Second + 500*time.Millisecond)
				w.SetRule(keyK, &pause)
				calls := func() (calls int) {
					for i := range n {
						calls += len(w.of(fmt.Sprint(i)))
					}
					return calls
				}
				before := calls()
				time.Sleep(20 * time.Second)
				if during := calls() - before; during != 0 || before == n {
					t.Errorf("%d calls before the pause, %d during it", before, during)
				}
				w.SetRule(keyK, nil)
				time.Sleep(20 * time.Second)
				if all := calls(); all != n {
					t.Errorf("%d calls of %d tasks", all, n)
				}
				w.settle()
			})
		})
	}
}
