package scheduler_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

var inLine = map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Concurrency: 1, HoldTask: true}}}

// to has a timer call another target.
func to(port int) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Callback.URL = fmt.Sprintf("http://127.0.0.1:%d/x", port) }
}

// slowly has an access to the cold tier take its time.
func (w *world) slowly(op string, d time.Duration) {
	w.before.set(func(of string, _ any) error {
		if of == op {
			time.Sleep(d)
		}
		return nil
	})
}

// wantInOrder fails unless so many calls were made, in the order of their dues.
func (w *world) wantInOrder(n int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) != n {
		w.t.Errorf("%d calls, want %d", len(w.calls), n)
	}
	latest := int64(0)
	for _, c := range w.calls {
		if c.key.Due < latest {
			w.t.Errorf("%s, due at %s, is called at %s, after the due of %s", c.name, stamp(c.key.Due), stamp(c.at), stamp(latest))
		}
		latest = max(latest, c.key.Due)
	}
}

// After a start, what waits in rows is read slowly: a task of the same key with another target,
// that comes due meanwhile, is called after the older ones. So is one that is requested.
func TestOrderOfRowsAfterAStart(t *testing.T) {
	for name, late := range map[string]func(w *world){
		"due": func(w *world) { w.make(timer("late", delay(time.Second), flows("k"), to(2))) },
		"requested": func(w *world) {
			id := w.make(timer("late", at(w.now()+int64(24*time.Hour/time.Millisecond)), flows("k"), to(1)))
			if _, err := w.RunNow(w.t.Context(), id, 0); err != nil {
				w.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.rules(inLine)
				w.start()
				due := w.now() + 1000
				for i := range 10 {
					w.make(timer(fmt.Sprint(i), at(due+int64(i)*100), flows("k"), to(1)))
				}
				w.slowly("OwedIn", 3*time.Second)
				w.crash(5 * time.Second)
				late(w)
				time.Sleep(time.Minute)
				w.wantInOrder(11)
				w.settle()
			})
		})
	}
}

// Tasks that lie in rows since their lane has no room are called in their order, and those of
// another lane after them; a lane that has room does not go before.
func TestOrderOfASpilledLane(t *testing.T) {
	for _, op := range []string{"OwedIn", "Settle"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 4
				w.rules(inLine)
				w.start()
				first := w.now() + 1000
				for i := range 30 {
					name := fmt.Sprint(i)
					w.replies(name, slow(500*time.Millisecond))
					w.make(timer(name, at(first+int64(i)*20), flows("k"), to(1+i%3/2)))
				}
				time.Sleep(300 * time.Millisecond)
				w.slowly(op, 2*time.Second)
				time.Sleep(3 * time.Minute)
				w.wantInOrder(30)
				w.settle()
			})
		})
	}
}

// Two timers that fall behind are called in the order of the dues of both.
func TestOrderOfTimersThatAreBehind(t *testing.T) {
	for _, port := range []int{1, 2} {
		t.Run(fmt.Sprint(port), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 4
				w.rules(inLine)
				w.start()
				all := overlap(engine.OverlapAllow)
				w.behave("fast", func(*call) reply { return slow(300 * time.Millisecond) })
				w.behave("slow", func(*call) reply { return slow(300 * time.Millisecond) })
				ids := []engine.TimerID{
					w.make(timer("fast", every(250*time.Millisecond), flows("k"), all, to(1))),
					w.make(timer("slow", every(700*time.Millisecond), flows("k"), all, to(port))),
				}
				w.slowly("Settle", 300*time.Millisecond)
				time.Sleep(40 * time.Second)
				for _, id := range ids {
					if _, err := w.Disable(t.Context(), id, 0, "", 0); err != nil {
						t.Error(err)
					}
				}
				w.mu.Lock()
				n := len(w.calls)
				w.mu.Unlock()
				w.wantInOrder(n)
				if n < 100 {
					t.Errorf("only %d calls", n)
				}
				w.settle()
			})
		})
	}
}

