package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// TestClockStepForward sets the clock 72 h forward under 20,000 timers that are due
// each minute of a zone with daylight saving, as a suspended machine or a restored
// snapshot does. At most 5 s later a timer that is due each 100 ms is on time again,
// and each of the 20,000 was called for its latest due.
//
// The engine runs in this process, for its clock has to be set.
func TestClockStepForward(t *testing.T) {
	const step, within = 72 * time.Hour, 5 * time.Second
	n := byForm(t, 10_000, 20_000)
	c := &stepped{dues: map[engine.TimerID]int64{}}
	e := c.start(t)
	minutely, often := engine.NewDefinition(), engine.NewDefinition()
	minutely.App, minutely.Schedule = "minutely", engine.Schedule{Cron: "* * * * *", TimeZone: "America/New_York"}
	often.App, often.Schedule = "often", engine.Schedule{Every: 100 * time.Millisecond}
	beat := c.create(t, e, often, 1)[0]
	all := c.create(t, e, minutely, n)
	time.Sleep(time.Second)
	if !c.called(beat, c.now().Add(-time.Second)) {
		t.Fatal("nothing is called before the step")
	}

	c.ahead.Store(int64(step))
	stepped := time.Now()
	last := c.now().Truncate(time.Minute) // the latest due of all
	waiting, onTime := n, false
	for ; (waiting > 0 || !onTime) && time.Since(stepped) < within; time.Sleep(50 * time.Millisecond) {
		onTime = c.called(beat, c.now().Add(-500*time.Millisecond))
		waiting = 0
		for _, id := range all {
			if !c.called(id, last) {
				waiting++
			}
		}
	}
	t.Logf("%v after the step: %d of %d timers were not called for their latest due; on time: %v", round(time.Since(stepped)), waiting, n, onTime)
	if waiting > 0 || !onTime {
		t.Errorf("want all called and on time within %v", within)
	}
}

// stepped is a caller that notes the latest due called of each timer, by a clock that
// can be set ahead.
type stepped struct {
	ahead atomic.Int64 // ns

	mu   sync.Mutex
	dues map[engine.TimerID]int64
}

func (c *stepped) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *stepped) Call(x *engine.Call) engine.Outcome {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.Key.Due > c.dues[x.Key.Timer] {
		c.dues[x.Key.Timer] = x.Key.Due
	}
	return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: now}
}

// called reports whether a timer was called for a due that is not before an instant.
func (c *stepped) called(id engine.TimerID, from time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dues[id] >= from.UnixMilli()
}

// start starts an engine over files of its own.
func (c *stepped) start(t *testing.T) *scheduler.Scheduler {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	e := scheduler.New(scheduler.Config{
		Cold:    local.New(local.Config{Dir: filepath.Join(dir, scheduler.ColdFolder), Log: log}),
		Warm:    memory.NewWarm(),
		Journal: wal.New(wal.Config{Dir: filepath.Join(dir, scheduler.JournalFolder), Logger: log}),
		Caller:  c, Now: c.now, Log: log,
	})
	if err := e.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the engine ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("the engine does not end")
		}
	})
	await(t, "it is ready", func() bool { return e.Ready() == nil })
	return e
}

func (c *stepped) create(t *testing.T, e *scheduler.Scheduler, d engine.Definition, n int) (ids []engine.TimerID) {
	t.Helper()
	for len(ids) < n {
		var ds []engine.Definition
		for range min(1000, n-len(ids)) {
			d.Name, d.Callback.URL = fmt.Sprintf("step-%d", names.Add(1)), "http://127.0.0.1:1/"
			ds = append(ds, d)
		}
		for _, made := range e.CreateAll(t.Context(), ds) {
			if made.Err != nil {
				t.Fatal(made.Err)
			}
			ids = append(ids, made.View.ID)
		}
	}
	return ids
}
