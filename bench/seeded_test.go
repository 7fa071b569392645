package bench

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
)

// startSeeded starts a process over timers that it did not create, with all dues up to
// w finished: to the process it is as if it had created them long ago, and had been
// down since w. It returns how long the start took.
func startSeeded(t testing.TB, timers iter.Seq[*engine.Timer], w time.Time) (p *process, took time.Duration) {
	t.Helper()
	dir := t.TempDir()
	seed(t, filepath.Join(dir, scheduler.ColdFolder), timers, w)
	began := time.Now()
	// The last --data-dir counts. The machine may have booted since w: no wait for its clock.
	p = startProcess(t, "--data-dir", dir, "--clock-wait", "0s")
	p.dir = dir // what is kept if it fails
	return p, time.Since(began)
}

func seed(t testing.TB, dir string, timers iter.Seq[*engine.Timer], w time.Time) {
	t.Helper()
	ctx := context.Background()
	cold := local.New(local.Config{Dir: dir})
	if err := cold.Open(ctx); err != nil {
		t.Fatal(err)
	}
	id := engine.TimerID(0)
	var changes []*engine.Change
	apply := func() {
		for _, a := range cold.ApplyAll(ctx, changes) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
		changes = changes[:0]
	}
	bytes := 0
	for x := range timers {
		id++
		x.ID, x.Version, x.Generation, x.UpdatedAt = id, 1, 1, x.CreatedAt
		if err := plan.Resolve(x, nil, x.CreatedAt); err != nil {
			t.Fatal(err)
		}
		changes = append(changes, &engine.Change{Timer: x, ID: id, At: x.CreatedAt})
		if bytes += len(x.Callback.Body); len(changes) == 1000 || bytes > 8<<20 {
			apply()
			bytes = 0
		}
	}
	apply()
	shards, err := cold.Shards(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var s engine.Settlement
	for i, sh := range shards {
		s.Marks = append(s.Marks, engine.Mark{Shard: i, Fence: sh.Fence, W: w.UnixMilli()})
	}
	if err := cold.Settle(ctx, &s); err != nil {
		t.Fatal(err)
	}
	if err := cold.Close(); err != nil {
		t.Fatal(err)
	}
}

// alike are n timers that differ in their names.
func alike(n int, made time.Time, of engine.Definition) iter.Seq[*engine.Timer] {
	return func(yield func(*engine.Timer) bool) {
		for range n {
			x := &engine.Timer{Definition: of, CreatedAt: made.UnixMilli()}
			x.Name = fmt.Sprintf("alike-%d", names.Add(1))
			if !yield(x) {
				return
			}
		}
	}
}
