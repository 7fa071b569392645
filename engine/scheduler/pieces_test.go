package scheduler_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// A cold tier that stores no more than a thousand rows within its limit of time is
// started over nevertheless, whatever the former process left: outcomes in the journal,
// thousands of rows of one timer that are misfires, and dues of many timers.
func TestStartOverASlowTier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var limited, away atomic.Bool
		var failed atomic.Int64
		w.before.set(func(op string, arg any) error {
			if s, is := arg.(*engine.Settlement); is && op == "Settle" {
				switch rows := len(s.Tasks) + len(s.Owe) + len(s.Pay); {
				case away.Load():
					return engine.ErrUnavailable
				case limited.Load() && rows > 1000:
					failed.Add(1)
					time.Sleep(10 * time.Second)
					return fmt.Errorf("no answer: %w", engine.ErrUnavailable)
				}
			}
			return nil
		})
		w.config.MaxWaiting = 100
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 64, 32, 64
		w.start()
		from := w.now()
		w.replies("mute", slow(15*time.Second))
		mute := w.make(timer("mute", every(20*time.Millisecond), elsewhere("mute", "http://127.0.0.1:9/"), misfire(engine.MisfireSkip, time.Hour)))
		time.Sleep(40 * time.Second)
		away.Store(true)
		begun := w.now()
		var keys []engine.Key
		oneShot := func(name string, due int64) {
			keys = append(keys, engine.Key{Timer: w.make(timer(name, at(due))), Due: due})
		}
		for i := range 1500 {
			oneShot(fmt.Sprint(i), begun+1000+int64(i))
		}
		for i := range 1500 {
			oneShot(fmt.Sprint("down", i), begun+20_000+int64(i))
		}
		time.Sleep(10 * time.Second)
		w.crashes = append(w.crashes, w.now())
		w.kill()
		away.Store(false)
		limited.Store(true)
		time.Sleep(time.Minute)
		w.start()
		if failed.Load() == 0 {
			t.Error("nothing was too much for the tier: the test tests nothing")
		}
		w.settle()
		to := w.now() - 1000
		if _, err := w.Delete(t.Context(), mute, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		w.accounted(mute, from, to, 20)
		for _, k := range keys {
			if r := w.record(k); r.Status != engine.Succeeded {
				t.Fatalf("task %s is %s", k, r.Status)
			}
		}
	})
}

// slowTier is a cold tier that is away, or stores no more than a thousand rows within its
// limit of time.
func (w *world) slowTier() (away, limited *atomic.Bool) {
	away, limited = new(atomic.Bool), new(atomic.Bool)
	w.before.set(func(op string, arg any) error {
		switch s, is := arg.(*engine.Settlement); {
		case !is || op != "Settle":
		case away.Load():
			return engine.ErrUnavailable
		case limited.Load() && len(s.Tasks)+len(s.Owe)+len(s.Pay) > 1000:
			time.Sleep(10 * time.Second)
			return fmt.Errorf("no answer: %w", engine.ErrUnavailable)
		}
		return nil
	})
	return away, limited
}

// A start over such a tier goes through rows whose tasks have ended since, by the journal.
func TestStartOverASlowTierWithRowsThatEnded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away, limited := w.slowTier()
		var answers atomic.Bool
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 8, 4, 8
		w.start()
		var keys []engine.Key
		due := w.now() + 1000
		for i := range 1500 {
			name := fmt.Sprint(i)
			w.behave(name, func(*call) reply {
				if answers.Load() {
					return ok
				}
				return slow(15 * time.Second)
			})
			keys = append(keys, engine.Key{Timer: w.make(timer(name, at(due))), Due: due})
		}
		time.Sleep(30 * time.Second) // they have rows
		away.Store(true)
		answers.Store(true)
		time.Sleep(20 * time.Second) // they have ended
		w.crashes = append(w.crashes, w.now())
		w.kill()
		away.Store(false)
		limited.Store(true)
		time.Sleep(time.Second)
		w.start()
		time.Sleep(30 * time.Second)
		for _, k := range keys {
			if r := w.record(k); r.Status != engine.Succeeded {
				t.Fatalf("task %s is %s", k, r.Status)
			}
		}
	})
}

