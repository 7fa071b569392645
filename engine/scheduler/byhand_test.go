package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/scheduler"
)

// failed makes a timer with so many dues, and gives their tasks, which have failed.
func (w *world) failed(n int64, options ...func(*engine.Definition)) (id engine.TimerID, ks []engine.Key) {
	w.t.Helper()
	w.replies("a", reject)
	d := timer("a", every(100*time.Millisecond), options...)
	d.Schedule.MaxRuns = n
	id = w.make(d)
	time.Sleep(time.Duration(n)*100*time.Millisecond + 10*time.Second)
	w.settle()
	for _, r := range w.records(id) {
		if r.Status == engine.Failed {
			ks = append(ks, r.Key)
		}
	}
	if len(ks) != int(n) {
		w.t.Fatalf("%d of %d tasks have failed", len(ks), n)
	}
	return id, ks
}

// runs has a timer run 50 times by hand, and settles.
func (w *world) runs(id engine.TimerID) (ks []engine.Key) {
	w.t.Helper()
	for range 50 {
		k, err := w.RunNow(w.t.Context(), id, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		ks = append(ks, k)
		time.Sleep(100 * time.Millisecond)
	}
	w.settle()
	return ks
}

// A task that has failed, is retried by hand and finds its timer busy is dead, as one that is stale then: it stays a
// failure that can be retried.
func TestRetryByHandOfABusyTimer(t *testing.T) {
	t.Run("skip", func(t *testing.T) {
		begin(t, func(t *testing.T, w *world) {
			w.replies("a", reject, slow(8*time.Second), ok)
			w.make(timer("a", every(10*time.Second), overlap(engine.OverlapSkip)))
			time.Sleep(23 * time.Second)
			k := w.of("a")[0].key
			if err := w.Redrive(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			w.settle()
			if r := w.record(k); r.Status != engine.Dead || r.Reason != engine.ReasonOverlap {
				t.Errorf("beside a call of its timer it is %v %s", r.Status, r.Reason)
			}
			if err := w.Redrive(t.Context(), k); err != nil {
				t.Error(err)
			}
			time.Sleep(6 * time.Second)
			w.settle()
			if r := w.record(k); r.Status != engine.Succeeded {
				t.Errorf("then it is %v %s", r.Status, r.Reason)
			}
		})
	})
	t.Run("queue", func(t *testing.T) {
		begin(t, func(t *testing.T, w *world) {
			id, ks := w.failed(150, overlap(engine.OverlapQueue))
			w.replies("a", slow(time.Second))
			for _, k := range ks {
				if err := w.Redrive(t.Context(), k); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(5 * time.Minute)
			w.settle()
			for _, r := range w.records(id) {
				if r.Status != engine.Succeeded && (r.Status != engine.Dead || r.Reason != engine.ReasonQueueFull) {
					t.Errorf("%v is %v %s", r.Key, r.Status, r.Reason)
				}
			}
		})
	})
}

// A task that waits outside memory after a retry or a run by hand is told as one that waits: by its key, to a dismiss
// and to a bulk retry.
func TestByHandOutsideMemory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(e *scheduler.Scheduler) { e.BoundGated(20) }
		w.start()
		id, ks := w.failed(50)
		w.SetRule(appApp, &pause)
		for _, k := range ks {
			if err := w.Redrive(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
		ks = append(ks, w.runs(id)...)
		if n := w.Resident(); n > 20 {
			t.Errorf("%d are in memory", n)
		}
		for _, k := range ks {
			if x, err := w.Task(t.Context(), k); err != nil || x.Status != engine.Waiting {
				t.Errorf("%v: %+v, %v", k, x, err)
			}
		}
		if _, err := w.Dismiss(t.Context(), ks[30]); err == nil {
			t.Error("a task that waits was dismissed")
		}
		op, err := w.StartBulk(t.Context(), change.Bulk{Action: change.RedriveAll, Tasks: engine.TaskFilter{App: "app"}})
		if err != nil || op.Total != 0 {
			t.Errorf("a bulk retry selects %+v, %v", op, err)
		}
		w.replies("a", ok)
		w.SetRule(appApp, nil)
		time.Sleep(time.Minute)
		w.settle()
		for _, k := range ks {
			if r := w.record(k); r == nil || r.Status != engine.Succeeded {
				t.Errorf("%v: %+v", k, r)
			}
		}
	})
}

// A bulk of retries by hand stays within the bound of the tasks of a lane in memory.
func TestRetriesByHandAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 200
		w.start()
		id, ks := w.failed(1500)
		w.replies("a", slow(time.Second))
		for _, k := range ks {
			if err := w.Redrive(t.Context(), k); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.Resident(); n > 500 {
			t.Errorf("%d tasks are in memory", n)
		}
		time.Sleep(10 * time.Minute)
		w.settle()
		for _, r := range w.records(id) {
			if r.Status != engine.Succeeded {
				t.Errorf("%v is %v %s", r.Key, r.Status, r.Reason)
			}
		}
	})
}