// A paused target keeps nobody else of its key waiting, however many tasks of it lie in rows.
func TestAPausedTargetInALine(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 4
		w.rules(inLine)
		w.start()
		target := flow.Name{Kind: flow.OfTarget, Key: flow.TargetOf("http://127.0.0.1:1")}
		w.SetRule(target, &pause)
		due := w.now() + 1000
		for i := range 20 {
			w.make(timer(fmt.Sprint(i), at(due+int64(i)), flows("k"), to(1)))
		}
		w.make(timer("other", at(due+2000), flows("k"), to(2)))
		time.Sleep(10 * time.Second)
		if cs := w.of("other"); len(cs) != 1 || cs[0].at > due+3000 {
			t.Errorf("the other target: %+v", cs)
		}
		w.SetRule(target, nil)
		time.Sleep(10 * time.Second)
		var order []string
		w.mu.Lock()
		for _, c := range w.calls[1:] {
			order = append(order, c.name)
		}
		w.mu.Unlock()
		if len(order) != 20 || !slices.IsSortedFunc(order, func(a, b string) int { return len(a) - len(b) }) {
			t.Errorf("after the pause: %v", order)
		}
		w.settle()
	})
}

// With overlap queue, a due that waits for the one before it of its timer stands in the line, too.
func TestOrderOfQueues(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(inLine)
		w.start()
		for i := range 3 {
			name := fmt.Sprint("queue-", i)
			w.behave(name, func(*call) reply { return slow(400 * time.Millisecond) })
			w.make(timer(name, every(time.Second+time.Duration(i)*10*time.Millisecond), flows("k"), overlap(engine.OverlapQueue), to(1+i)))
		}
		time.Sleep(30 * time.Second)
		w.mu.Lock()
		n := len(w.calls)
		w.mu.Unlock()
		w.wantInOrder(n)
	})
}

// A task keeps its place over a crash also where others were called before the limit was set, and
// wait for their retries: those wait for the place.
func TestAPlaceIsKeptOverACrash(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(inLine)
		w.start()
		w.SetRule(keyK, nil)
		for i := range 5 {
			name := fmt.Sprint("before-", i)
			w.replies(name, fail, ok)
			w.make(timer(name, delay(time.Duration(i)*time.Second), flows("k"), retry(3, 40*time.Second, 1)))
		}
		time.Sleep(10 * time.Second)
		rule := inLine[keyK]
		w.SetRule(keyK, &rule)
		w.replies("holder", fail, ok)
		w.make(timer("holder", delay(0), flows("k"), retry(3, 2*time.Minute, 1)))
		time.Sleep(5 * time.Second)
		w.crash(5 * time.Second)
		time.Sleep(10 * time.Minute)
		ended := w.of("holder")[1].at
		for i := range 5 {
			if cs := w.of(fmt.Sprint("before-", i)); len(cs) != 2 || cs[1].at < ended {
				t.Errorf("%d calls of a task that has no place, the last one at %s; the place is kept until %s", len(cs), stamp(cs[len(cs)-1].at), stamp(ended))
			}
		}
		w.settle()
	})
}

