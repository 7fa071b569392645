package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
	"xtimer/engine/scheduler"
)

// crowdedBy makes timers of a target that does not answer, in a world with room for 20 tasks.
func (w *world) crowdedBy(timers int, opts ...func(*engine.Definition)) (ids []engine.TimerID, answer func()) {
	w.config.MaxWaiting = 20
	w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
	w.start()
	var answers atomic.Bool
	for i := range timers {
		name := fmt.Sprint("mute", i)
		w.behave(name, func(*call) reply {
			if answers.Load() {
				return ok
			}
			return slow(15 * time.Second)
		})
		ids = append(ids, w.make(timer(name, every(500*time.Millisecond), opts...)))
	}
	return ids, func() { answers.Store(true) }
}

// rows are those in owed.
func (w *world) rows() (n int) {
	err := w.cold.Owed(w.t.Context(), engine.AllShards, -1, engine.MaxDue, func(os []engine.Owed) error {
		n += len(os)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// The dues of a timer that is behind cost nothing, however many come: no task, no row. All
// are called once the target answers, and then the timer is on time again. So it is
// after a crash, and with a cold tier that was away.
func TestTimerThatIsBehind(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"all along", "crash", "outage", "step back"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				away := w.outage("Settle")
				from := w.now()
				ids, answer := w.crowdedBy(10, misfire(engine.MisfireAll, time.Hour))
				time.Sleep(time.Minute)
				switch what {
				case "crash":
					w.crash(time.Second)
				case "outage":
					away.Store(true)
					time.Sleep(time.Minute)
					away.Store(false)
				case "step back":
					w.step(-time.Minute)
				}
				time.Sleep(90 * time.Second)
				if n := w.Resident(); n > 100 {
					t.Errorf("%d tasks are in memory, where 20 may wait", n)
				}
				if n := w.rows(); n > 200 {
					t.Errorf("%d rows, for 10 timers", n)
				}
				answer()
				time.Sleep(time.Minute)
				for i, id := range ids {
					cs := w.of(fmt.Sprint("mute", i))
					if c := cs[len(cs)-1]; c.at-c.key.Due > 20 {
						t.Errorf("timer %d is called %d ms late, long after the backlog", i, c.at-c.key.Due)
					}
					w.stopAccounted(id, from, 500)
				}
			})
		})
	}
}

// What of the dues of a timer that is behind is too old to be called is one record a
// gap, not one a due.
func TestStaleDuesOfATimerThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		from := w.now()
		ids, answer := w.crowdedBy(10, staleAfter(time.Minute))
		time.Sleep(10 * time.Minute)
		answer()
		time.Sleep(2 * time.Minute)
		for _, id := range ids {
			w.disable(id, 0)
			to := w.now()
			w.settle()
			if n := len(w.records(id)); n > 800 { // of 2,640 dues; those of 3 minutes are called
				t.Errorf("%d records", n)
			}
			w.accounted(id, from, to, 500)
		}
	})
}

// A timer that is behind can be deleted and disabled, and its dues that were not called
// are recorded as cancelled.
func TestChangeOfATimerThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		from := w.now()
		ids, answer := w.crowdedBy(10)
		time.Sleep(time.Minute)
		for i, id := range ids {
			switch i % 3 {
			case 0:
				if _, err := w.Delete(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
			case 1:
				w.disable(id, 0)
			case 2:
				if err := w.reschedule(id, engine.Schedule{Every: time.Second}); err != nil {
					t.Fatal(err)
				}
			}
		}
		changed := w.now()
		time.Sleep(time.Minute)
		answer()
		time.Sleep(time.Minute)
		for i, id := range ids {
			for _, c := range w.of(fmt.Sprint("mute", i)) {
				if i%3 < 2 && c.at > changed {
					t.Errorf("timer %d was called after it was changed", i)
				}
			}
			if i%3 == 0 {
				w.accounted(id, from, changed-500, 500)
			}
		}
	})
}

// A timer that is behind gets one due, at the first instant of those that were not called. What becomes of the others is
// recorded beside the task of that due: verify proves it.
func TestTimerThatIsBehindGetsAPastDue(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ids, answer := w.crowdedBy(10)
		time.Sleep(time.Minute)
		past := map[engine.TimerID]int64{}
		for _, id := range ids {
			rows, err := w.cold.OwedPage(t.Context(), id, -1, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range rows {
				if o.To != 0 {
					past[id] = o.NotBefore
				}
			}
			if past[id] == 0 {
				continue
			}
			if err := w.reschedule(id, engine.Schedule{At: past[id]}); err != nil {
				t.Fatal(err)
			}
		}
		answer()
		time.Sleep(time.Minute)
		w.settle()
		if len(past) == 0 {
			t.Fatal("no timer is behind: the test tests nothing")
		}
		for id, due := range past {
			if rs := w.records(id); !slices.ContainsFunc(rs, func(r *engine.Task) bool { return r.Key.Due == due && r.Status == engine.Succeeded }) {
				t.Errorf("%s was not called: %v", stamp(due), w.verdicts(id, due))
			}
		}
	})
}