// What a step of the clock makes late is decided over such a tier.
func TestStepForwardOverASlowTier(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		_, limited := w.slowTier()
		w.start()
		for i := range 1500 {
			w.make(timer(fmt.Sprint(i), every(10*time.Second)))
		}
		time.Sleep(12 * time.Second)
		limited.Store(true)
		w.step(time.Hour)
		time.Sleep(time.Minute)
		for i := range 1500 {
			cs := w.of(fmt.Sprint(i))
			if c := cs[len(cs)-1]; w.now()-c.key.Due > 15_000 {
				t.Fatalf("timer %d was last called for %s, at %s", i, stamp(c.key.Due), stamp(w.now()))
			}
		}
	})
}

// The record of a task that had a row says so in itself, whether a settle stores the record
// or a start: the row may go in another piece, and only the record tells that the due is
// over.
func TestRecordOfARowIsKept(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				kept := map[engine.Key]bool{}
				var away atomic.Bool
				w.before.set(func(op string, arg any) error {
					s, is := arg.(*engine.Settlement)
					switch {
					case !is || op != "Settle":
						return nil
					case away.Load():
						return engine.ErrUnavailable
					}
					mu.Lock()
					defer mu.Unlock()
					for _, r := range s.Tasks {
						if r.Status == engine.Succeeded {
							before, is := kept[r.Key]
							kept[r.Key] = r.Kept && (before || !is)
						}
					}
					return nil
				})
				w.start()
				w.replies("slow", slow(40*time.Second))
				due := w.now() + 1000
				late := engine.Key{Timer: w.make(timer("slow", at(due), timeout(time.Minute))), Due: due}
				prompt := engine.Key{Timer: w.make(timer("prompt", at(due))), Due: due}
				time.Sleep(30 * time.Second) // the watermark is past the call, which has a row
				away.Store(crash)
				time.Sleep(15 * time.Second)
				if crash {
					w.kill()
					away.Store(false)
					w.start()
				}
				w.settle()
				mu.Lock()
				defer mu.Unlock()
				if got, is := kept[late]; !got {
					t.Errorf("of the task with a row: kept %t, stored %t", got, is)
				}
				if got, is := kept[prompt]; got || !is {
					t.Errorf("of the task without a row: kept %t, stored %t", got, is)
				}
			})
		})
	}
}

// The disk is nearly full, so successes are not recorded, and the process is killed between two pieces of a settle: the
// calls whose rows are gone have their records after the start, or their minute is noted.
func TestPiecesWithoutRecords(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var critical, stop atomic.Bool
		var pieces atomic.Int64
		w.config.DiskCritical = critical.Load
		w.before.set(func(op string, arg any) error {
			s, is := arg.(*engine.Settlement)
			switch {
			case !is || !critical.Load():
			case stop.Load():
				return engine.ErrUnavailable
			case len(s.Tasks)+len(s.Owe)+len(s.Pay) > 1000:
				return engine.ErrUnavailable // and smaller pieces are tried
			case len(s.Pay) > 0:
				pieces.Add(1)
				stop.Store(true)
			}
			return nil
		})
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 5000, 5000, 5000
		w.start()
		var keys []engine.Key
		due := w.now() + 1000
		for i := range 1500 {
			name := fmt.Sprint(i)
			w.behave(name, func(*call) reply { return slow(time.Duration(due+40_000-w.now()) * time.Millisecond) })
			keys = append(keys, engine.Key{Timer: w.make(timer(name, at(due), timeout(2*time.Minute))), Due: due})
		}
		time.Sleep(38 * time.Second) // they have rows
		critical.Store(true)
		time.Sleep(30 * time.Second)
		if pieces.Load() != 1 {
			t.Fatalf("%d pieces were stored", pieces.Load())
		}
		w.kill()
		critical.Store(false)
		w.start()
		w.settle()
		for _, k := range keys {
			if _, err := w.cold.Task(t.Context(), k); err != nil {
				t.Fatalf("%s has no record: %v", k, err)
			}
		}
		if left, err := w.cold.LeftOut(t.Context(), 0, engine.MaxDue); err != nil || len(left) != 1 {
			t.Errorf("minutes left out: %v, %v", left, err)
		}
	})
}
