package main

import "time"

// openAfterFunc is the runtime's own timers: a goroutine for each that fires.
func openAfterFunc(fire func(task)) (*peer, error) {
	add := func(t task) error {
		time.AfterFunc(time.Until(time.UnixMilli(t.Due)), func() { fire(t) })
		return nil
	}
	return &peer{add: add, writers: 1}, nil
}
