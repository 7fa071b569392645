package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
)

// What was in flight when its timer was deleted or changed, and then lost its process,
// has a whole record: the attempt, whose it was, and of at most once that nobody knows.
func TestCrashAfterAChangeInFlight(t *testing.T) {
	once := func(d engine.Definition) engine.Definition { d.Delivery = engine.AtMostOnce; return d }
	again := func(d engine.Definition) engine.Definition { d.Delivery = engine.AtLeastOnce; return d }
	changed := func(to func(engine.Definition) engine.Definition) func(w *world, id engine.TimerID) error {
		return func(w *world, id engine.TimerID) error {
			_, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				d.Schedule = engine.Schedule{Every: time.Hour}
				return to(d), nil
			})
			return err
		}
	}
	remove := func(w *world, id engine.TimerID) error {
		result, err := w.Delete(w.t.Context(), id, 0)
		if err == nil && result != change.DeleteInFlight {
			w.t.Errorf("the delete says %q", result)
		}
		return err
	}
	for _, x := range []struct {
		name   string
		was    func(engine.Definition) engine.Definition
		change func(w *world, id engine.TimerID) error
		status engine.TaskStatus
		reason string
	}{
		{"deleted", again, remove, engine.Cancelled, engine.ReasonDeleted},
		{"at most once, deleted", once, remove, engine.Unknown, engine.ReasonMayHaveBeen},
		{"changed", again, changed(once), engine.Cancelled, engine.ReasonReplaced},
		{"at most once, changed", once, changed(again), engine.Unknown, engine.ReasonMayHaveBeen},
	} {
		t.Run(x.name, func(t *testing.T) {
			for _, settled := range []bool{false, true} {
				begin(t, func(t *testing.T, w *world) {
					w.replies("a", slow(time.Minute))
					d := x.was(timer("a", delay(time.Second), timeout(2*time.Minute)))
					id := w.make(d)
					time.Sleep(2 * time.Second)
					if settled {
						time.Sleep(20 * time.Second)
					}
					if err := x.change(w, id); err != nil {
						t.Fatal(err)
					}
					w.power(time.Second)
					w.settle()
					ts, _, err := w.cold.Tasks(t.Context(), engine.TaskFilter{App: "app"}, engine.Key{}, 10)
					if err != nil || len(ts) != 1 {
						t.Fatalf("%d records, %v", len(ts), err)
					}
					r := ts[0]
					if r.Status != x.status || r.Reason != x.reason || r.Name != "a" || len(r.Attempts) != 1 || r.Attempts[0].ErrorClass != engine.ReasonCrashed {
						t.Errorf("%+v", r)
					}
				})
			}
		})
	}
}

// A process that dies with the notes of several attempts unsynced makes them again:
// each is marked, and so is what comes after them.
func TestEachRepeatIsMarked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.journal.tune(time.Hour, 0)
		away := w.outage("Settle")
		w.start()
		w.replies("a", fail, fail, fail, fail, fail, fail, ok)
		w.make(timer("a", delay(2*time.Second), retry(8, 100*time.Millisecond, 1)))
		time.Sleep(time.Second)
		away.Store(true)
		time.Sleep(1250 * time.Millisecond)
		before := w.of("a")
		away.Store(false)
		w.power(time.Second)
		w.journal.tune(0, 0)
		w.settle()
		after := w.of("a")[len(before):]
		if len(before) != 3 || len(after) != 4 {
			t.Fatalf("%d calls before, %d after", len(before), len(after))
		}
		for i, c := range after {
			if c.attempt != i+1 || !c.redelivered {
				t.Errorf("call %d after the start: attempt %d, marked %v", i+1, c.attempt, c.redelivered)
			}
		}
	})
}

// callsWithoutTrace has a timer that is due each minute called right before a power failure: no trace is left of the
// call, and the start skips the due as a misfire.
func (w *world) callsWithoutTrace() (id engine.TimerID, due int64) {
	w.journal.tune(time.Hour, 0)
	away := w.outage("Settle")
	w.start()
	due = w.now() + 60_000
	id = w.make(timer("a", every(time.Minute), misfire(engine.MisfireSkip, time.Hour)))
	time.Sleep(50 * time.Second)
	away.Store(true)
	time.Sleep(10*time.Second + time.Millisecond)
	away.Store(false)
	w.power(30 * time.Second)
	w.journal.tune(0, 0)
	time.Sleep(time.Second)
	return id, due
}

// wantMarked checks that the first two calls are of one due, of which the second is marked, and a third, if any, is not.
func (w *world) wantMarked(n int) {
	w.t.Helper()
	cs := w.of("a")
	if len(cs) != n || cs[0].key != cs[1].key || !cs[1].redelivered || n > 2 && cs[2].redelivered {
		w.t.Errorf("called: %+v", cs)
	}
	w.settle()
}

// If the timer gets the due again that was called without a trace, by another definition, the call is marked: the former
// process may have made it.
func TestDueOfAFormerDefinitionIsMarked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		id, due := w.callsWithoutTrace()
		if err := w.reschedule(id, engine.Schedule{At: due}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		w.wantMarked(2)
	})
}

// So is the call if the due comes again by a clock that was ahead, and is reset.
func TestDueOfAResetClockIsMarked(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.callsWithoutTrace()
		w.step(-50 * time.Second)
		time.Sleep(time.Second)
		if _, err := w.ResetClock(t.Context(), false, change.Part{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		w.wantMarked(3)
	})
}
