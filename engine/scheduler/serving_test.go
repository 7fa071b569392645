package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/memory"
)

// What cannot be taken now is refused with the reason: a start is worth waiting
// for, a stop is not.
func TestStartingOrStopping(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		refuses := func(e *scheduler.Scheduler, why string) {
			t.Helper()
			d := timer("b", every(time.Hour))
			_, would := e.WouldPut(t.Context(), d, 0)
			for _, err := range []error{e.Create(t.Context(), d, nil).Err, would, e.Ready()} {
				var f *engine.Fault
				if !errors.As(err, &f) || f.Kind != engine.FaultUnavailable || !strings.HasPrefix(f.Detail, why) {
					t.Errorf("%v, want %q", err, why)
				}
			}
		}
		w.replies("a", slow(2*time.Second))
		w.make(timer("a", at(w.now()+10)))
		time.Sleep(time.Second)
		w.life.stop()
		time.Sleep(100 * time.Millisecond) // the call is in flight
		refuses(w.Scheduler, "the server is stopping")
		w.Scheduler = scheduler.New(scheduler.Config{Cold: w.cold})
		refuses(w.Scheduler, "the server is starting")
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
}

// The cold tier counts as away until it is open and what the former process left
// is taken over: who waits for it at the start is seen by the alerts.
func TestColdTierAwayAtTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		cold := &slowToCome{Cold: w.cold}
		l := &life{gone: make(chan struct{})}
		w.set = metrics.NewSet()
		e := scheduler.New(scheduler.Config{
			Cold: cold, ColdName: "MySQL", Warm: memory.NewWarm(), Metrics: w.set, Journal: &mortalJournal{w.journal, l, make(chan struct{}, 1)},
		})
		counts := func(when string, want bool) {
			t.Helper()
			if e.Tiers()["cold"] != want || (w.metric(`xtimer_tier_up{tier="cold"}`) == 1) != want {
				t.Errorf("%s: the cold tier is up: %v, metric %v", when, e.Tiers()["cold"], w.metric(`xtimer_tier_up{tier="cold"}`))
			}
		}
		counts("before Open", false)
		for _, cold.lacks = range []string{"Open", "Take"} {
			cold.take = func() { counts("while it recovers", true) }
			if err := e.Open(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
				t.Fatal(err)
			}
			want := map[string]string{"Open": "the server is starting: it waits for MySQL", "Take": "the server is starting: it takes the timers over"}
			if err := e.Ready(); err.Error() != want[cold.lacks] {
				t.Errorf("without %s it is not ready, for %v", cold.lacks, err)
			}
			counts("without "+cold.lacks, false)
		}
		cold.lacks = ""
		if err := e.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		counts("open", true)
	})
}

// slowToCome is a cold tier that lacks something at first.
type slowToCome struct {
	engine.Cold
	lacks string
	take  func()
}

func (c *slowToCome) Open(ctx context.Context) error {
	if c.lacks == "Open" {
		return fmt.Errorf("nobody answers: %w", engine.ErrUnavailable)
	}
	return c.Cold.Open(ctx)
}

func (c *slowToCome) Take(ctx context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	c.take()
	if c.lacks == "Take" {
		return nil, 0, fmt.Errorf("nobody answers: %w", engine.ErrUnavailable)
	}
	return c.Cold.Take(ctx, owner)
}