// A forward step of the clock is judged by the misfire policy for a timer that is behind as for any other. What has
// waited for its target before is called late.
func TestStepForwardOfATimerThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		from := w.now()
		ids, answer := w.crowdedBy(10, misfire(engine.MisfireSkip, 24*time.Hour))
		time.Sleep(time.Minute)
		was := w.now()
		w.step(2 * time.Hour)
		stepped := w.now()
		time.Sleep(10 * time.Second)
		answer()
		time.Sleep(time.Minute)
		for i, id := range ids {
			waited := 0
			for _, due := range dues(w.of(fmt.Sprint("mute", i))) {
				switch {
				case due <= was:
					waited++
				case due < stepped-10_000:
					t.Errorf("timer %d was called for %s, which the step skipped", i, stamp(due))
				}
			}
			if waited < 110 { // of 120
				t.Errorf("timer %d: %d dues were called that had waited", i, waited)
			}
			w.stopAccounted(id, from, 500)
		}
	})
}

// A timer has fallen behind by the rate of its key, or by a pause, when the clock is set forward, twice. What was held
// before is called. What a step made late is judged by the misfire policy, unless a pause is in force; also where the
// process ends before the lane goes on, however long after the step, or before the cold tier is back.
func TestStepForwardOfATimerBehindItsRate(t *testing.T) {
	ends := map[string]func(w *world){
		"goes on":        func(*world) { time.Sleep(20 * time.Second) },
		"crash":          func(w *world) { time.Sleep(2 * time.Second); w.crash(0) },
		"crash at once":  func(w *world) { time.Sleep(200 * time.Millisecond); w.crash(0) },
		"crash later":    func(w *world) { time.Sleep(2 * time.Minute); w.crash(0) },
		"crash, no tier": func(w *world) { off := w.outage("Settle"); time.Sleep(30 * time.Second); w.crash(0); off.Store(false) },
		"stop": func(w *world) {
			time.Sleep(10 * time.Second)
			if err := w.stop(); err != nil {
				w.t.Error(err)
			}
			w.start()
		},
	}
	for _, policy := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireLatest, engine.MisfireAll} {
		for name, end := range ends {
			for _, paused := range []bool{false, true} {
				t.Run(fmt.Sprint(policy, " ", name, " ", paused), func(t *testing.T) {
					bubble(t, func(t *testing.T, w *world) {
						w.config.MaxWaiting = 20
						w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 1, Per: 10 * time.Second, Burst: 1}}})
						w.start()
						if paused {
							w.pauseIt(t, limit.FlowKey("app", "k"))
						}
						from := w.now()
						id := w.make(timer("behind", every(time.Second), flows("k"), misfire(policy, 24*time.Hour)))
						time.Sleep(100*time.Second + 500*time.Millisecond)
						var late [][2]int64
						for i := range 2 {
							time.Sleep(time.Duration(i) * (30*time.Second + 200*time.Millisecond))
							was := w.now()
							w.step(5 * time.Minute)
							late = append(late, [2]int64{was, w.now() - 10_000})
						}
						end(w)
						w.resumeIt(t, limit.FlowKey("app", "k"), "call")
						w.SetRule(keyK, nil)
						time.Sleep(time.Minute)
						called := dues(w.of("behind"))
						for i, x := range late {
							n := 0
							for _, due := range called {
								if x[0] < due && due <= x[1] {
									n++
								}
							}
							all := int(x[1]-x[0]) / 1000
							least := map[engine.MisfirePolicy]int{engine.MisfireSkip: 0, engine.MisfireLatest: 1, engine.MisfireAll: all}[policy]
							most := least
							switch {
							case paused:
								least, most = all, all
							case policy == engine.MisfireLatest && strings.HasPrefix(name, "crash"):
								least = 0 // the start may have found a later one
							}
							if n < least || n > most {
								t.Errorf("of what step %d made late %d dues were called, want %d to %d", i+1, n, least, most)
							}
						}
						for _, due := range grid(from, late[0][0], 1000, from) {
							if !slices.Contains(called, due) {
								t.Errorf("due %s was held before the step, and was not called", stamp(due))
							}
						}
						w.stopAccounted(id, from, 1000)
					})
				})
			}
		}
	}
}