// While a node takes shards over and does not know yet which rows wait there, it makes no call of a key with an
// order; then the tasks that it has taken over go before its own that are due later.
func TestOrderOfATakeover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		for _, x := range ws {
			x.rules(inLine)
			x.start()
		}
		time.Sleep(1300 * time.Millisecond)
		for i, x := range ws {
			x.make(timer(fmt.Sprint("second-", i), every(time.Second), flows("k"), overlap(engine.OverlapAllow), to(1+i)))
		}
		time.Sleep(4 * time.Second)
		var from, until atomic.Int64
		b.before.set(func(op string, _ any) error {
			if op == "Lanes" {
				from.Store(w.now())
				time.Sleep(15 * time.Second)
				until.Store(w.now())
			}
			return nil
		})
		a.kill()
		time.Sleep(45 * time.Second)
		latest, seen := int64(0), map[engine.Key]bool{}
		for _, name := range []string{"second-0", "second-1"} {
			for _, c := range b.of(name) {
				if c.at > from.Load()+20 && c.at < until.Load() {
					t.Errorf("%s, due at %s, is called at %s, before it is known what waits", name, stamp(c.key.Due), stamp(c.at))
				}
			}
		}
		b.mu.Lock()
		for _, c := range b.calls {
			if c.at < until.Load() || seen[c.key] {
				continue
			}
			if seen[c.key] = true; c.key.Due < latest {
				t.Errorf("%s, due at %s, is called at %s, after the due of %s", c.name, stamp(c.key.Due), stamp(c.at), stamp(latest))
			}
			latest = max(latest, c.key.Due)
		}
		b.mu.Unlock()
		if latest < w.now()-2000 || from.Load() == 0 {
			t.Errorf("the last due that was called is of %s; it is %s", stamp(latest), stamp(w.now()))
		}
		b.settle()
	})
}

// A due that comes while its flow key is paused does not go before older ones of its timer, which a
// step of the clock made late, where the overlap is queue.
func TestOrderOfMisfiresThatAreHeld(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{appApp: pause})
		w.start()
		w.make(timer("held", every(1700*time.Millisecond), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(100 * time.Millisecond)
		w.step(time.Minute)
		time.Sleep(20 * time.Second)
		w.SetRule(appApp, nil)
		time.Sleep(20 * time.Second)
		dues, latest := 0, int64(0)
		for _, c := range w.of("held") {
			if c.key.Due < latest {
				t.Errorf("%s is called at %s, after %s", stamp(c.key.Due), stamp(c.at), stamp(latest))
			}
			dues, latest = dues+1, max(latest, c.key.Due)
		}
		if dues < 50 {
			t.Errorf("%d dues were called", dues)
		}
	})
}

// After a crash, the dues of a queue whose target was changed while they waited are called in their order: some have
// rows in the lane of the former target. Refill reads either lane first.
func TestQueueInTwoLanes(t *testing.T) {
	for from := range 2 {
		t.Run(fmt.Sprint(from), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				w.replies("queue", slow(5*time.Minute), ok)
				id := w.make(timer("queue", every(5*time.Second), overlap(engine.OverlapQueue), timeout(10*time.Minute), misfire(engine.MisfireAll, time.Hour), to(1+from)))
				time.Sleep(2 * time.Minute)
				w.retarget(id, 2-from)
				time.Sleep(2 * time.Minute)
				w.config.MaxWaiting = 4
				w.crash(time.Second)
				time.Sleep(5 * time.Second)
				w.wantInOrder(50)
				w.settle()
			})
		})
	}
}

// The dues of a queue whose target is changed while rows of it wait for room are called in their order.
func TestQueueMovesAway(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.replies("queue", slow(5*time.Minute), ok)
		id := w.make(timer("queue", every(5*time.Second), overlap(engine.OverlapQueue), timeout(10*time.Minute), misfire(engine.MisfireAll, time.Hour), to(1)))
		time.Sleep(2 * time.Minute)
		w.config.MaxWaiting = 2
		w.replies("queue", slow(time.Minute), ok)
		w.crash(time.Second)
		time.Sleep(2 * time.Second)
		w.retarget(id, 2)
		time.Sleep(2 * time.Minute)
		w.wantInOrder(49) // 48 dues, the first of them twice
		w.settle()
	})
}

