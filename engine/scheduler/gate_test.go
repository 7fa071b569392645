package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
)

// edits are the changes of a timer after whose answer nothing of it as it was is sent.
var edits = map[string]func(w *world, id engine.TimerID) (change.DeleteResult, error){
	"delete": func(w *world, id engine.TimerID) (change.DeleteResult, error) {
		return w.Delete(w.t.Context(), id, 0)
	},
	"disable": func(w *world, id engine.TimerID) (change.DeleteResult, error) {
		_, err := w.Disable(w.t.Context(), id, 0, "", 0)
		return "", err
	},
	"another schedule": func(w *world, id engine.TimerID) (change.DeleteResult, error) {
		return "", w.reschedule(id, delay(time.Hour))
	},
	"another URL": func(w *world, id engine.TimerID) (change.DeleteResult, error) {
		_, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Callback.URL += "/changed"
			return d, nil
		})
		return "", err
	},
}

// preparations are what may take its time before a first byte.
var preparations = map[string]func(w *world) []func(*engine.Definition){
	"dial": func(w *world) []func(*engine.Definition) {
		w.replies("a", reply{dial: 3 * time.Second})
		return nil
	},
	"dial in vain": func(w *world) []func(*engine.Definition) {
		w.replies("a", reply{dial: 3 * time.Second, class: engine.ClassNotSent}, ok)
		return nil
	},
	"dial for a retry": func(w *world) []func(*engine.Definition) {
		w.replies("a", fail, reply{dial: 3 * time.Second})
		return []func(*engine.Definition){retry(4, time.Millisecond, 1)}
	},
	"note of at most once": func(w *world) []func(*engine.Definition) {
		w.journal.tune(0, 3*time.Second)
		return []func(*engine.Definition){atMostOnce}
	},
}

// A change that is answered while a call is being prepared is the last word: of
// what stood before no byte is sent, and the task is as if it had waited.
func TestChangeBeforeTheFirstByte(t *testing.T) {
	for how, prepare := range preparations {
		for what, edit := range edits {
			t.Run(how+", "+what, func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					id := w.make(timer("a", delay(time.Second), prepare(w)...))
					time.Sleep(2 * time.Second)
					tries := len(w.of("a")) // which a retry has behind it
					result, err := edit(w, id)
					if err != nil || result != "" && result != change.DeleteCancelled {
						t.Fatalf("%q, %v", result, err)
					}
					w.journal.tune(0, 0)
					time.Sleep(10 * time.Second)
					w.settle()
					calls := w.of("a")[tries:]
					rec := w.records(id)[0]
					if what == "another URL" {
						if len(calls) != 1 || calls[0].url != "http://127.0.0.1:1/a/changed" || calls[0].attempt != tries+1 {
							t.Errorf("calls after the change: %+v", calls)
						}
						if rec.Status != engine.Succeeded || len(rec.Attempts) != tries+1 {
							t.Errorf("the record: %+v", rec)
						}
						return
					}
					if len(calls) != 0 {
						t.Errorf("calls after the change: %+v", calls)
					}
					if rec.Status != engine.Cancelled || len(rec.Attempts) != tries {
						t.Errorf("the record: %+v", rec)
					}
				})
			})
		}
	}
}

// A change that fails lets the call go on that was being prepared: once, with its
// number, and late.
func TestChangeThatFailsBeforeTheFirstByte(t *testing.T) {
	for how, prepare := range preparations {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.before.set(func(op string, arg any) error {
					if c, is := arg.(*engine.Change); is && op == "Apply" && c.Timer == nil {
						time.Sleep(5 * time.Second)
						return &engine.Fault{Kind: engine.FaultConflict, Code: "no"}
					}
					return nil
				})
				w.start()
				id := w.make(timer("a", delay(time.Second), prepare(w)...))
				time.Sleep(2 * time.Second)
				tries := len(w.of("a"))
				if _, err := w.Delete(t.Context(), id, 0); code(err) != "no" {
					t.Fatal(err)
				}
				w.journal.tune(0, 0)
				time.Sleep(10 * time.Second)
				w.settle()
				calls := w.of("a")[tries:]
				if len(calls) != 1 || calls[0].attempt != tries+1 || calls[0].at-calls[0].key.Due < 6000 {
					t.Errorf("calls: %+v", calls)
				}
				if rec := w.records(id)[0]; rec.Status != engine.Succeeded || len(rec.Attempts) != tries+1 {
					t.Errorf("the record: %+v", rec)
				}
			})
		})
	}
}

// A change waits for a first byte that is being written, and then says so.
func TestChangeWhileTheFirstByteIsWritten(t *testing.T) {
	for what, edit := range edits {
		t.Run(what, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", reply{write: 300 * time.Millisecond, after: time.Second})
				id := w.make(timer("a", delay(time.Second)))
				time.Sleep(1100 * time.Millisecond)
				result, err := edit(w, id)
				if err != nil || result != "" && result != change.DeleteInFlight {
					t.Fatalf("%q, %v", result, err)
				}
				if calls := w.of("a"); len(calls) != 1 || calls[0].at > w.now() {
					t.Errorf("when it was answered: %+v", calls)
				}
				time.Sleep(10 * time.Second)
				w.settle()
				if calls := w.of("a"); len(calls) != 1 {
					t.Errorf("%+v", calls)
				}
				if rec := w.records(id)[0]; rec.Status != engine.Succeeded {
					t.Errorf("the record: %+v", rec)
				}
			})
		})
	}
}

// A process that dies while a call is prepared, or set aside, calls at least once
// again, and at most once not.
func TestCrashBeforeTheFirstByte(t *testing.T) {
	for i, opts := range [][]func(*engine.Definition){nil, {atMostOnce}} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", reply{dial: time.Minute}, ok)
				id := w.make(timer("a", delay(time.Second), opts...))
				time.Sleep(20 * time.Second) // the watermark has passed it
				w.crash(time.Second)
				w.settle()
				want, calls := engine.Succeeded, 1
				if i == 1 {
					want, calls = engine.Unknown, 0
				}
				if n := len(w.of("a")); n != calls {
					t.Errorf("%d calls", n)
				}
				if rec := w.records(id)[0]; rec.Status != want {
					t.Errorf("the record: %+v", rec)
				}
			})
		})
	}
}

// A clock that is set back between the last look at it and the first byte makes no record
// of an early call.
func TestClockSetBackAtTheFirstByte(t *testing.T) {
	for how, delivery := range map[string]func(*engine.Definition){
		"at least once": func(*engine.Definition) {},
		"at most once":  atMostOnce,
	} {
		t.Run(how, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", reply{write: 300 * time.Millisecond})
				id := w.make(timer("a", delay(time.Second), delivery))
				time.Sleep(1100 * time.Millisecond)
				w.step(-time.Minute)
				time.Sleep(2 * time.Minute)
				w.settle()
				rec := w.records(id)[0]
				if at := rec.Attempts[0].Started / 1000; at < rec.Key.Due || at > rec.Key.Due+200 || rec.Lateness < 0 {
					t.Errorf("due %s, called at %s, %v late", stamp(rec.Key.Due), stamp(at), rec.Lateness)
				}
			})
		})
	}
}