// After a start, refill may read the row of a timer that falls behind before the commit that
// stores the row has returned. The timer is called on.
func TestRowIsReadBeforeItsCommitReturns(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var slow atomic.Bool
		var fell atomic.Int64
		w.after.set(func(op string, arg any) {
			s, is := arg.(*engine.Settlement)
			if is && op == "Settle" && slow.Load() && len(s.Marks)+len(s.Pay) == 0 && slices.ContainsFunc(s.Owe, func(o engine.Owed) bool { return o.To == engine.Endless }) {
				fell.Add(1)
				time.Sleep(20 * time.Second)
			}
		})
		from := w.now()
		ids, answer := w.crowdedBy(10, misfire(engine.MisfireAll, time.Hour))
		time.Sleep(time.Minute)
		slow.Store(true)
		w.crash(time.Second)
		time.Sleep(2 * time.Second) // the lane is full, and timers fall behind
		answer()
		time.Sleep(150 * time.Second)
		if fell.Load() == 0 {
			t.Error("no timer fell behind")
		}
		for i, id := range ids {
			cs := w.of(fmt.Sprint("mute", i))
			if late := w.now() - cs[len(cs)-1].at; late > 1000 {
				t.Errorf("timer %d was last called %d ms ago", i, late)
			}
			w.stopAccounted(id, from, 500)
		}
	})
}

// The dues of a range that were called before the clock was set back stay so when their
// timer falls behind: neither a start nor a delete takes them for dues that wait.
func TestSpentDuesOfATimerThatIsBehind(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"crash", "delete"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 20
				w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
				w.start()
				id := w.make(timer("a", cron("*/20 * * * * *"), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(5 * time.Minute)
				w.settle()
				w.step(-4 * time.Minute)
				if err := w.reschedule(id, cron("*/10 * * * * *")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				w.crash(time.Second) // memory forgets the last due of the timer
				time.Sleep(9 * time.Second)
				var answers atomic.Bool
				for i := range 10 {
					name := fmt.Sprint("mute", i)
					w.behave(name, func(*call) reply {
						if answers.Load() {
							return ok
						}
						return slow(15 * time.Second)
					})
					w.make(timer(name, every(time.Second)))
				}
				time.Sleep(100 * time.Second)
				if what == "crash" {
					w.crash(time.Second)
				} else if _, err := w.Delete(t.Context(), id, 0); err != nil {
					t.Fatal(err)
				}
				answers.Store(true)
				time.Sleep(5 * time.Minute)
				n := map[int64]int{}
				for _, c := range w.of("a") {
					if n[c.key.Due]++; n[c.key.Due] > 1 {
						t.Errorf("due %s was called %d times", stamp(c.key.Due), n[c.key.Due])
					}
					if r := w.record(c.key); r.Status != engine.Succeeded {
						t.Errorf("due %s was called, and is %s", stamp(c.key.Due), r.Status)
					}
				}
				w.step(10 * time.Minute) // for the ledger
				time.Sleep(time.Second)
			})
		})
	}
}

// A decision that a timer is behind is stored, its answer is lost, and refill reads the
// range before the decision is stored again: no due of the range is called twice.
func TestTimerThatIsBehindInDoubt(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var id atomic.Uint64
		var made, refused, waited, late, last atomic.Bool
		var since atomic.Int64
		decides := func(s *engine.Settlement) bool {
			return len(s.Pay) == 0 && slices.ContainsFunc(s.Owe, func(o engine.Owed) bool {
				return o.Key.Timer == engine.TimerID(id.Load()) && o.To == engine.Endless
			})
		}
		w.before.set(func(op string, arg any) error {
			switch x := arg.(type) {
			case *engine.Settlement:
				switch {
				case op != "Settle" || id.Load() == 0:
				case decides(x) && made.CompareAndSwap(false, true):
					since.Store(w.now())
					refused.Store(true)
					return errors.Join(w.cold.Settle(context.Background(), x), engine.ErrUnavailable)
				case decides(x) && refused.Load() && w.now() < since.Load()+4000:
					return engine.ErrUnavailable
				case slices.ContainsFunc(x.Pay, func(k engine.Key) bool { return k.Timer == engine.TimerID(id.Load()) }) && made.Load():
					refused.Store(false) // refill has unfolded it
				}
			case []engine.TimerID: // … and is slow to take its dues in
				if made.Load() && !refused.Load() && slices.Contains(x, engine.TimerID(id.Load())) && late.CompareAndSwap(false, true) {
					time.Sleep(3 * time.Second)
				}
			case engine.Lane:
				if made.Load() && waited.CompareAndSwap(false, true) {
					time.Sleep(2 * time.Second)
				} else if late.Load() && last.CompareAndSwap(false, true) {
					time.Sleep(6 * time.Second)
				}
			}
			return nil
		})
		w.config.MaxWaiting = 100
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
		w.start()
		w.replies("b", slow(50*time.Millisecond))
		b := w.make(timer("b", every(10*time.Millisecond)))
		time.Sleep(10 * time.Second)
		from := w.now()
		a := w.make(timer("a", every(200*time.Millisecond)))
		id.Store(uint64(a))
		time.Sleep(40 * time.Second)
		if _, err := w.Delete(t.Context(), b, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		w.stopAccounted(a, from, 200)
		n := map[int64]int{}
		for _, c := range w.of("a") {
			if n[c.key.Due]++; n[c.key.Due] > 1 {
				t.Errorf("due %s was called %d times", stamp(c.key.Due), n[c.key.Due])
			}
		}
		if !made.Load() {
			t.Error("the timer was never behind: the test tests nothing")
		}
	})
}

