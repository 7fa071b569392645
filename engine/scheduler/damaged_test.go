package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// damage makes the rows of a timer in the cold tier such as cannot be read.
func (w *world) damage(id engine.TimerID) (n int) {
	for _, o := range w.rowsOf(id) {
		w.damaged.Store(o.Key, true)
		n++
	}
	return n
}

// A row that cannot be read keeps no other from being called: not at a start, and not when
// its time comes. It is told of once, nothing of it is called, and it stays until it can be
// read: then it is called. A change that ends its generation cancels it.
func TestRowsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{true, false} {
		t.Run(fmt.Sprint("found by a start ", restart), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				for _, name := range []string{"stays", "deleted", "disabled", "good"} {
					w.replies(name, fail, ok)
				}
				later := func(name string) engine.TimerID {
					return w.make(timer(name, delay(time.Second), retry(2, 10*time.Minute, 1)))
				}
				stays, deleted, disabled := later("stays"), later("deleted"), later("disabled")
				later("good")
				time.Sleep(20 * time.Second)
				for _, id := range []engine.TimerID{stays, deleted, disabled} {
					if n := w.damage(id); n != 1 {
						t.Fatalf("%d rows, want that of a retry", n)
					}
				}
				violations := w.metric("xtimer_audit_violations_total")
				if restart {
					violations = 0
					w.crash(3 * time.Minute)
				}
				time.Sleep(20 * time.Minute) // the auditor looks every five
				if n := len(w.of("good")); n != 2 {
					t.Errorf("%d calls beside rows that cannot be read, want 2", n)
				}
				if n := len(w.of("stays")) + len(w.of("deleted")) + len(w.of("disabled")); n != 3 {
					t.Errorf("%d calls of rows that cannot be read, want the 3 of before", n)
				}
				if n := w.metric("xtimer_audit_violations_total") - violations; n != 3 {
					t.Errorf("%v rows are told of, want each once", n)
				}
				if v, err := w.Timer(t.Context(), stays); err != nil || v.Status == engine.Finished {
					t.Errorf("the timer is %s, %v: its task is pending", v.Status, err)
				}
				for id, end := range map[engine.TimerID]string{deleted: "delete", disabled: "disable"} {
					if err := ends[end](w, id); err != nil {
						t.Fatal(err)
					}
					w.settle()
					if rows, r := w.rowsOf(id), w.records(id); len(rows) > 0 || len(r) != 1 || r[0].Status != engine.Cancelled || len(r[0].Attempts) != 1 {
						t.Errorf("after a %s, %d rows are left, and history has %+v", end, len(rows), r)
					}
				}
				w.damaged.Clear()
				w.crash(time.Second)
				w.settle()
				if n := len(w.of("stays")); n != 2 {
					t.Errorf("%d calls of a task whose row can be read again, want 2", n)
				}
			})
		})
	}
}

// Rows that cannot be read in the lane of a target that is slow keep no others of the lane
// from being called.
func TestLaneWithDamagedRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 20, 4, 4, 4
		w.start()
		due := w.now() + 2_000
		var ids []engine.TimerID
		for i := range 400 {
			name := fmt.Sprint("n", i)
			w.replies(name, slow(time.Second))
			ids = append(ids, w.make(timer(name, at(due+int64(i)))))
		}
		time.Sleep(10 * time.Second)
		damaged := map[int]bool{}
		for i := 150; i < 400; i += 50 {
			if w.damage(ids[i]) != 1 {
				t.Fatalf("timer %d has no row", i)
			}
			damaged[i] = true
		}
		time.Sleep(3 * time.Minute)
		for i := range ids {
			want := 1
			if damaged[i] {
				want = 0
			}
			if n := len(w.of(fmt.Sprint("n", i))); n != want {
				t.Errorf("%d calls of timer %d, want %d", n, i, want)
			}
		}
		w.damaged.Clear()
		w.crash(time.Second)
		w.settle()
		for i := range damaged {
			if n := len(w.of(fmt.Sprint("n", i))); n != 1 {
				t.Errorf("%d calls of timer %d, whose row can be read again, want 1", n, i)
			}
		}
	})
}

