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

// A step of an hour forward is a misfire of what lies in it: each timer follows
// its policy, and each due is told what became of it, once.
func TestStepForward(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		for _, gap := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 7 * time.Minute} {
			t.Run(fmt.Sprint(policy, " ", gap), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					id := w.make(timer("a", every(gap), misfire(policy, 24*time.Hour)))
					time.Sleep(90*time.Second + 500*time.Millisecond)
					before := len(w.of("a"))
					w.step(time.Hour)
					time.Sleep(30 * time.Second)
					w.settle()
					to := w.now() - 3000
					called := map[int64]int{}
					misfires := 0
					for i, c := range w.of("a") {
						called[c.key.Due]++
						if c.at < c.key.Due {
							t.Errorf("due %s was called early", stamp(c.key.Due))
						}
						if i >= before && c.at-c.key.Due > 10_250 { // the grid leaves 9.5 s and 10.5 s at the step
							misfires++
						}
					}
					w.accounted(id, from, to, gap.Milliseconds())
					for d, n := range called {
						if n > 1 {
							t.Errorf("due %s was called %d times", stamp(d), n)
						}
					}
					missed := len(grid(from+90_500, from+90_500+3_600_000-10_000, gap.Milliseconds(), from))
					want := map[engine.MisfirePolicy]int{engine.MisfireLatest: 1, engine.MisfireSkip: 0, engine.MisfireAll: missed}[policy]
					if misfires < want-1 || misfires > want+1 || want < 2 && misfires != want {
						t.Errorf("%d misfires were called, want %d of %d", misfires, want, missed)
					}
				})
			})
		}
	}
}

// stopAccounted disables a timer; each of its dues up to then must be accounted for.
func (w *world) stopAccounted(id engine.TimerID, from, every int64) {
	w.t.Helper()
	to := w.now()
	w.disable(id, 0)
	w.settle()
	w.accounted(id, from, to, every)
}

// accounted checks that each due from+k·gap in (from, to] has exactly one record,
// a final one.
func (w *world) accounted(id engine.TimerID, from, to, gap int64) {
	w.t.Helper()
	n := map[int64]int{}
	for _, r := range w.records(id) {
		if r.Key.Due > to {
			continue
		}
		if !r.Status.Final() {
			w.t.Errorf("due %s is %s", stamp(r.Key.Due), r.Status)
		}
		last := max(r.DueLast, r.Key.Due)
		k := int64(0)
		for d := r.Key.Due; d <= last; d += gap {
			n[d]++
			k++
		}
		if k != max(r.Count, 1) {
			w.t.Errorf("the record of %s to %s counts %d, want %d", stamp(r.Key.Due), stamp(last), r.Count, k)
		}
	}
	var got []int64
	for d, k := range n {
		for range k {
			if d <= to {
				got = append(got, d)
			}
		}
	}
	if diff := difference(got, grid(from, to, gap, from)); diff != "" {
		w.t.Errorf("dues with records: %s", diff)
	}
}

// TestKillAfterAStepForward: what was decided of the dues that a step of the clock has passed
// is decided once, also when the process dies before the watermark has passed them: for 10 s it
// need not be written.
func TestKillAfterAStepForward(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		for _, after := range []time.Duration{50 * time.Millisecond, 300 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second} {
			for _, back := range []time.Duration{0, -2 * time.Minute} {
				t.Run(fmt.Sprint(policy, " ", after, " ", back), func(t *testing.T) {
					bubble(t, func(t *testing.T, w *world) {
						w.start()
						from := w.now()
						var ids []engine.TimerID
						for i := range 40 {
							name := fmt.Sprint(i)
							if i%2 == 0 {
								w.behave(name, func(*call) reply { return slow(3 * time.Second) })
							}
							ids = append(ids, w.make(timer(name, every(10*time.Second), misfire(policy, 4*time.Minute))))
						}
						time.Sleep(12 * time.Second)
						if back != 0 {
							time.Sleep(3 * time.Minute)
							w.step(back)
							time.Sleep(5 * time.Second)
						}
						w.step(10 * time.Minute)
						time.Sleep(after)
						w.crash(2 * time.Minute)
						time.Sleep(time.Minute)
						for _, id := range ids {
							w.stopAccounted(id, from, 10_000)
						}
					})
				})
			}
		}
	}
}

// Nothing is lost when the cold tier is away while the clock steps.
func TestStepForwardWithoutTheColdTier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away atomic.Bool
		w.before.set(func(op string, _ any) error {
			if away.Load() {
				return errors.New("the cold tier is away.Load()")
			}
			return nil
		})
		w.start()
		from := w.now()
		id := w.make(timer("a", every(10*time.Second), misfire(engine.MisfireLatest, time.Hour)))
		time.Sleep(35 * time.Second)
		away.Store(true)
		w.step(time.Minute)
		time.Sleep(20 * time.Second)
		away.Store(false)
		time.Sleep(20 * time.Second)
		w.crash(time.Second)
		time.Sleep(20 * time.Second)
		w.settle()
		w.accounted(id, from, w.now()-6000, 10_000)
	})
}

