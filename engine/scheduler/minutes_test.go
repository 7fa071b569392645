package scheduler_test

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
		w.warmFault.set(func(op string) error {
			switch {
			case op == "Load" && lost.CompareAndSwap(true, false):
				return engine.ErrGap
			case op == "Add" && slow.Load():
				time.Sleep(20 * time.Second)
			case op == "Seal" && full.Load():
				return errWarm
			}
			return nil
		})
		look := func() []int64 {
			s, err := w.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return s.DueByMinute[10:40]
		}
		want := slices.Repeat([]int64{3}, 30)
		w.start()
		time.Sleep(time.Second) // the hour is filled
		for i := range 3 {
			w.make(timer(fmt.Sprint("beat", i), every(time.Minute)))
		}
		equal(t, "made", look(), want)
		w.crash(time.Second)
		time.Sleep(time.Minute)
		equal(t, "after a start", look(), want)
		lost.Store(true)
		full.Store(true)
		time.Sleep(time.Minute)
		equal(t, "while it cannot be filled", look(), want)
		full.Store(false)
		time.Sleep(2 * time.Minute)
		equal(t, "filled anew", look(), want)
		lost.Store(true)
		slow.Store(true)
		time.Sleep(time.Minute) // ten of the minutes are being filled, and what was due in them was read
		slow.Store(false)
		for i := range want {
			w.make(timer(fmt.Sprint("once", i), at((w.now()/60_000+10+int64(i))*60_000)))
			want[i]++
		}
		time.Sleep(15 * time.Second)
		equal(t, "made while it is filled", look(), want)
	})
}
