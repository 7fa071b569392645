package scheduler_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// A row of a timer that this program cannot plan does not keep the others' from being
// called.
func TestRowOfATimerThatCannotBePlanned(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		bad := &engine.Timer{Definition: timer("bad", cron("* * * * * *")), ID: 7, Version: 1, Generation: 1, ValidFrom: w.now()}
		bad.Schedule.TimeZone = "Mars/Olympus"
		o := engine.Owed{Key: engine.Key{Timer: 7, Due: w.now()}, Generation: 1, Origin: engine.FromManual, NotBefore: w.now()}
		if _, err := w.cold.Apply(t.Context(), &engine.Change{Timer: bad, ID: 7, Owe: []engine.Owed{o}}); err != nil {
			t.Fatal(err)
		}
		w.start()
		w.replies("good", fail, ok)
		w.make(timer("good", delay(time.Second), retry(2, 10*time.Minute, 1)))
		time.Sleep(20 * time.Second)
		w.crash(11 * time.Minute)
		time.Sleep(5 * time.Minute)
		if n := len(w.of("good")); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

// Rows that were made of a range, and cannot all be resumed at once, are not made anew:
// those that were called and wait for their retry do so.
func TestUnfoldIsCutShort(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var armed atomic.Bool
		var loads atomic.Int64 // since 1,000 rows were made of the range
		w.before.set(func(op string, arg any) error {
			if s, is := arg.(*engine.Settlement); is && len(s.Owe) >= 1000 {
				loads.Store(0)
			}
			if op == "Load" && loads.Add(1) == 2 && armed.CompareAndSwap(true, false) {
				return fmt.Errorf("away: %w", engine.ErrUnavailable)
			}
			return nil
		})
		w.start()
		w.behave("a", func(c *call) reply {
			if c.attempt == 1 {
				return fail
			}
			return ok
		})
		w.make(timer("a", every(200*time.Millisecond), misfire(engine.MisfireAll, time.Hour), retry(3, 30*time.Minute, 1)))
		time.Sleep(time.Second)
		down := w.now()
		armed.Store(true)
		w.crash(10 * time.Minute) // 3,000 dues: a range
		time.Sleep(5 * time.Minute)
		first := map[int64]int{}
		twice := 0
		for _, c := range w.of("a") {
			if c.key.Due > down && c.attempt == 1 {
				if first[c.key.Due]++; first[c.key.Due] == 2 {
					twice++
				}
			}
		}
		if twice > 0 || armed.Load() || len(first) < 3000 {
			t.Errorf("of %d dues %d had a first attempt twice; armed %v", len(first), twice, armed.Load())
		}
	})
}

// What a start, or a step of the clock, decides is stored in pieces: a transaction of
// MySQL has ten seconds.
func TestDecisionsAreStoredInPieces(t *testing.T) {
	const most = 50
	defer scheduler.BoundDecided(most)()
	for _, step := range []bool{false, true} {
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.before.set(func(op string, arg any) error {
					s, is := arg.(*engine.Settlement)
					decides := is && op == "Settle" && (s.Replayed || len(s.Marks)+len(s.Pay) == 0)
					if decides && len(s.Owe) > most+2 { // a timer's more
						t.Errorf("%d rows in one transaction", len(s.Owe))
					}
					return nil
				})
				w.start()
				from := w.now()
				const timers = 150
				ids := make([]engine.TimerID, timers)
				for i := range ids {
					ids[i] = w.make(timer(fmt.Sprint(i), every(5*time.Second), misfire(engine.MisfireAll, time.Hour)))
				}
				time.Sleep(time.Second)
				down := 73 * time.Second // 15 dues of each
				if step {
					w.step(down)
				} else {
					w.crash(down)
				}
				time.Sleep(30 * time.Second)
				calls := map[string]map[int64]bool{}
				w.mu.Lock()
				for _, c := range w.calls {
					if calls[c.name] == nil {
						calls[c.name] = map[int64]bool{}
					}
					calls[c.name][c.key.Due] = true
				}
				w.mu.Unlock()
				for i := range ids {
					for _, due := range grid(from, w.now()-2000, 5000, from) {
						if !calls[fmt.Sprint(i)][due] {
							t.Fatalf("timer %d: the due %s was not called", i, stamp(due))
						}
					}
				}
			})
		})
	}
}

// An instant that the timer was called at is not taken again, also where no record tells
// of it.
func TestAlreadyFiredWithoutARecord(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.DiskCritical = func() bool { return true } // successes leave no record
		w.start()
		due := w.now() + 1000
		id := w.make(timer("a", at(due)))
		time.Sleep(15 * time.Second)
		if err := w.reschedule(id, at(due+3_600_000)); err != nil {
			t.Fatal(err)
		}
		if err := w.reschedule(id, at(due)); err == nil {
			t.Error("the instant was taken again")
		}
		time.Sleep(15 * time.Second)
		if n := len(w.of("a")); n != 1 {
			t.Errorf("called %d times", n)
		}
	})
}

// Rows that refill reads while their timer is being changed come into memory as far as
// their lane has room, however many pages it reads meanwhile.
func TestRowsReadDuringAChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const room = 40
		w.config.MaxWaiting = room
		w.after.set(func(op string, arg any) {
			s, is := arg.(*engine.Settlement)
			if is && op == "Settle" && slices.ContainsFunc(s.Owe, func(o engine.Owed) bool { return o.To == engine.Endless }) {
				time.Sleep(2 * time.Second) // the timer falls behind
			}
		})
		w.start()
		w.behave("a", func(*call) reply { return slow(500 * time.Millisecond) })
		id := w.make(timer("a", every(250*time.Millisecond)))
		time.Sleep(time.Second)
		w.disable(id, 0)
		time.Sleep(80 * time.Second)
		w.enable(id, engine.CatchUpAll)
		most := int64(0)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, w.Resident())
		}
		if most < room/2 || most > 2*room {
			t.Errorf("%d tasks were in memory, of a lane that has room for %d", most, room)
		}
		time.Sleep(2 * time.Minute)
		if n := w.made(); n < 300 {
			t.Errorf("%d calls were made of what is caught up", n)
		}
	})
}