// A retry by hand or a dismiss of a task that has just ended does not wait for an older task of its shard, and neither
// does a disable.
func TestByHandBesideASlowCall(t *testing.T) {
	for _, what := range []string{"retry", "dismiss"} {
		t.Run(what, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", slow(30*time.Second), reject, ok)
				d := timer("a", every(time.Second), timeout(time.Minute))
				d.Schedule.MaxRuns = 2
				id := w.make(d)
				time.Sleep(2*time.Second + 200*time.Millisecond)
				k, asked := w.of("a")[1].key, time.Now()
				var err error
				if what == "retry" {
					err = w.Redrive(t.Context(), k)
				} else {
					_, err = w.Dismiss(t.Context(), k)
				}
				if took := time.Since(asked); err != nil || took > 2*time.Second {
					t.Errorf("after %v: %v", took, err)
				}
				w.disable(id, 0)
			})
		})
	}
}

// While the disk is nearly full, a success of which history has an earlier record gets its own.
func TestSuccessOfARetryOnAFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var critical atomic.Bool
		w.config.DiskCritical = critical.Load
		w.start()
		w.replies("a", fail, ok)
		w.replies("b", reject, ok)
		w.make(timer("a", delay(10*time.Second), retry(3, 30*time.Second, 1)))
		w.make(timer("b", delay(10*time.Second)))
		time.Sleep(35 * time.Second)
		retried, byHand := w.of("a")[0].key, w.of("b")[0].key
		critical.Store(true)
		if err := w.Redrive(t.Context(), byHand); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		w.settle()
		for _, k := range []engine.Key{retried, byHand} {
			if r, err := w.Task(t.Context(), k); err != nil || r.Status != engine.Succeeded {
				t.Errorf("%v: %+v, %v", k, r, err)
			}
		}
	})
}

// A task outside memory whose timer was disabled is shown as cancelled to a reader, though its row is still to be cancelled.
func TestOutsideMemoryOfADisabledTimer(t *testing.T) {
	defer scheduler.BoundEnded(5)()
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(e *scheduler.Scheduler) { e.BoundGated(20) }
		w.start()
		w.SetRule(appApp, &pause)
		id := w.make(timer("a", delay(100*time.Hour)))
		ks := w.runs(id)
		w.before.set(func(op string, arg any) error {
			if op == "Settle" {
				return engine.ErrUnavailable
			}
			return nil
		})
		w.disable(id, 0)
		for _, k := range ks {
			if x, err := w.Task(t.Context(), k); err != nil || x.Status != engine.Cancelled {
				t.Errorf("%v: %+v, %v", k, x, err)
			}
		}
		w.before.set(func(string, any) error { return nil })
	})
}

// A task outside memory that ends while it is read.
func TestOutsideMemoryWhileItEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.tune = func(e *scheduler.Scheduler) { e.BoundGated(20) }
		w.start()
		w.replies("a", ok)
		w.SetRule(appApp, &pause)
		id := w.make(timer("a", delay(100*time.Hour)))
		ks := w.runs(id)
		once := false
		w.before.set(func(op string, arg any) error {
			if op == "OwedPage" && !once {
				once = true
				w.SetRule(appApp, nil)
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		x, err := w.Task(t.Context(), ks[49])
		if err != nil || !once {
			t.Errorf("%+v, %v", x, err)
		}
		w.before.set(func(string, any) error { return nil })
	})
}
