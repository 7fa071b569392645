package scheduler_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/quota"
)

// stock is what the app of the world's timers has.
func (w *world) stock() quota.Size {
	w.t.Helper()
	u := w.QuotaUse(w.t.Context(), "app")
	if !u.HasStock {
		w.t.Fatal("the stock is not known")
	}
	return u.Stock
}

// exceeded fails the test unless an error is that of a stock which is used up.
func (w *world) exceeded(err error) {
	w.t.Helper()
	var f *engine.Fault
	if !errors.As(err, &f) || f.Kind != engine.FaultExceeded || f.Code != "quota_exceeded" {
		w.t.Errorf("the error is %v", err)
	}
}

func (w *world) create(name string, s engine.Schedule) error {
	return w.Create(w.t.Context(), timer(name, s), nil).Err
}

// An app creates as many timers as its quota allows: those count that it has already, and
// those do not that were deleted or have ended, over a crash too.
func TestAQuotaOfTimers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		first := w.make(timer("first", every(time.Hour)))
		w.make(timer("shot", at(w.now()+30_000)))
		w.limitApp(quota.Limits{Timers: 4})
		if s := w.stock(); s.Timers != 2 {
			t.Fatalf("%+v", s)
		}
		for _, name := range []string{"a", "b"} {
			if err := w.create(name, every(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		w.exceeded(w.create("c", every(time.Hour)))
		if err := w.create("a", every(time.Hour)); err != nil {
			t.Errorf("a create of a timer that is there: %v", err)
		}
		if _, _, err := w.Put(t.Context(), timer("b", every(time.Minute)), 0); err != nil {
			t.Errorf("a change: %v", err)
		}
		if _, err := w.Disable(t.Context(), first, 0, "", 0); err != nil {
			t.Error(err)
		}
		w.crash(time.Second)
		w.exceeded(w.create("c", every(time.Hour)))
		if _, err := w.Delete(t.Context(), first, 0); err != nil {
			t.Error(err)
		}
		if err := w.create("c", every(time.Hour)); err != nil {
			t.Errorf("after a delete: %v", err)
		}
		w.exceeded(w.create("d", every(time.Hour)))
		time.Sleep(90 * time.Second)
		if err := w.create("d", every(time.Hour)); err != nil {
			t.Errorf("after a one-shot has ended: %v", err)
		}
		if n := w.metric(`xtimer_quota_refusals_total{what="timers"}`); n != 2 { // since the start
			t.Errorf("%v refusals are counted", n)
		}
		_, _, err := w.Put(t.Context(), timer("shot", at(w.now()+30_000)), 0)
		w.exceeded(err)
		w.limitApp(quota.Limits{Timers: 5})
		if _, _, err := w.Put(t.Context(), timer("shot", at(w.now()+30_000)), 0); err != nil {
			t.Error(err)
		}
		if s := w.stock(); s.Timers != 5 {
			t.Errorf("%+v", s)
		}
	})
}

// A change that adds bytes beyond the quota is refused, and changes nothing.
func TestAQuotaOfBytes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.limitApp(quota.Limits{Bytes: 1000})
		before := w.stock().Bytes
		d := timer("a", every(time.Hour))
		d.Callback.Body = make([]byte, 600)
		w.make(d)
		was := w.stock().Bytes
		other := timer("b", every(time.Hour))
		other.Callback.Body = make([]byte, 600)
		w.exceeded(w.Create(t.Context(), other, nil).Err)
		d.Callback.Body = make([]byte, 1100)
		_, _, err := w.Put(t.Context(), d, 0)
		w.exceeded(err)
		if n := w.stock().Bytes; n != was || n < before+600 {
			t.Errorf("%d bytes, before %d", n, was)
		}
		d.Callback.Body = make([]byte, 100)
		if _, _, err := w.Put(t.Context(), d, 0); err != nil {
			t.Error(err)
		}
		if err := w.Create(t.Context(), other, nil).Err; err != nil {
			t.Errorf("after the other body was made smaller: %v", err)
		}
		w.crash(time.Second)
		if n := w.stock().Bytes; n != was+100 {
			t.Errorf("%d bytes after the start", n)
		}
	})
}

// However many create at once, and while the quota is set, the app has as many timers as its
// quota allows.
func TestCreatesRaceForAQuota(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		var made atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for j := range 20 {
					if w.create(fmt.Sprint(i, "-", j), every(time.Hour)) == nil {
						made.Add(1)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(3 * time.Millisecond)
		w.limitApp(quota.Limits{Timers: 100})
		all.Wait()
		if s := w.stock(); s.Timers != 100 || made.Load() != 100 {
			t.Errorf("%+v, %d were made", s, made.Load())
		}
	})
}

// A create that failed gives its room back.
func TestAFailedCreateTakesNoRoom(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.limitApp(quota.Limits{Timers: 1})
		w.make(timer("a", every(time.Hour)))
		ts := []engine.Definition{timer("a", every(time.Minute)), timer("b", every(time.Hour))}
		for i, c := range w.CreateAll(t.Context(), ts) {
			if c.Err == nil {
				t.Errorf("create %d has no error", i)
			}
		}
		w.limitApp(quota.Limits{Timers: 2})
		if err := w.create("b", every(time.Hour)); err != nil {
			t.Error(err)
		}
		if s := w.stock(); s.Timers != 2 {
			t.Errorf("%+v", s)
		}
	})
}

// A create in doubt keeps its room until it is known whether it was made.
func TestAQuotaAndACreateInDoubt(t *testing.T) {
	for _, made := range []bool{false, true} {
		bubble(t, func(t *testing.T, w *world) {
			var doubt, away atomic.Bool
			w.before.set(func(op string, arg any) error {
				switch {
				case op == "Apply" && doubt.CompareAndSwap(true, false):
					away.Store(true)
					if made {
						if _, err := w.cold.Apply(t.Context(), arg.(*engine.Change)); err != nil {
							t.Error(err)
						}
					}
					return engine.ErrUnavailable
				case op == "Settle" && away.Load():
					return engine.ErrUnavailable
				}
				return nil
			})
			w.start()
			w.limitApp(quota.Limits{Timers: 2})
			w.make(timer("a", every(time.Hour)))
			doubt.Store(true)
			if err := w.create("b", every(time.Hour)); !errors.Is(err, engine.ErrUnavailable) {
				t.Fatal(err)
			}
			w.exceeded(w.create("c", every(time.Hour)))
			away.Store(false)
			time.Sleep(5 * time.Second)
			if err := w.create("c", every(time.Hour)); made {
				w.exceeded(err)
			} else if err != nil {
				t.Error(err)
			}
			if s := w.stock(); s.Timers != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}
