package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/quota"
)

// A rate holds whatever keeps calls between the queue and their first bytes for 3 s: the journal, the store of
// the bodies, the dial, or the gathering of a batch. All are then ready in the same millisecond.
func TestARateHoldsAfterSlowPreparation(t *testing.T) {
	limit := func(w *world) { w.rules(map[flow.Name]flow.Rule{keyK: perSecond(10)}) }
	for how, x := range map[string]struct {
		before func(*world)
		after  func(*world)
		timer  func(w *world, name string) []func(*engine.Definition)
		slow   func(w *world, names []string, from, to int64)
	}{
		"sync": {before: limit, timer: onceOnly, slow: slowDisk},
		"body": {before: limit, timer: ofBody, slow: slowStore},
		"dial": {before: limit, timer: plain, slow: slowDials},
		"burst": {
			before: func(w *world) {
				w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 5}}})
			},
			timer: plain, slow: slowDials,
		},
		"quota": {
			before: func(*world) {}, after: func(w *world) { w.limitApp(quota.Limits{FiresPerSecond: 10}) },
			timer: func(*world, string) []func(*engine.Definition) { return nil }, slow: slowDials,
		},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				x.before(w)
				w.config.Bodies = 2 << 20
				w.start()
				if x.after != nil {
					x.after(w)
				}
				due := w.now() + 5_000
				var names []string
				for i := range 150 {
					names = append(names, fmt.Sprint(i))
					w.make(timer(names[i], at(due), x.timer(w, names[i])...))
				}
				x.slow(w, names, due+5_000, due+8_000)
				time.Sleep(18 * time.Second)
				if s, _, ok := w.Gate(keyK); ok && s.InFlight > 6 {
					t.Errorf("%d calls have places 5 s after all was quick again", s.InFlight)
				}
				time.Sleep(42 * time.Second)
				if n, longest := w.keepsRate(names, 10); n != 150 || longest < 2_000 {
					t.Errorf("%d calls, and none for %d ms", n, longest)
				}
				w.settle()
			})
		})
	}
}

func plain(*world, string) []func(*engine.Definition) {
	return []func(*engine.Definition){flows("k")}
}

func onceOnly(*world, string) []func(*engine.Definition) {
	return []func(*engine.Definition){flows("k"), atMostOnce}
}

func ofBody(_ *world, name string) []func(*engine.Definition) {
	return []func(*engine.Definition){flows("k"), heavy(name, 40_000)}
}

func slowDisk(w *world, _ []string, from, to int64) {
	time.AfterFunc(time.Duration(from-w.now())*time.Millisecond, func() {
		for now := w.now(); now < to; now = w.now() {
			w.journal.tune(0, time.Duration(to-now)*time.Millisecond)
			time.Sleep(50 * time.Millisecond)
		}
		w.journal.tune(0, 0)
	})
}

func slowStore(w *world, _ []string, from, to int64) {
	w.before.set(func(op string, _ any) error {
		if now := w.now(); op == "Timer" && now >= from && now < to {
			time.Sleep(time.Duration(to-now) * time.Millisecond)
		}
		return nil
	})
}

func slowDials(w *world, names []string, from, to int64) {
	for _, name := range names {
		w.behave(name, func(*call) reply {
			if now := w.now(); now >= from && now < to {
				return reply{dial: time.Duration(to-now) * time.Millisecond}
			}
			return ok
		})
	}
}

// A call of a batch counts once, whatever its tasks, and goes back with all of them where it came too late.
func TestARateOfBatchesHoldsAfterSlowPreparation(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(2)})
		due := w.now() + 10_000
		posted := w.posts(postbox{drop: func() {
			if now := w.now(); now >= due+4_000 && now < due+9_000 {
				time.Sleep(time.Duration(due+9_000-now) * time.Millisecond)
			}
		}})
		w.start()
		for i := range 400 {
			w.make(timer(fmt.Sprint(i), at(due), batches(10, 0), flows("k")))
		}
		time.Sleep(2 * time.Minute)
		w.settle()
		calls, tasks := posted(), 0
		for i, c := range calls {
			tasks += len(c.keys)
			if i >= 2 && c.at-calls[i-2].at < 1000 {
				t.Errorf("3 calls within %d ms, from %s on", c.at-calls[i-2].at, stamp(calls[i-2].at))
			}
		}
		if tasks != 400 || len(calls) != 40 {
			t.Errorf("%d tasks in %d calls", tasks, len(calls))
		}
		if last := calls[len(calls)-1].at - due; last > 26_000 {
			t.Errorf("the last call %d ms after the due", last)
		}
	})
}

