package scheduler_test

import (
	"fmt"
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
		w.before = func(op string, arg any) error {
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
		}
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