// A timer that falls behind within a range rests after the range: dues up to the watermark
// may have been called, where history does not tell.
func TestTimerThatIsBehindRests(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var critical atomic.Bool
				w.config.DiskCritical = critical.Load
				w.config.MaxWaiting = 20
				w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
				w.start()
				id := w.make(timer("a", cron("*/20 * * * * *"), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(3 * time.Minute)
				critical.Store(true)
				time.Sleep(90 * time.Second)
				w.settle()
				critical.Store(false)
				time.Sleep(25 * time.Second)
				w.settle()
				w.step(-4 * time.Minute)
				if err := w.reschedule(id, cron("*/10 * * * * *")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				var answers atomic.Bool
				for i := range 10 {
					name := fmt.Sprint("mute", i)
					w.behave(name, func(*call) reply {
						if answers.Load() {
							return ok
						}
						return slow(15 * time.Second)
					})
					w.make(timer(name, every(time.Second)))
				}
				time.Sleep(2 * time.Minute)
				if len(w.rowsOf(id)) == 0 {
					t.Error("the timer is not behind: the test tests nothing")
				}
				if crash {
					w.crash(time.Second)
				}
				answers.Store(true)
				time.Sleep(6 * time.Minute)
				w.once("a")
				cs := w.of("a")
				if last := cs[len(cs)-1]; w.now()-last.at > 10_000 {
					t.Errorf("it was last called at %s", stamp(last.at))
				}
			})
		})
	}
}

