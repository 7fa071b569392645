package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// waiting is a world with a timer whose first calls are not answered and whose others have
// failed: most of them are rows, whose retries are far.
func waiting(t *testing.T, during time.Duration, before func(w *world), f func(w *world, id engine.TimerID, from int64)) {
	t.Helper()
	bubble(t, func(_ *testing.T, w *world) {
		before(w)
		w.start()
		rs := []reply{fail}
		for range flying {
			rs = append([]reply{slow(5 * time.Minute)}, rs...)
		}
		w.replies("a", rs...)
		from := w.now()
		id := w.make(timer("a", every(20*time.Millisecond), timeout(10*time.Minute), retry(3, time.Hour, 1)))
		time.Sleep(during)
		f(w, id, from)
	})
}

// flying is how many of its calls are not answered.
const flying = 8

// rowsOf are the rows of a timer in the cold tier.
func (w *world) rowsOf(id engine.TimerID) []engine.Owed {
	w.t.Helper()
	rows, err := w.cold.OwedPage(w.t.Context(), id, -1, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	return rows
}

// ends are the changes that end a generation.
var ends = map[string]func(w *world, id engine.TimerID) error{
	"delete":     func(w *world, id engine.TimerID) error { _, err := w.Delete(w.t.Context(), id, 0); return err },
	"disable":    func(w *world, id engine.TimerID) error { _, err := w.Disable(w.t.Context(), id, 0, "", 0); return err },
	"reschedule": func(w *world, id engine.TimerID) error { return w.reschedule(id, every(time.Hour)) },
	"enable": func(w *world, id engine.TimerID) error {
		w.disable(id, 0)
		_, err := w.Enable(w.t.Context(), id, 0, engine.CatchUpNone)
		return err
	},
}

// A change of a timer with many tasks that wait answers when one commit with some of
// them is made; the others are cancelled in pieces after it, nothing of them is called,
// and to readers they are over at once.
func TestEndOfATimerWithManyWaiting(t *testing.T) {
	defer scheduler.BoundEnded(100)()
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			most, apply := 0, 0
			waiting(t, 40*time.Second, func(w *world) {
				w.before.set(func(op string, arg any) error {
					switch x := arg.(type) {
					case *engine.Change:
						apply = max(apply, len(x.Pay), len(x.Owe))
					case *engine.Settlement:
						if op == "Settle" && len(x.Marks) == 0 {
							most = max(most, len(x.Pay))
						}
					}
					return nil
				})
			}, func(w *world, id engine.TimerID, from int64) {
				if n := len(w.rowsOf(id)); n < 1000 {
					t.Fatalf("only %d rows wait", n)
				}
				calls := len(w.of("a"))
				apply = 0
				if err := end(w, id); err != nil {
					t.Fatal(err)
				}
				at := w.now()
				open := engine.TaskFilter{Timer: id, Statuses: []engine.TaskStatus{engine.Waiting, engine.Retrying}, To: at}
				if ts, _, err := w.Tasks(t.Context(), open, engine.Key{}, 1000); err != nil || len(ts) > 0 {
					t.Errorf("%d tasks are open, %v", len(ts), err)
				}
				if n := w.metric("xtimer_tasks_overdue"); n > 0 {
					t.Errorf("%v tasks are overdue", n)
				}
				w.settle()
				if n := len(w.rowsOf(id)); n != flying && name != "enable" {
					t.Errorf("%d rows are left, with %d calls in flight", n, flying)
				}
				if apply > 120 || most > 200 {
					t.Errorf("the change's commit had %d rows, and one after it %d", apply, most)
				}
				if name == "enable" {
					w.disable(id, 0)
				} else if n := len(w.of("a")) - calls; n > 0 {
					t.Errorf("%d calls after the change", n)
				}
				time.Sleep(6 * time.Minute)
				if n := len(w.rowsOf(id)); n > 0 {
					t.Errorf("%d rows are left", n)
				}
				if w.accounted(id, from, at-20, 20); t.Failed() {
					return
				}
				reasons := map[string]bool{}
				for _, r := range w.records(id) {
					if r.Status == engine.Cancelled {
						reasons[r.Reason] = true
					}
					if r.App != "app" || r.Name != "a" {
						t.Fatalf("a record without its timer: %+v", *r)
					}
				}
				if len(reasons) != 1 {
					t.Errorf("reasons are %v", reasons)
				}
			})
		})
	}
}