// A step of 20 minutes back: nothing early, nothing repeated; what is created after
// it fires by the new clock, and survives a crash.
func TestStepBack(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				old := w.make(timer("old", every(10*time.Second)))
				w.replies("r", fail, ok)
				w.make(timer("r", delay(60*time.Second), retry(3, 20*time.Second, 1)))
				time.Sleep(65 * time.Second)
				stepped := w.now()
				w.step(-20 * time.Minute)
				time.Sleep(time.Second)
				made := w.now()
				recurring := w.make(timer("new", every(7*time.Second)))
				once := w.make(timer("once", delay(30*time.Second)))
				hand, err := w.RunNow(t.Context(), old, 0)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Second)
				if crash {
					w.crash(500 * time.Millisecond)
				}
				time.Sleep(time.Minute)
				to := w.now()
				w.settle()
				want := grid(made, to, 7000, made)
				cs := w.of("new")
				if diff := difference(dues(cs), append(want, grid(to, w.now()-1, 7000, made)...)); diff != "" {
					t.Errorf("created after the step: %s", diff)
				}
				for _, c := range cs {
					if c.at < c.key.Due || c.at > c.key.Due+1000 {
						t.Errorf("due %s was called %d ms after it", stamp(c.key.Due), c.at-c.key.Due)
					}
				}
				w.accounted(recurring, made, to, 7000)
				w.exact("once", once, []int64{made + 30_000}, 0)
				if r := w.record(hand); r.Status != engine.Succeeded {
					t.Errorf("by hand: %+v", r)
				}
				time.Sleep(20 * time.Minute)
				seen := map[int64]bool{}
				for _, c := range w.of("old") {
					if c.at < c.key.Due {
						t.Errorf("due %s was called early", stamp(c.key.Due))
					}
					if seen[c.key.Due] {
						t.Errorf("due %s was called twice", stamp(c.key.Due))
					}
					seen[c.key.Due] = true
				}
				for _, d := range grid(from, w.now()-5000, 10_000, from) {
					if !seen[d] && d > 0 {
						t.Errorf("due %s was not called; the clock stepped at %s", stamp(d), stamp(stepped))
					}
				}
				if cs := w.of("r"); len(cs) != 2 {
					t.Errorf("the retry: %+v", cs)
				}
			})
		})
	}
}

// Small steps change nothing but the time.
func TestSmallSteps(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		id := w.make(timer("a", every(100*time.Millisecond)))
		for i := range 40 {
			time.Sleep(777 * time.Millisecond)
			w.step(time.Duration(i%2*400-200) * time.Millisecond)
		}
		time.Sleep(time.Second)
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.accounted(id, from, to, 100)
		seen := map[int64]bool{}
		for _, c := range w.of("a") {
			if c.at < c.key.Due || seen[c.key.Due] {
				t.Errorf("due %s was called at %d ms, before: %v", stamp(c.key.Due), c.at-c.key.Due, seen[c.key.Due])
			}
			seen[c.key.Due] = true
		}
	})
}

// What is due after the clock was set forward and back is on time: it lies before the
// instant that the clock showed for a while.
func TestStepForwardAndBack(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.step(time.Hour)
		time.Sleep(10 * time.Second)
		w.step(-time.Hour)
		from := w.now()
		w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, time.Minute)))
		time.Sleep(35 * time.Second)
		equal(t, "dues", dues(w.of("a")), []int64{from + 10_000, from + 20_000, from + 30_000})
	})
}

// What a small step made late is not a misfire because a change keeps it back for
// longer than ten seconds.
func TestStepForwardWhileATimerIsChanged(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var slow atomic.Bool
		w.after.set(func(op string, _ any) {
			if op == "Apply" && slow.Load() {
				time.Sleep(13 * time.Second)
			}
		})
		w.start()
		id := w.make(timer("a", every(time.Minute), misfire(engine.MisfireSkip, time.Hour)))
		slow.Store(true)
		from := w.now()
		time.AfterFunc(2*time.Second, func() { w.step(3 * time.Second) })
		if err := w.reschedule(id, every(4*time.Second)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		got := dues(w.of("a"))
		slices.Sort(got)
		equal(t, "dues", got, grid(from, w.now(), 4000, from))
	})
}

// An instant given while the clock was ahead, and replaced by the right clock before it came,
// is no gap: verify proves the ledger.
func TestInstantGivenByAClockThatIsAhead(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", delay(time.Hour)))
		time.Sleep(10 * time.Second)
		w.step(5 * time.Second)
		w.before.set(func(op string, arg any) error {
			if c, is := arg.(*engine.Change); is && op == "Apply" && c.Was == 1 {
				w.step(-5 * time.Second)
			}
			return nil
		})
		if err := w.reschedule(id, engine.Schedule{At: w.now() - 1000}); err != nil {
			t.Fatal(err)
		}
		at := w.now() + 1000
		if err := w.reschedule(id, engine.Schedule{At: at}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		w.settle()
		equal(t, "dues", dues(w.of("a")), []int64{at})
	})
}

// The clock is set forward by an hour and back 5 s later, while calls are under way. What is called from then on is settled,
// and the journal stays small.
func TestStepForwardAndBackDuringCalls(t *testing.T) {
	for _, long := range []bool{false, true} { // calls of 20 s
		begin(t, func(t *testing.T, w *world) {
			for i := range 300 { // some in each shard
				name := fmt.Sprint("old", i)
				if long {
					w.replies(name, slow(20*time.Second))
				}
				w.make(timer(name, every(10*time.Second), timeout(time.Minute), misfire(engine.MisfireSkip, 24*time.Hour)))
			}
			time.Sleep(20*time.Second + 10*time.Millisecond)
			w.step(time.Hour)
			time.Sleep(5 * time.Second)
			w.step(-time.Hour)
			time.Sleep(time.Second)
			for i := range 300 {
				w.make(timer(fmt.Sprint("new", i), every(time.Second)))
			}
			time.Sleep(4 * time.Minute)
			if n := w.journal.length(); n > 10_000 {
				t.Errorf("the journal has %d records", n)
			}
		})
	}
}
