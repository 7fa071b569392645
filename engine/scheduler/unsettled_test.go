package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// At each bound of what may wait for a cold tier that takes nothing, calls wait, the
// gauge stands still and creates are refused with the reason; when it takes
// something again all that was due has been called, once.
func TestBacklogIsBounded(t *testing.T) {
	const each = 500 // ms between two calls
	for _, c := range []struct {
		bound    string
		outcomes int
		bytes    int64
		reaches  time.Duration // after which at latest it is at its bound
		calls    [2]int        // how many may have been made by then
	}{
		{"outcomes", 50, 1 << 40, 30 * time.Second, [2]int{49, 53}},
		{"bytes", 1 << 40, 50 << 10, 30 * time.Second, [2]int{40, 53}}, // answers of 1 KiB
		{"memory", 1 << 40, 1 << 40, 30 * time.Second, [2]int{49, 53}}, // 50 outcomes while it is full
		{"age", 1 << 40, 1 << 40, 150 * time.Second, [2]int{238, 244}}, // the window
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint(c.bound, ", crash ", crash), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.config.Window = 2 * time.Minute
					w.tune = func(e *scheduler.Scheduler) { e.BoundUnsettled(c.outcomes, c.bytes); e.BoundCrowd(50) }
					var full atomic.Bool
					w.config.MemoryFull = func(int64) bool { return full.Load() }
					away := w.outage("Settle") // it can be read
					w.start()
					w.behave("a", func(*call) reply { return reply{body: strings.Repeat("x", 1024)} })
					from := w.now()
					id := w.make(timer("a", every(each*time.Millisecond), misfire(engine.MisfireAll, 24*time.Hour)))
					time.Sleep(3*time.Second + 500*time.Millisecond)
					away.Store(true)
					full.Store(c.bound == "memory")
					before := len(w.of("a"))
					time.Sleep(c.reaches)
					n := len(w.of("a")) - before
					if n < c.calls[0] || n > c.calls[1] {
						t.Errorf("%d calls were made, want %d to %d", n, c.calls[0], c.calls[1])
					}
					backlog := w.metric("xtimer_settle_backlog")
					if int(backlog) < n || int(backlog) > n+2 {
						t.Errorf("a backlog of %v after %d calls", backlog, n)
					}
					var f *engine.Fault
					err := w.Create(t.Context(), timer("refused", delay(0)), nil).Err
					if !errors.As(err, &f) || f.Kind != engine.FaultUnavailable || f.Code != "backlog_full" || !errors.Is(w.Ready(), err) {
						t.Errorf("a create at the bound: %v; ready: %v", err, w.Ready())
					}
					time.Sleep(150 * time.Second) // what is loaded comes due
					open := w.open()
					time.Sleep(30 * time.Second)
					if is := len(w.of("a")) - before; is != n || w.metric("xtimer_settle_backlog") != backlog {
						t.Errorf("%d calls at the bound, and a backlog of %v", is-n, w.metric("xtimer_settle_backlog"))
					}
					if w.open() > open {
						t.Errorf("%d tasks wait in memory, %d more than at the bound", w.open(), w.open()-open)
					}
					full.Store(false)
					if crash {
						w.kill()
						away.Store(false)
						time.Sleep(time.Second)
						w.start()
					}
					away.Store(false)
					time.Sleep(time.Minute)
					if err := w.Ready(); err != nil {
						t.Errorf("over, and not ready: %v", err)
					}
					w.make(timer("taken", delay(0)))
					w.disable(id, 0)
					to := w.now()
					w.settle()
					if diff := difference(dues(w.of("a")), grid(from, to, each, from)); diff != "" {
						t.Errorf("dues called: %s", diff)
					}
					w.accounted(id, from, to, each)
				})
			})
		}
	}
}

// A settle that has looked at many waiting tasks rests. Half as many results as hold up calls
// while memory is full end that rest.
func TestResultsEndTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(e *scheduler.Scheduler) { e.BoundCrowd(50) }
		away := w.outage("Settle")
		w.start()
		w.make(timer("a", every(100*time.Millisecond)))
		time.Sleep(10 * time.Second)
		if !w.MayRest() {
			t.Error("no rest, while results are settled")
		}
		away.Store(true)
		time.Sleep(5 * time.Second)
		if w.MayRest() {
			t.Errorf("a rest, while %v results wait", w.metric("xtimer_settle_backlog"))
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		if !w.MayRest() {
			t.Error("no rest after all is settled")
		}
	})
}