// retarget gives a timer another target.
func (w *world) retarget(id engine.TimerID, port int) {
	w.t.Helper()
	if _, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
		to(port)(&d)
		return d, nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// The rows of a timer that is given another target do not wait for the former one, which is mute.
func TestRowsLeaveAMuteTarget(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		mute := slow(10 * time.Minute)
		w.start()
		w.replies("mute", mute)
		w.replies("mended", mute)
		long := timeout(10 * time.Minute)
		w.make(timer("mute", every(time.Second), long, misfire(engine.MisfireAll, time.Hour), to(1)))
		id := w.make(timer("mended", every(5*time.Second), long, misfire(engine.MisfireAll, time.Hour), to(1)))
		time.Sleep(2 * time.Minute)
		w.config.MaxWaiting, w.config.MaxCalls = 8, 4
		w.crash(time.Second)
		time.Sleep(time.Second)
		before := len(w.of("mended"))
		w.replies("mended", ok)
		w.retarget(id, 2)
		time.Sleep(30 * time.Second)
		if n := len(w.of("mended")) - before; n < 20 { // 6 of them have come due since
			t.Errorf("%d calls in 30 s, want those that waited, too", n)
		}
	})
}

// The dues of a timer that wait in a range do not wait for the former target either, and those of a queue are called
// in their order, before what comes due after the change.
func TestRangeLeavesAMuteTarget(t *testing.T) {
	for _, o := range []engine.Overlap{engine.OverlapQueue, engine.OverlapAllow} {
		t.Run(o.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting, w.config.MaxCalls = 4, 4
				w.start()
				w.replies("mute", slow(10*time.Minute))
				long := timeout(10 * time.Minute)
				w.make(timer("mute", every(time.Second), long, misfire(engine.MisfireAll, time.Hour), to(1)))
				id := w.make(timer("queue", every(5*time.Second), overlap(o), long, misfire(engine.MisfireAll, time.Hour), to(1)))
				time.Sleep(2 * time.Minute)
				w.crash(2 * time.Minute)
				time.Sleep(time.Second)
				before := len(w.of("queue"))
				w.retarget(id, 2)
				time.Sleep(30 * time.Second)
				called := dues(w.of("queue")[before:])
				if len(called) < 48 {
					t.Errorf("%d calls in 30 s, want those that waited, too", len(called))
				}
				if o == engine.OverlapQueue && !slices.IsSorted(called) {
					t.Errorf("the dues of a queue are called in another order: %v", called)
				}
			})
		})
	}
}

// While the wheel is late no call begins: when the clock was set forward, the task with the highest priority is called
// first, although it is due last.
func TestCallsYieldToTheWheel(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls = 1
		w.start()
		from := w.now() + 2000
		for i := range int64(1000) {
			w.make(timer(fmt.Sprint(i), at(from+i), func(d *engine.Definition) { d.Priority = 1 + int(i/999)*8 }))
		}
		time.Sleep(time.Second)
		w.step(5 * time.Second)
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.calls) != 1000 || w.calls[0].name != "999" {
			t.Errorf("%d calls, the first of %s", len(w.calls), w.calls[0].name)
		}
	})
}

// The clock is set back, and a limit of a key is set: a task that was called before has no place there. After a crash the task
// that was called since has it, though that call began earlier by the clock.
func TestPlaceOfATaskAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		again := retry(4, 30*time.Second, 1)
		w.replies("before", fail, reply{})
		w.make(timer("before", delay(time.Second), flows("k"), again))
		time.Sleep(3 * time.Second)
		w.step(-20 * time.Minute)
		time.Sleep(time.Second)
		w.rules(inLine)
		w.SetRule(keyK, &flow.Rule{Limit: inLine[keyK].Limit})
		w.replies("holder", fail, reply{})
		w.make(timer("holder", delay(time.Second), flows("k"), again))
		time.Sleep(3 * time.Second)
		w.make(timer("next", delay(time.Second), flows("k")))
		time.Sleep(3 * time.Second)
		w.crash(time.Second)
		time.Sleep(30 * time.Minute)
		w.settle()
		order := w.order()
		if len(order) != 5 || !slices.Equal(order[:3], []string{"before", "holder", "holder"}) {
			t.Errorf("the calls were of %v", order)
		}
	})
}
