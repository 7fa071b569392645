package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverArgs is a task as River stores it.
type riverArgs struct{ Task task }

// Kind is the name of the jobs.
func (riverArgs) Kind() string { return "fire" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	fire func(task)
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[riverArgs]) error {
	w.fire(job.Args.Task)
	return nil
}

// openRiver is a client that inserts and works. Left alone it fetches at most
// every 100 ms and looks for what became due every 5 s; the latter is fixed.
func openRiver(best bool, store string, fire func(task)) (*peer, error) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, store)
	if err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{fire: fire})
	cfg := &river.Config{
		Logger:  slog.New(slog.DiscardHandler),
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}},
		Workers: workers,
	}
	if best {
		cfg.Queues[river.QueueDefault] = river.QueueConfig{MaxWorkers: 1000}
		cfg.FetchCooldown = 10 * time.Millisecond
		cfg.FetchPollInterval = 10 * time.Millisecond
		cfg.JobTimeout = 5 * time.Second
		cfg.RescueStuckJobsAfter = 10 * time.Second
	}
	client, err := river.NewClient[pgx.Tx](driver, cfg)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	at := func(t task) *river.InsertOpts {
		return &river.InsertOpts{ScheduledAt: time.UnixMilli(t.Due)}
	}
	return &peer{
		add: func(t task) error {
			_, err := client.Insert(ctx, riverArgs{t}, at(t))
			return err
		},
		addMany: func(ts []task) error {
			params := make([]river.InsertManyParams, len(ts))
			for i, t := range ts {
				params[i] = river.InsertManyParams{Args: riverArgs{t}, InsertOpts: at(t)}
			}
			_, err := client.InsertManyFast(ctx, params)
			return err
		},
		writers: 16,
	}, nil
}
