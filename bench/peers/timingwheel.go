package main

import (
	"time"

	"github.com/RussellLuo/timingwheel"
)

// openTimingwheel is one timer a task, with the sizes of its README.
func openTimingwheel(fire func(task)) (*peer, error) {
	w := timingwheel.NewTimingWheel(time.Millisecond, 20)
	w.Start()
	add := func(t task) error {
		w.AfterFunc(time.Until(time.UnixMilli(t.Due)), func() { fire(t) })
		return nil
	}
	return &peer{add: add, writers: 1}, nil
}
