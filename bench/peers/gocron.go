package main

import (
	"time"

	"github.com/go-co-op/gocron/v2"
)

// openGocron is one OneTimeJob a task.
func openGocron(fire func(task)) (*peer, error) {
	s, err := gocron.NewScheduler()
	if err != nil {
		return nil, err
	}
	s.Start()
	add := func(t task) error {
		at := gocron.OneTimeJobStartDateTime(time.UnixMilli(t.Due))
		_, err := s.NewJob(gocron.OneTimeJob(at), gocron.NewTask(func() { fire(t) }))
		return err
	}
	return &peer{add: add, writers: 1}, nil
}
