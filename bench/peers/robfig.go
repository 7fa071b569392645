package main

import (
	"time"

	"github.com/robfig/cron/v3"
)

// once is a schedule of one due; the zero time is "never again".
type once time.Time

func (o once) Next(now time.Time) time.Time {
	if due := time.Time(o); due.After(now) {
		return due
	}
	return time.Time{}
}

// openRobfig is one entry a task. It is made for few, recurring ones: an entry
// that is added, and each that fires, has all of them sorted.
func openRobfig(fire func(task)) (*peer, error) {
	c := cron.New()
	c.Start()
	add := func(t task) error {
		c.Schedule(once(time.UnixMilli(t.Due)), cron.FuncJob(func() { fire(t) }))
		return nil
	}
	return &peer{add: add, writers: 1}, nil
}