// A call that was not wanted any more when it was ready does not count: the next one does not wait a minute for it.
func TestACallThatDoesNotLeaveDoesNotCount(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: time.Minute, Burst: 1}}})
		w.start()
		due := w.now() + 70_000
		w.behave("a", func(*call) reply { return reply{dial: 2 * time.Second} })
		a := w.make(timer("a", at(due), flows("k")))
		w.make(timer("b", at(due+1), flows("k")))
		time.Sleep(71 * time.Second)
		if _, err := w.Delete(t.Context(), a, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		w.settle()
		if len(w.of("a")) != 0 || len(w.of("b")) != 1 {
			t.Fatalf("%d and %d calls", len(w.of("a")), len(w.of("b")))
		}
		if late := w.of("b")[0].at - due; late > 3_000 {
			t.Errorf("the call was %d ms late", late)
		}
	})
}

// A limit counts calls that were handed out before it was put, and are still being dialed.
func TestALimitIsPutWhileCallsAreDialed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		due := w.now() + 5_000
		names := w.makeAll(40, due, flows("k"))
		slowDials(w, names, due-1, due+3_000)
		time.Sleep(6 * time.Second)
		limit := perSecond(10)
		w.SetRule(keyK, &limit)
		time.Sleep(60 * time.Second)
		if n, _ := w.keepsRate(names, 10); n != 40 {
			t.Errorf("%d calls", n)
		}
		w.settle()
	})
}

// Calls that waited too long for the one of their keys, a limit put meanwhile, go back to their lanes: the other key
// is not closed by them.
func TestCallsThatGoBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		y := flow.Name{Kind: flow.OfFlow, App: "app", Key: "y"}
		w.rules(map[flow.Name]flow.Rule{y: {Limit: &flow.Limit{Rate: 100, Per: time.Minute, Burst: 100}}})
		w.start()
		due := w.now() + 70_000 // a minute after the start y may be called
		names, later := w.makeAll(30, due, flows("k", "y")), []string{}
		for i := range 60 {
			later = append(later, fmt.Sprint("later-", i))
			w.make(timer(later[i], at(due+3_000), flows("k", "y")))
		}
		slowDials(w, names, due-1, due+5_000)
		time.Sleep(72 * time.Second)
		w.SetRule(keyK, &flow.Rule{Limit: &flow.Limit{Rate: 1, Per: time.Second, Burst: 1}})
		time.Sleep(2 * time.Minute)
		w.settle()
		first, last := sentOf(w, names), sentOf(w, later)
		if len(first) != 30 || len(last) != 60 {
			t.Fatalf("%d and %d calls", len(first), len(last))
		}
		if took := max(first[29], last[59]) - min(first[0], last[0]); took > 92_000 {
			t.Errorf("90 calls of a key with one a second took %d ms", took)
		}
	})
}

// A task that takes long to prepare has its turn at a key that others use up.
func TestASlowPreparationIsNotOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(2)})
		w.start()
		due := w.now() + 5_000
		for i := range 400 {
			w.make(timer(fmt.Sprint("quick-", i), at(due+int64(i)*490), flows("k")))
		}
		dials := 0
		w.behave("slow", func(*call) reply { dials++; return reply{dial: 700 * time.Millisecond} })
		w.make(timer("slow", at(due+10_000), flows("k"), func(d *engine.Definition) { d.Priority = 9 }))
		time.Sleep(220 * time.Second)
		w.settle()
		if cs := w.of("slow"); len(cs) != 1 || cs[0].at-due > 12_000 || dials != 1 {
			t.Errorf("%d calls, after %d dials", len(cs), dials)
		}
	})
}

// refuser refuses each call at once, after its wait for a limit that is put when it is ready.
type refuser struct {
	engine.Caller
	w *world
}

func (r *refuser) Call(c *engine.Call) engine.Outcome {
	limit := perSecond(2)
	r.w.SetRule(keyK, &limit)
	c.Send(func() bool { return true })
	return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "reset", Sent: time.Now(), Took: time.Millisecond}
}

// A call that waited for its departure and was then refused at once is no timeout of its target.
func TestARefusalAfterTheWaitIsNoTimeout(t *testing.T) {
	for how, opts := range map[string][]func(*engine.Definition){"alone": {flows("k")}, "batch": {batches(2, 0), flows("k")}} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.caller = func(c engine.Caller) engine.Caller { return &refuser{c, w} }
				w.start()
				due := w.now() + 5_000
				w.makeAll(12, due, opts...)
				time.Sleep(8500 * time.Millisecond)
				for _, s := range w.LimitedTargets() {
					t.Errorf("a target is limited: %+v", s)
				}
			})
		})
	}
}

// A call that waited for its departure until its task is stale is not made.
func TestNoCallIsStaleAfterItsWait(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		due := w.now() + 5_000
		names := w.makeAll(10, due, flows("k"), staleAfter(3*time.Second))
		slowDials(w, names, due-1, due+1_000)
		time.Sleep(5500 * time.Millisecond)
		limit := perSecond(1)
		w.SetRule(keyK, &limit)
		time.Sleep(time.Minute)
		w.settle()
		sent := sentOf(w, names)
		if len(sent) == 0 || len(sent) > 4 {
			t.Fatalf("%d calls", len(sent))
		}
		if late := sent[len(sent)-1] - due; late > 3_000 {
			t.Errorf("a call went %d ms after its due", late)
		}
	})
}