// A timer shows its last task as the task shows itself, also before the row of the task is
// cancelled.
func TestLastTaskOfATimerThatEnded(t *testing.T) {
	defer scheduler.BoundEnded(10)()
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", fail)
		id := w.make(timer("a", every(time.Second), retry(3, time.Hour, 1), func(d *engine.Definition) { d.Schedule.MaxRuns = 100 }))
		time.Sleep(15 * time.Minute) // until no task is in memory
		if _, err := w.Disable(t.Context(), id, 0, "", 0); err != nil {
			t.Fatal(err)
		}
		v, err := w.Timer(t.Context(), id)
		if err != nil || v.LastTask == nil {
			t.Fatalf("%+v, %v", v.LastTask, err)
		}
		one, err := w.Task(t.Context(), v.LastTask.Key)
		if err != nil || one.Status != engine.Cancelled || v.LastTask.Status != one.Status {
			t.Errorf("the timer shows its last task as %v, and the task is %v, %v", v.LastTask.Status, one.Status, err)
		}
	})
}

// Wherever a process is killed while it cancels what waited, the next one ends with each
// of it cancelled once.
func TestKillWhileRowsEnd(t *testing.T) {
	defer scheduler.BoundEnded(35)()
	for name, end := range ends {
		for kill := 0; kill < 16; kill += 5 { // before or after the n-th settle
			t.Run(fmt.Sprint(name, kill), func(t *testing.T) {
				var armed atomic.Int64
				reached, killed := make(chan struct{}), make(chan struct{})
				at := func(op string, kind int64) {
					if op == "Settle" && armed.Load() > 0 && int64(kill%2) == kind && armed.Add(-1) == 0 {
						close(reached)
						<-killed
					}
				}
				waiting(t, 5*time.Second, func(w *world) {
					reached, killed = make(chan struct{}), make(chan struct{}) // of the bubble
					w.before.set(func(op string, _ any) error { at(op, 0); return nil })
					w.after.set(func(op string, _ any) { at(op, 1) })
				}, func(w *world, id engine.TimerID, from int64) {
					if err := end(w, id); err != nil {
						t.Fatal(err)
					}
					acknowledged, calls := w.now(), len(w.of("a"))
					armed.Store(int64(kill/2) + 1)
					<-reached
					w.crashes = append(w.crashes, w.now())
					w.kill()
					close(killed)
					time.Sleep(time.Second)
					w.start()
					time.Sleep(10 * time.Second)
					if n := len(w.rowsOf(id)); n > 0 && name != "enable" {
						t.Errorf("%d rows are left", n)
					}
					if n := len(w.of("a")) - calls; n > 0 && name != "enable" {
						t.Errorf("%d calls after the change", n)
					}
					if name == "enable" {
						w.disable(id, 0)
						return
					}
					w.accounted(id, from, acknowledged-20, 20)
					begun := 0
					for _, r := range w.records(id) {
						if len(r.Attempts) > 0 {
							begun++
						}
						if r.Status != engine.Cancelled || r.Name != "a" {
							t.Fatalf("a record of what was cancelled: %+v", *r)
						}
					}
					if begun != calls {
						t.Errorf("%d records have attempts, of %d calls", begun, calls)
					}
				})
			})
		}
	}
}

