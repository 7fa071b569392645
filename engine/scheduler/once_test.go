package scheduler_test

import (
	"testing"
	"time"

	"xtimer/engine"
)

// at_most_once: a task that was begun when the process died may have been sent,
// and is never sent again.
func TestAtMostOnceBegunAndCrashed(t *testing.T) {
	for _, down := range []time.Duration{100 * time.Millisecond, time.Minute, 30 * time.Hour} {
		for _, after := range []time.Duration{200 * time.Millisecond, 20 * time.Second} {
			t.Run(down.String()+" after "+after.String(), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					w.replies("a", slow(time.Minute))
					id := w.make(timer("a", delay(time.Second), atMostOnce, timeout(2*time.Minute)))
					time.Sleep(time.Second + after)
					w.power(down)
					w.settle()
					equal(t, "calls", dues(w.of("a")), []int64{w.starts[0] + 1000})
					equal(t, "verdicts", w.verdicts(id, w.starts[0]), []string{"1s unknown may_have_been_sent"})
				})
			})
		}
	}
}

// So also when an attempt before it was provably not sent.
func TestAtMostOnceSecondAttemptCrashed(t *testing.T) {
	for _, wait := range []time.Duration{300 * time.Millisecond, 5 * time.Second} {
		t.Run(wait.String(), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", notSent, slow(time.Minute))
				id := w.make(timer("a", delay(time.Second), atMostOnce, timeout(2*time.Minute), retry(4, wait, 1)))
				time.Sleep(time.Second + wait + 500*time.Millisecond)
				w.power(time.Second)
				w.settle()
				equal(t, "calls", dues(w.of("a")), []int64{w.starts[0] + 1000})
				equal(t, "verdicts", w.verdicts(id, w.starts[0]), []string{"1s unknown may_have_been_sent"})
			})
		})
	}
}

// What provably was not sent is tried again; an answer is final, a timeout unknown.
func TestAtMostOnceOutcomes(t *testing.T) {
	for _, x := range []struct {
		name    string
		replies []reply
		calls   int
		want    string
	}{
		{"ok", []reply{ok}, 1, "1s succeeded"},
		{"500", []reply{fail}, 1, "1s failed rejected"},
		{"404", []reply{reject}, 1, "1s failed rejected"},
		{"timeout", []reply{timedOut}, 1, "1s unknown may_have_been_sent"},
		{"panic", []reply{{panic: true}}, 1, "1s unknown may_have_been_sent"},
		{"refused", []reply{notSent, notSent, ok}, 1, "1s succeeded"},
		{"always refused", []reply{notSent}, 0, "1s dead max_attempts"},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", x.replies...)
				id := w.make(timer("a", delay(time.Second), atMostOnce, retry(4, time.Second, 1)))
				time.Sleep(time.Minute)
				equal(t, "verdicts", w.verdicts(id, w.starts[0]), []string{x.want})
				if n := len(w.of("a")); n != x.calls {
					t.Errorf("%d calls, want %d", n, x.calls)
				}
			})
		})
	}
}

// A change of schedule while the call runs, and a crash: it is not repeated, and
// there is a record of it.
func TestChangedInFlightAndCrashed(t *testing.T) {
	for _, delivery := range []engine.Delivery{engine.AtLeastOnce, engine.AtMostOnce} {
		t.Run(delivery.String(), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", slow(time.Minute), ok)
				id := w.make(timer("a", every(10*time.Second), timeout(2*time.Minute), func(d *engine.Definition) { d.Delivery = delivery }))
				time.Sleep(10*time.Second + 300*time.Millisecond)
				if _, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
					d.Schedule = every(time.Hour)
					return d, nil
				}); err != nil {
					t.Fatal(err)
				}
				w.crash(100 * time.Millisecond)
				w.settle()
				if cs := w.of("a"); len(cs) != 1 {
					t.Errorf("%d calls, want one", len(cs))
				}
				if rs := w.records(id); len(rs) != 1 || !rs[0].Status.Final() {
					t.Errorf("what became of the call that was cut off: %q", w.verdicts(id, w.starts[0]))
				}
			})
		})
	}
}

// A delay that has run out is armed anew by being put again with something changed, and
// by nothing else: not by a change of its labels alone.
func TestFinishedDelayIsNotArmedByAPatch(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		d := timer("a", delay(time.Second))
		id := w.make(d)
		time.Sleep(5 * time.Second)
		w.settle()
		relabel := func(d engine.Definition) (engine.Definition, error) {
			d.Labels = []engine.Label{{Key: "k", Value: "v"}}
			return d, nil
		}
		v, err := w.Replace(t.Context(), id, 0, relabel)
		if err != nil || v.Version != 2 {
			t.Fatalf("version %d, %v", v.Version, err)
		}
		time.Sleep(5 * time.Second)
		if n := len(w.of("a")); n != 1 {
			t.Errorf("%d calls after the patch, want 1", n)
		}
		d.Labels = []engine.Label{{Key: "k", Value: "w"}}
		if _, _, err := w.Put(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if n := len(w.of("a")); n != 2 {
			t.Errorf("%d calls after the put, want 2", n)
		}
	})
}

// A timer whose last due is over is finished to a disable from then on, not from when the
// archive has it: it stays as it is. One that waits for a retry is not.
func TestDisableOfWhatIsOver(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		until := w.now() + 3_600_000
		w.replies("c", fail, ok)
		a := w.make(timer("a", delay(time.Second)))
		b := w.make(timer("b", engine.Schedule{Every: 500 * time.Millisecond, MaxRuns: 2}))
		c := w.make(timer("c", delay(time.Second), retry(3, 10*time.Minute, 1)))
		for _, wait := range []time.Duration{2500 * time.Millisecond, time.Minute} {
			time.Sleep(wait)
			for _, id := range []engine.TimerID{a, b} {
				if id == b && wait < time.Minute {
					continue // of a recurring one it is the watermark that tells
				}
				v, err := w.Disable(t.Context(), id, 0, "", until)
				if err != nil || v.Status != engine.Finished || v.Version != 1 {
					t.Errorf("after %v: %s, version %d, %v", wait, v.Status, v.Version, err)
				}
			}
		}
		if v, err := w.Disable(t.Context(), c, 0, "", until); err != nil || v.Status != engine.Disabled {
			t.Errorf("what waits for a retry: %s, %v", v.Status, err)
		}
		time.Sleep(20 * time.Minute)
		if n := len(w.of("c")); n != 1 {
			t.Errorf("%d calls, of which %d after its disable", n, n-1)
		}
	})
}