// Without the cold tier altogether calls end at the end of what is loaded, a window
// ahead, and with them what waits for it: however long it is away.
func TestColdTierAwayForHours(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.keeps = true
		w.config.Window = 5 * time.Minute
		away := w.outage()
		w.start()
		from := w.now()
		id := w.make(timer("a", every(5*time.Second), misfire(engine.MisfireAll, 24*time.Hour)))
		time.Sleep(2*time.Minute + 2*time.Second)
		lost := w.now()
		away.Store(true)
		time.Sleep(15 * time.Minute)
		calls := w.of("a")
		if last := calls[len(calls)-1].key.Due; last < lost+3*60_000 || last > lost+12*60_000 {
			t.Errorf("the last call is of a due %v after the tier was lost", time.Duration(last-lost)*time.Millisecond)
		}
		backlog := w.metric("xtimer_settle_backlog")
		if n := (calls[len(calls)-1].key.Due - lost) / 5000; int64(backlog) < n || int64(backlog) > n+2 {
			t.Errorf("a backlog of %v, want about %d", backlog, n)
		}
		time.Sleep(10 * time.Minute)
		if n := len(w.of("a")); n != len(calls) || w.metric("xtimer_settle_backlog") != backlog {
			t.Errorf("%d calls more, a backlog of %v", n-len(calls), w.metric("xtimer_settle_backlog"))
		}
		away.Store(false)
		time.Sleep(5 * time.Minute)
		w.disable(id, 0)
		to := w.now()
		w.settle()
		if diff := difference(dues(w.of("a")), grid(from, to, 5000, from)); diff != "" {
			t.Errorf("dues called: %s", diff)
		}
		w.accounted(id, from, to, 5000)
	})
}

// open is how many tasks are in memory and not finished.
func (w *world) open() int64 {
	w.t.Helper()
	s, err := w.Stats(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return s.Open
}

// A cold tier that takes no large settle within its patience, as behind a slow link,
// gets what has gathered in pieces that it can take: in use, and at a start.
func TestSlowColdTier(t *testing.T) {
	const takes, patience = 2500, 10 * time.Second
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var away atomic.Bool
				var largest atomic.Int64
				w.before.set(func(op string, arg any) error {
					if op != "Settle" {
						return nil
					}
					s := arg.(*engine.Settlement)
					rows := len(s.Tasks) + len(s.Owe) + len(s.Pay)
					if away.Load() || rows > takes {
						largest.Store(max(largest.Load(), int64(rows)))
						for time.Sleep(patience); away.Load(); {
							time.Sleep(time.Second)
						}
						return fmt.Errorf("too slow: %w", engine.ErrUnavailable)
					}
					return nil
				})
				w.start()
				var ids []engine.TimerID
				from := w.now()
				for i := range 20 {
					ids = append(ids, w.make(timer(fmt.Sprint("t", i), every(100*time.Millisecond))))
				}
				away.Store(true)
				time.Sleep(30 * time.Second)
				if crash {
					w.kill()
				}
				away.Store(false)
				if crash {
					w.start()
				}
				for _, id := range ids {
					w.disable(id, 0)
				}
				to := w.now()
				for range 20 {
					time.Sleep(patience)
					if w.metric("xtimer_settle_backlog") == 0 {
						break
					}
				}
				if n := w.metric("xtimer_settle_backlog"); n > 0 {
					t.Errorf("a backlog of %v", n)
				}
				if n := largest.Load(); n < 5000 {
					t.Errorf("%d rows at once: the test says nothing", n)
				}
				for _, id := range ids[:3] {
					w.accounted(id, from, to, 100)
				}
			})
		})
	}
}

// A stop while calls wait at a bound lets none of them go: the next start calls them.
func TestStopAtABound(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(e *scheduler.Scheduler) { e.BoundUnsettled(100, 1<<40) }
		away := w.outage("Settle")
		w.start()
		from := w.now()
		w.make(timer("a", every(100*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		away.Store(true)
		time.Sleep(30 * time.Second)
		n := len(w.of("a"))
		if n < 100 || n > 110 {
			t.Fatalf("%d calls were made, and the bound is 100", n)
		}
		_ = w.stop() // its last settle cannot be stored
		if more := len(w.of("a")) - n; more > 0 {
			t.Errorf("%d calls began after the stop", more)
		}
		away.Store(false)
		w.start()
		time.Sleep(time.Minute)
		w.settle()
		end := w.now() - 1000
		got := slices.DeleteFunc(dues(w.of("a")), func(due int64) bool { return due > end })
		slices.Sort(got)
		equal(t, "dues", got, grid(from, end, 100, from%100))
	})
}
