package engine_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// What is due by minute is told once, however often the hour is filled; while it
// is, and when it cannot be, the former count is told. What is made meanwhile is
// counted too.
func TestDueByMinuteIsCountedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var lost, slow, full atomic.Bool
		w.warmFault = func(op string) error {
			switch {
			case op == "Load" && lost.CompareAndSwap(true, false):
				return engine.ErrGap
			case op == "Add" && slow.Load():
				time.Sleep(time.Second)
			case op == "Seal" && full.Load():
				return errWarm
			}
			return nil
		}
		look := func() []int64 {
			s, err := w.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.DueByMinute[10:40]
		}
		want := slices.Repeat([]int64{3}, 30)
		w.start()
		for i := range 3 {
			w.make(timer(fmt.Sprint("beat", i), every(time.Minute)))
		}
		time.Sleep(time.Minute)
		equal(t, "made", look(), want)
		lost.Store(true)
		full.Store(true)
		time.Sleep(time.Minute)
		equal(t, "while it cannot be filled", look(), want)
		full.Store(false)
		time.Sleep(2 * time.Minute)
		equal(t, "filled anew", look(), want)
		lost.Store(true)
		slow.Store(true)
		time.Sleep(time.Minute) // the load is over and the fill has begun
		slow.Store(false)
		w.make(timer("once", at(w.now()/60_000*60_000+30*60_000)))
		time.Sleep(5 * time.Second)
		want[20]++
		equal(t, "and once more", look(), want)
	})
}