// An answer that is lost while rows are cancelled hides none of them from those who watch.
func TestLostAnswerWhileRowsEnd(t *testing.T) {
	defer scheduler.BoundEnded(100)()
	var lose atomic.Bool
	waiting(t, 40*time.Second, func(w *world) {
		w.before.set(func(op string, arg any) error {
			s, _ := arg.(*engine.Settlement)
			if op == "Settle" && len(s.Pay) > 0 && len(s.Marks) == 0 && lose.CompareAndSwap(true, false) {
				return errors.Join(w.cold.Settle(w.t.Context(), s), engine.ErrUnavailable)
			}
			return nil
		})
	}, func(w *world, id engine.TimerID, _ int64) {
		s := w.Subscribers().Subscribe(w.t.Context(), engine.TaskFilter{Timer: id}, nil)
		before := w.metric(`xtimer_fires_total{result="cancelled"}`)
		lose.Store(true)
		if _, err := w.Delete(w.t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if lose.Load() {
			t.Fatal("no answer was lost")
		}
		cancelled := 0
		for _, r := range w.records(id) {
			if r.Status == engine.Cancelled {
				cancelled++
			}
		}
		told := 0
		for {
			e, ok, err := s.Next(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if e.Task != nil && e.Task.Status == engine.Cancelled {
				told++
			}
		}
		if n := int(w.metric(`xtimer_fires_total{result="cancelled"}`) - before); told != cancelled || n != cancelled {
			t.Errorf("%d were told and %d counted, of %d", told, n, cancelled)
		}
	})
}

// What a change left to be cancelled in pieces is cancelled as that change says, by the
// schedule of then, also by another change that is made before.
func TestChangeOfATimerWithFormerRows(t *testing.T) {
	defer scheduler.BoundEnded(2)()
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage("OwedPage")
		var armed atomic.Bool
		w.after.set(func(op string, _ any) {
			if op == "Apply" && armed.Load() {
				away.Store(true) // nothing of what is left is cancelled
			}
		})
		from := w.now()
		ids, _ := w.crowdedBy(3)
		time.Sleep(time.Minute)
		id := ids[0]
		armed.Store(true)
		if err := w.reschedule(id, every(700*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		armed.Store(false)
		at := w.now()
		time.Sleep(1500 * time.Millisecond)
		if w.rowsOf(id)[0].Generation != 1 {
			t.Fatal("no row was left")
		}
		away.Store(false)
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		reasons := map[string]int{}
		n := int64(0)
		for _, r := range w.records(id) {
			if r.Key.Due <= at && r.Generation == 1 {
				n += max(r.Count, 1)
			}
			if r.Status == engine.Cancelled && r.Generation == 1 {
				reasons[r.Reason]++
			}
		}
		if want := int64(len(grid(from, at, 500, from))); n != want {
			t.Errorf("%d dues of %d have a record", n, want)
		}
		if len(reasons) != 1 || reasons[engine.ReasonReplaced] == 0 {
			t.Errorf("reasons are %v", reasons)
		}
	})
}

// What is stored as cancelled after an outage and a restart is told to a reader that had
// seen later endings before.
func TestLateCancelledAreToldAfterARestart(t *testing.T) {
	defer scheduler.BoundEnded(100)()
	var fails atomic.Bool
	waiting(t, 40*time.Second, func(w *world) {
		w.before.set(func(op string, arg any) error {
			s, _ := arg.(*engine.Settlement)
			if op == "Settle" && fails.Load() && len(s.Pay) > 0 && len(s.Marks) == 0 {
				return engine.ErrUnavailable
			}
			return nil
		})
	}, func(w *world, id engine.TimerID, _ int64) {
		w.make(timer("b", every(time.Second)))
		ctx, leave := context.WithCancel(w.t.Context())
		s := w.Subscribers().Subscribe(ctx, engine.TaskFilter{}, nil)
		fails.Store(true)
		if _, err := w.Delete(w.t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		told := map[engine.Key]bool{}
		gap := false
		for {
			e, ok, err := s.Next(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if e.Task != nil {
				told[e.Task.Key] = true
			}
		}
		last := s.Position()
		leave()
		w.kill()
		fails.Store(false)
		w.start()
		time.Sleep(time.Minute)
		s = w.Subscribers().Subscribe(w.t.Context(), engine.TaskFilter{}, &last)
		for {
			e, ok, err := s.Next(w.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if e.Task != nil {
				told[e.Task.Key] = true
			} else {
				gap = true
			}
		}
		n := 0
		for _, r := range w.records(id) {
			if r.Status == engine.Cancelled && !told[r.Key] {
				n++
			}
		}
		if n > 0 && !gap {
			t.Errorf("%d were missed", n)
		}
	})
}
