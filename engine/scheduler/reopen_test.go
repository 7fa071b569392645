package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// A cold tier that goes away while a start recovers, at any of its calls, ends
// nothing: the next Open finds the journal as it was left, and runs.
func TestRecoveryIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	key := engine.Key{Timer: 7, Due: time.Now().UnixMilli() - 1000}
	left := wal.New(wal.Config{Dir: dir, Logger: log})
	runJournal(t, left, func() {
		left.Begin(engine.Begun{Key: key, Attempt: 1})
		done := &engine.Task{Key: key, Status: engine.Succeeded}
		if err := left.Sync(t.Context(), left.Finish(engine.AppendTask(nil, done))); err != nil {
			t.Fatal(err)
		}
	})

	cold := &leaving{Cold: memory.NewCold()}
	e := scheduler.New(scheduler.Config{Cold: cold, Warm: memory.NewWarm(), Journal: wal.New(wal.Config{Dir: dir, Logger: log}), Log: log})
	failed := 0
	for ; ; failed++ {
		cold.left.Store(int64(failed))
		err := e.Open(t.Context())
		if err == nil {
			break
		}
		if !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("after %d calls: %v", failed, err)
		}
	}
	if failed < 4 { // Take, Owed, Due, Settle
		t.Errorf("recovery made only %d calls", failed)
	}
	cold.left.Store(math.MaxInt64)
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- e.Run(ctx) }()
	for e.Ready() != nil {
		select {
		case err := <-ran:
			t.Fatalf("it ended: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if got, err := e.Task(t.Context(), key); err != nil || got.Status != engine.Succeeded {
		t.Errorf("what the journal had: %v, %v", got, err)
	}
	stop()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// runJournal runs a journal for as long as do takes, and closes it.
func runJournal(t *testing.T, j *wal.Log, do func()) {
	t.Helper()
	if err := j.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	do()
	stop()
	if err := errors.Join(<-ran, j.Close()); err != nil {
		t.Fatal(err)
	}
}

// leaving is a cold tier that is away from a call on, until left is set again.
type leaving struct {
	engine.Cold
	left atomic.Int64 // calls until then
}

func (c *leaving) call() error {
	if c.left.Add(-1) < 0 {
		return fmt.Errorf("it has gone: %w", engine.ErrUnavailable)
	}
	return nil
}

func (c *leaving) Take(ctx context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	if err := c.call(); err != nil {
		return nil, 0, err
	}
	return c.Cold.Take(ctx, owner)
}

func (c *leaving) Owed(ctx context.Context, of engine.Set, from, to int64, fn func([]engine.Owed) error) error {
	if err := c.call(); err != nil {
		return err
	}
	return c.Cold.Owed(ctx, of, from, to, fn)
}

func (c *leaving) Due(ctx context.Context, of engine.Set, from, to int64, fn func([]engine.Candidate) error) error {
	if err := c.call(); err != nil {
		return err
	}
	return c.Cold.Due(ctx, of, from, to, fn)
}

func (c *leaving) Settle(ctx context.Context, s *engine.Settlement) error {
	if err := c.call(); err != nil {
		return err
	}
	return c.Cold.Settle(ctx, s)
}
