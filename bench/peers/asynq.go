package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"
)

// openAsynq is a client and a server in one process. Left alone it looks for
// scheduled tasks every 5 s, and works at as many as there are processors.
func openAsynq(best bool, store string, fire func(task)) (*peer, error) {
	redis := asynq.RedisClientOpt{Addr: store}
	cfg := asynq.Config{LogLevel: asynq.FatalLevel}
	if best {
		redis.PoolSize = 100
		cfg.Concurrency = 256
		cfg.DelayedTaskCheckInterval = 50 * time.Millisecond
		cfg.TaskCheckInterval = 50 * time.Millisecond
	}
	server := asynq.NewServer(redis, cfg)
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, at *asynq.Task) error {
		var t task
		if err := json.Unmarshal(at.Payload(), &t); err != nil {
			return err
		}
		fire(t)
		return nil
	}))
	if err != nil {
		return nil, err
	}
	client := asynq.NewClient(redis)
	add := func(t task) error {
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		_, err = client.Enqueue(asynq.NewTask("fire", b), asynq.ProcessAt(time.UnixMilli(t.Due)))
		return err
	}
	return &peer{add: add, writers: 64}, nil
}
