package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// What was cancelled while it waited is not overdue.
func TestOverdueIsWhatWillBeCalled(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("mute", every(10*time.Millisecond)))
		w.replies("mute", slow(time.Hour))
		time.Sleep(time.Minute)
		if n := w.metric("xtimer_tasks_overdue"); n < 1000 {
			t.Fatalf("%v are overdue of a target that does not answer", n)
		}
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if n := w.metric("xtimer_tasks_overdue"); n != 0 {
			t.Errorf("%v are overdue of a timer that was deleted", n)
		}
	})
}

// A cold tier in which timers cannot be read is not ready, and says why.
func TestReadyWantsTimers(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var gone atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Timer" && gone.Load() {
				return errors.New("table 'timers' does not exist")
			}
			return nil
		})
		w.start()
		w.make(timer("a", every(time.Second)))
		gone.Store(true)
		time.Sleep(15 * time.Second)
		if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "table 'timers' does not exist") || w.Tiers()["cold"] {
			t.Errorf("ready: %v, tiers %v", err, w.Tiers())
		}
		gone.Store(false)
		time.Sleep(15 * time.Second)
		if err := w.Ready(); err != nil || !w.Tiers()["cold"] {
			t.Errorf("ready: %v, tiers %v", err, w.Tiers())
		}
	})
}

// What waits in the cold tier is overdue as well: of a lane that has no room in memory,
// and after a start.
func TestOverdueCountsRows(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls = 100, 8
		w.start()
		id := w.make(timer("mute", every(20*time.Millisecond), timeout(10*time.Minute), misfire(engine.MisfireAll, 24*time.Hour)))
		w.behave("mute", func(*call) reply { return slow(time.Hour) })
		began := w.now()
		look := func(what string) {
			t.Helper()
			want := float64(w.now()-began)/20 - 8
			if n := w.metric("xtimer_tasks_overdue"); n < want*0.9-300 || n > want+300 {
				t.Errorf("%s: %v are overdue, want about %v", what, n, want)
			}
			s, err := w.Stats(t.Context())
			if err != nil || float64(s.Overdue) < want*0.9-300 || s.OldestOverdue < time.Minute {
				t.Errorf("%s: %d are overdue, the oldest for %v: %v", what, s.Overdue, s.OldestOverdue, err)
			}
			ws := w.Warnings()
			if len(ws) != 1 || ws[0].Code != "targets_late" || !strings.Contains(ws[0].Detail, " 1 targets") {
				t.Errorf("%s: warnings %v", what, ws)
			}
		}
		time.Sleep(2 * time.Minute)
		look("spilled")
		w.crash(time.Second)
		time.Sleep(10 * time.Second)
		look("after a start")
		if _, err := w.Delete(t.Context(), id, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if n := w.metric("xtimer_tasks_overdue"); n != 0 || len(w.Warnings()) != 0 {
			t.Errorf("%v are overdue of a timer that was deleted: %v", n, w.Warnings())
		}
	})
}

// A table that is missing, whichever it is, is told by its name.
func TestReadyWantsEachTable(t *testing.T) {
	for _, op := range []string{"Timer", "Versions", "LastTask", "OwedPage", "Shards", "Sweep", "Counts"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var gone atomic.Bool
				w.before.set(func(o string, _ any) error {
					if o == op && gone.Load() {
						return fmt.Errorf("table 'xtimer.%s' does not exist: %w", op, engine.ErrBroken)
					}
					return nil
				})
				w.start()
				gone.Store(true)
				time.Sleep(45 * time.Second)
				if err := w.Ready(); err == nil || !strings.Contains(err.Error(), "xtimer."+op) || w.Tiers()["cold"] {
					t.Errorf("ready: %v, tiers %v", err, w.Tiers())
				}
				gone.Store(false)
				time.Sleep(45 * time.Second)
				if err := w.Ready(); err != nil || !w.Tiers()["cold"] {
					t.Errorf("ready: %v, tiers %v", err, w.Tiers())
				}
			})
		})
	}
}

func (m *mortalCold) Versions(ctx context.Context, id engine.TimerID, before uint32, limit int) (ts []*engine.Timer, err error) {
	err = m.do("Versions", id, func() (err error) { ts, err = m.Cold.Versions(ctx, id, before, limit); return err })
	return ts, err
}

func (m *mortalCold) LastTask(ctx context.Context, id engine.TimerID) (t *engine.Task, err error) {
	err = m.do("LastTask", id, func() (err error) { t, err = m.Cold.LastTask(ctx, id); return err })
	return t, err
}

func (m *mortalCold) Taken(ctx context.Context, ranges []engine.Owed) (taken []bool, err error) {
	err = m.do("Taken", ranges, func() (err error) { taken, err = m.Cold.Taken(ctx, ranges); return err })
	return taken, err
}

func (m *mortalCold) Ranks(ctx context.Context, ks []engine.Key) (ranks []engine.Rank, err error) {
	err = m.do("Ranks", nil, func() (err error) { ranks, err = m.Cold.Ranks(ctx, ks); return err })
	return ranks, err
}

func (m *mortalCold) Shards(ctx context.Context) (ss []engine.Shard, err error) {
	err = m.do("Shards", nil, func() (err error) { ss, err = m.Cold.Shards(ctx); return err })
	return ss, err
}