// A start that finds a task in its journal writes the row of the task anew, if that cannot
// be read.
func TestDamagedRowThatTheJournalKnows(t *testing.T) {
	for name, answers := range map[string]reply{"fails": fail, "succeeds": ok, "does not answer": slow(time.Hour)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				w.replies("a", fail, answers, ok)
				id := w.make(timer("a", delay(time.Second), retry(3, 3*time.Minute, 1)))
				time.Sleep(20 * time.Second)
				away := w.outage("Settle")
				away.Store(true)
				time.Sleep(3 * time.Minute) // the second attempt is in the journal alone
				if n := len(w.of("a")); n != 2 || w.damage(id) != 1 {
					t.Fatalf("%d calls", n)
				}
				away.Store(false)
				w.crash(time.Second)
				time.Sleep(7 * time.Minute)
				r := w.records(id)
				if len(w.rowsOf(id)) != 0 || len(r) != 1 || r[0].Status != engine.Succeeded {
					t.Errorf("%d rows are left, and history has %+v", len(w.rowsOf(id)), *r[0])
				}
				if v := w.metric("xtimer_audit_violations_total"); v != 0 {
					t.Errorf("%v rows are told of as lost", v)
				}
			})
		})
	}
}

// A record of history that cannot be read keeps no start from going through the ranges that
// are owed, no range from being gone through and no change from being made; its due is over.
func TestRecordThatCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 20, 4, 4, 4
		w.start()
		var busy atomic.Bool
		busy.Store(true)
		var ids []engine.TimerID
		for i := range 10 {
			w.behave(fmt.Sprint(i), func(*call) reply {
				if busy.Load() {
					return slow(400 * time.Millisecond)
				}
				return ok
			})
			ids = append(ids, w.make(timer(fmt.Sprint(i), every(500*time.Millisecond))))
		}
		time.Sleep(time.Minute)
		damaged := map[engine.Key]bool{}
		for _, id := range ids {
			for i, r := range w.records(id) {
				if i%2 == 0 {
					damaged[r.Key] = true
					w.illegible.Store(r.Key, true)
				}
			}
		}
		w.crash(time.Second)
		time.Sleep(time.Minute)
		busy.Store(false)
		for i, id := range ids {
			listed := map[engine.Key]bool{}
			for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
				ts, next, err := w.Tasks(t.Context(), engine.TaskFilter{Timer: id}, before, 7)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range ts {
					listed[x.Key] = true
				}
				before = next
			}
			for _, r := range w.records(id) {
				if listed[r.Key] == damaged[r.Key] {
					t.Errorf("the task %s is listed: %v", r.Key, listed[r.Key])
				}
			}
			w.disable(id, 0)
			w.enable(id, engine.CatchUpAll)
			for k := range damaged {
				if n := len(w.callsOf(fmt.Sprint(i), k.Due)); k.Timer == id && n > 1 {
					t.Errorf("%d calls of the due %s", n, stamp(k.Due))
				}
			}
		}
	})
}

// The due of a record that cannot be read was called: the generation that a change begins while the
// clock is behind does not call it.
func TestDamagedRecordEndsItsDue(t *testing.T) {
	for name, change := range map[string]func(w *world, id engine.TimerID){
		"schedule": func(w *world, id engine.TimerID) {
			if err := w.reschedule(id, every(5*time.Second)); err != nil {
				w.t.Fatal(err)
			}
		},
		"disable and enable": func(w *world, id engine.TimerID) {
			w.disable(id, 0)
			w.enable(id, engine.CatchUpAll)
		},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				id := w.make(timer("a", every(10*time.Second)))
				time.Sleep(61 * time.Second)
				w.settle()
				records := w.records(id)
				if len(records) != 6 {
					t.Fatalf("%d records", len(records))
				}
				for _, i := range []int{0, 2, 3, 5} {
					w.illegible.Store(records[i].Key, true)
				}
				w.step(-4 * time.Minute)
				w.crash(time.Second)
				change(w, id)
				time.Sleep(6 * time.Minute)
				w.illegible.Clear()
				w.settle()
				for _, r := range records {
					if n := len(w.callsOf("a", r.Key.Due)); n != 1 {
						t.Errorf("%d calls of the due %s", n, stamp(r.Key.Due))
					}
				}
				if n := len(w.of("a")); n < 15 {
					t.Errorf("%d calls in all: the timer does not go on", n)
				}
			})
		})
	}
}

// A start goes on past the record of a skipped due that cannot be read.
func TestSkippedDueWhoseRecordCannotBeRead(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.unread = map[engine.TimerID]bool{}
		for i := range 20 {
			id := w.make(timer(fmt.Sprint(i), every(10*time.Second), misfire(engine.MisfireSkip, time.Hour)))
			w.unread[id] = true
		}
		time.Sleep(12 * time.Second)
		w.step(10 * time.Minute)
		time.Sleep(300 * time.Millisecond)
		n := 0
		for id := range w.unread {
			for _, r := range w.records(id) {
				if r.Status == engine.Skipped {
					w.illegible.Store(r.Key, true)
					n++
				}
			}
		}
		if n == 0 {
			t.Fatal("nothing was skipped")
		}
		w.crash(time.Second)
	})
}