// A timer that is behind while it is still owed a range of earlier dues is called in order,
// if its overlap is queue: what is left of the range has a place behind the later one.
func TestQueueBehindARange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 40
		w.start()
		w.behave("a", func(*call) reply { return slow(400 * time.Millisecond) })
		w.make(timer("a", every(250*time.Millisecond), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(3 * time.Second)
		w.step(30 * time.Second)
		time.Sleep(3 * time.Minute)
		last := int64(0)
		calls := w.of("a")
		for _, c := range calls {
			if c.attempt == 1 && c.key.Due < last {
				t.Fatalf("%s was called after %s", stamp(c.key.Due), stamp(last))
			}
			last = max(last, c.key.Due)
		}
		if len(calls) < 300 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

// The dues of a range are called in order from its first one on, whose row has the key that
// the range had.
func TestQueueOfARange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.before.set(func(op string, _ any) error {
			if op == "OwedPage" {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		w.start()
		w.behave("a", func(*call) reply { return slow(400 * time.Millisecond) })
		w.make(timer("a", every(1700*time.Millisecond), overlap(engine.OverlapQueue)))
		w.make(timer("b", every(time.Second)))
		time.Sleep(3 * time.Second)
		w.step(time.Hour)
		time.Sleep(20 * time.Second)
		calls := w.of("a")
		for i := 1; i < len(calls); i++ {
			if calls[i].key.Due < calls[i-1].key.Due {
				t.Fatalf("%s was called after %s", stamp(calls[i].key.Due), stamp(calls[i-1].key.Due))
			}
		}
		if len(calls) < 15 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

// A range of a queue waits for an earlier one, and its lane has no other rows: dues that come meanwhile are called after
// those of the range.
func TestQueueBehindARangeThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var answers atomic.Bool
		w.behave("queue", func(*call) reply {
			if answers.Load() {
				return ok
			}
			return slow(time.Minute)
		})
		w.config.MaxWaiting = 4
		w.start()
		w.make(timer("queue", every(500*time.Millisecond), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, time.Hour)))
		for i := range 4 {
			time.Sleep(5 * time.Second)
			answers.Store(i == 3)
			w.crash(5 * time.Second)
		}
		time.Sleep(10 * time.Second)
		if called := dues(w.of("queue")); !slices.IsSorted(called) || len(called) < 100 {
			t.Errorf("%d dues are called, in order: %v", len(called), slices.IsSorted(called))
		}
		w.settle()
	})
}

// TestQueueThatCatchesUp: the dues of a timer that is behind are called in order also where the
// cold tier is slow, so that more come due between a commit and what follows from it.
func TestQueueThatCatchesUp(t *testing.T) {
	for _, pace := range []time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 1100 * time.Millisecond} {
		bubble(t, func(t *testing.T, w *world) {
			w.config.MaxWaiting = 4
			w.start()
			var answers atomic.Bool
			w.behave("a", func(*call) reply {
				if answers.Load() {
					return ok
				}
				return slow(12 * time.Second)
			})
			w.make(timer("a", every(time.Second), overlap(engine.OverlapQueue)))
			for range 5 {
				answers.Store(false)
				time.Sleep(20 * time.Second)
				w.before.set(func(string, any) error { time.Sleep(pace); return nil })
				answers.Store(true)
				time.Sleep(20 * time.Second)
				w.before.set(func(string, any) error { return nil })
				time.Sleep(5 * time.Second)
			}
			cs := w.of("a")
			for k := 1; k < len(cs); k++ {
				if cs[k].key.Due < cs[k-1].key.Due {
					t.Fatalf("with %v for each access, %s is called at %s, after %s", pace, stamp(cs[k].key.Due), stamp(cs[k].at), stamp(cs[k-1].key.Due))
				}
			}
			if c := cs[len(cs)-1]; c.at-c.key.Due > 20 || len(cs) < 200 {
				t.Errorf("%d calls, the last one %d ms late", len(cs), c.at-c.key.Due)
			}
		})
	}
}

// A change of a timer leaves the row that stands for several of its tasks to these: until the
// result of the last of them is stored, the cold tier has no other sign of them.
func TestSharedRowOutlivesAChange(t *testing.T) {
	t.Run("rows of the change", sharedRowOutlives)
	t.Run("rows left to the stage", func(t *testing.T) {
		defer scheduler.BoundEnded(1)()
		sharedRowOutlives(t)
	})
}

func sharedRowOutlives(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away atomic.Bool
		w.before.set(func(_ string, arg any) error {
			if s, is := arg.(*engine.Settlement); is && len(s.Tasks) > 0 && away.Load() {
				return fmt.Errorf("away: %w", engine.ErrUnavailable)
			}
			return nil
		})
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 20, 4, 4, 4
		w.start()
		var ids []engine.TimerID
		for i := range 10 {
			w.replies(fmt.Sprint(i), slow(400*time.Millisecond))
			ids = append(ids, w.make(timer(fmt.Sprint(i), every(500*time.Millisecond))))
		}
		time.Sleep(time.Minute)
		for i, id := range ids {
			away.Store(true) // what ends now is not stored
			time.Sleep(time.Duration(500+100*i) * time.Millisecond)
			w.disable(id, 0)
			time.Sleep(20 * time.Millisecond)
			w.prove()
			away.Store(false)
			time.Sleep(2 * time.Second)
		}
		w.settle()
	})
}

// A process that is stopped does not know whether what it stored of a timer that is behind was stored. The
// dues that came since are not lost, in memory or in the cold tier: the watermark does not pass them.
func TestStopWhileATimerCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 2, 2, 2
		w.start()
		from := w.now()
		w.replies("a", slow(5*time.Second), ok)
		w.replies("b", slow(9*time.Second))
		w.make(timer("b", delay(100*time.Millisecond))) // its call keeps the stop waiting
		id := w.make(timer("a", every(500*time.Millisecond), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, time.Hour)))
		var armed atomic.Bool
		w.after.set(func(_ string, arg any) {
			if s, ok := arg.(*engine.Settlement); ok && len(s.Pay) > 0 && len(s.Marks) == 0 && armed.Swap(false) {
				w.mute.Store(true)
			}
		})
		time.Sleep(4 * time.Second)
		armed.Store(true)
		for !w.mute.Load() {
			time.Sleep(10 * time.Millisecond)
		}
		w.life.stop()
		w.mute.Store(false)
		time.Sleep(2 * time.Second) // it stops
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		w.start()
		time.Sleep(10 * time.Second)
		w.stopAccounted(id, from, 500)
	})
}
