package scheduler_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// planning measures when a start has gone through what is owed.
type planning struct {
	engine.Cold
	begins func()
}

func (c *planning) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	c.begins()
	return c.Cold.Due(ctx, of, from, to, yield)
}

// A start does not hold the tasks that wait for a retry, with all their responses.
func TestStartWithManyRetries(t *testing.T) {
	const n = 10_000
	ctx, from := t.Context(), time.Now().Add(-time.Hour).UnixMilli()
	cold := local.New(local.Config{Dir: t.TempDir()})
	if err := cold.Open(ctx); err != nil {
		t.Fatal(err)
	}
	attempts := make([]engine.Attempt, 3)
	for i := range attempts {
		attempts[i] = engine.Attempt{N: i + 1, Started: from * 1000, Code: 500, ErrorClass: "status", Response: bytes.Repeat([]byte("x"), 1024)}
	}
	for i := range n / 1000 {
		var s engine.Settlement
		var cs []*engine.Change
		for id := engine.TimerID(i*1000 + 1); len(cs) < 1000; id++ {
			x := &engine.Timer{Definition: timer(id.String(), at(from+1000)), ID: id << 21, Version: 1, Generation: 1, CreatedAt: from, UpdatedAt: from}
			if err := plan.Resolve(x, nil, from); err != nil {
				t.Fatal(err)
			}
			cs = append(cs, &engine.Change{Timer: x, ID: x.ID, At: from})
			k, next := engine.Key{Timer: x.ID, Due: from + 1000}, from+3*3_600_000
			s.Owe = append(s.Owe, engine.Owed{Key: k, Generation: 1, NotBefore: next, Lane: x.Lane(), OneShot: true, Task: &engine.Task{
				Key: k, App: "app", Name: x.Name, Generation: 1, Status: engine.Retrying, NotBefore: next, Since: k.Due, Attempts: attempts,
			}})
		}
		for _, a := range cold.ApplyAll(ctx, cs) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		for shard := range engine.Shards {
			s.Marks = append(s.Marks, engine.Mark{Shard: shard, W: from + 60_000})
		}
		if err := cold.Settle(ctx, &s); err != nil {
			t.Fatal(err)
		}
	}
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}
	was, held := heap(), 0
	cfg := scheduler.Config{
		Log: slog.New(slog.DiscardHandler), Warm: memory.NewWarm(), Journal: wal.New(wal.Config{Dir: t.TempDir()}), Metrics: metrics.NewSet(),
		Cold: &planning{cold, func() { held = max(held, heap()-was) }},
		Caller: callee(func(*engine.Call) engine.Outcome {
			return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: time.Now()}
		}),
	}
	e := scheduler.New(cfg)
	if err := e.Open(ctx); err != nil {
		t.Fatal(err)
	}
	if held > 10<<20 {
		t.Errorf("a start holds %d MB for %d tasks that wait for a retry", held>>20, n)
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	_ = e.Run(stopped)
}
