package scheduler_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
)

// elsewhere gives a timer another target and app.
func elsewhere(app, url string) func(*engine.Definition) {
	return func(d *engine.Definition) { d.App, d.Callback.URL = app, url }
}

// A start beside the backlog of a target that does not answer calls what is overdue of
// another target at once, however much stands before it.
func TestBacklogOfAMuteTarget(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 400
		w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 32, 8, 16
		w.start()
		due := w.now() + 5_000
		var mute []engine.TimerID
		for i := range 2_000 {
			name := fmt.Sprint("mute", i)
			w.replies(name, slow(15*time.Second))
			mute = append(mute, w.make(timer(name, at(due+int64(i)), elsewhere("mute", "http://127.0.0.1:2/"))))
		}
		for i := range 20 {
			w.make(timer(fmt.Sprint("good", i), at(due+5_000), elsewhere("good", "http://127.0.0.1:3/")))
		}
		time.Sleep(9 * time.Second)
		w.crash(3 * time.Second)
		time.Sleep(2 * time.Second)
		for i := range 20 {
			if cs := w.of(fmt.Sprint("good", i)); len(cs) != 1 {
				t.Fatalf("%d calls of a target that answers, 2 s after the start", len(cs))
			}
		}
		for _, id := range mute { // and nothing of it is left over
			if r, err := w.Delete(t.Context(), id, 0); err != nil || r == change.DeleteFinished {
				t.Fatalf("%s, %v", r, err)
			}
		}
		time.Sleep(30 * time.Second)
	})
}

// What a lane has no room for waits in the cold tier and comes back, each due once; and
// when all is back new dues wait in memory again: they are on time.
func TestLaneThatIsSpilled(t *testing.T) {
	t.Parallel()
	for _, o := range []engine.Overlap{engine.OverlapAllow, engine.OverlapQueue} {
		t.Run(o.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxWaiting = 100
				w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 16, 16, 16
				w.start()
				var fast atomic.Bool
				w.behave("a", func(*call) reply {
					if fast.Load() {
						return ok
					}
					return slow(2 * time.Second)
				})
				from := w.now()
				id := w.make(timer("a", every(20*time.Millisecond), overlap(o)))
				time.Sleep(20 * time.Second)
				if n := w.Resident(); n > 400 {
					t.Errorf("%d tasks are in memory, where 100 may wait", n)
				}
				fast.Store(true)
				time.Sleep(time.Minute)
				w.stopAccounted(id, from, 20)
				cs := w.of("a")
				slices.SortStableFunc(cs, func(a, b call) int { return int(a.at - b.at) })
				for _, c := range cs[len(cs)-100:] {
					if c.at-c.key.Due > 20 {
						t.Errorf("due %s was called %d ms after it, long after the backlog", stamp(c.key.Due), c.at-c.key.Due)
					}
				}
			})
		})
	}
}

// What a full lane has no room for leaves memory within seconds, also where older tasks
// wait that have no row, and where a settle takes long to look at all that waits.
func TestFullLaneLetsGo(t *testing.T) {
	t.Parallel()
	for _, look := range []time.Duration{0, time.Millisecond} { // of a shard
		t.Run(look.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				const room, perSecond = 1000, 200
				w.config.MaxWaiting = room
				w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 4, 4
				w.settlesLookFor(look)
				w.start()
				most := int64(0)
				for i := range 30 * perSecond {
					name := fmt.Sprint("mute", i)
					w.behave(name, func(*call) reply { return slow(15 * time.Second) })
					w.make(timer(name, delay(time.Second)))
					time.Sleep(time.Second / perSecond)
					most = max(most, w.Resident())
				}
				if most > room+2*perSecond { // 1 s until they get a row, and the pace of settling
					t.Errorf("%d tasks were in memory, want at most %d and those of 2 s", most, room)
				}
			})
		})
	}
}

// A retry that the journal alone knew of gets its row before its lane is known. The row
// moves to its lane while refill reads that to its end, and is tried on time.
func TestRowThatChangesItsLane(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var crashed, looked atomic.Bool
		w.before.set(func(op string, arg any) error {
			switch s, _ := arg.(*engine.Settlement); {
			case !crashed.Load():
			case op == "OwedIn" && looked.CompareAndSwap(false, true):
				time.Sleep(time.Second)
			case op == "Settle" && !s.Replayed && len(s.Owe) > 0 && len(s.Marks) == 0:
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		w.start()
		w.replies("a", fail, ok)
		w.make(timer("a", delay(5*time.Second), retry(4, 10*time.Second, 1)))
		w.make(timer("b", delay(6500*time.Millisecond)))
		time.Sleep(5200 * time.Millisecond)
		crashed.Store(true)
		w.crash(2 * time.Second)
		time.Sleep(20 * time.Second)
		if cs := w.of("a"); len(cs) != 2 {
			t.Errorf("%d calls, want the first and its retry", len(cs))
		}
	})
}

// A row that refill brings into memory while the migrator gives the row its lane is not
// called again when the migrator's commit comes late.
func TestRowThatChangesItsLaneLate(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var crashed, looked, moved atomic.Bool
		w.before.set(func(op string, arg any) error {
			switch s, _ := arg.(*engine.Settlement); {
			case !crashed.Load():
			case op == "OwedIn" && looked.CompareAndSwap(false, true):
				time.Sleep(time.Second)
			case op == "Settle" && !s.Replayed && len(s.Owe) > 0 && len(s.Marks) == 0 && moved.CompareAndSwap(false, true):
				time.Sleep(time.Minute)
			}
			return nil
		})
		w.start()
		w.replies("soon", fail, ok)
		w.replies("later", fail, ok)
		w.make(timer("soon", delay(5*time.Second), retry(4, time.Second, 1)))
		w.make(timer("later", delay(5*time.Second), retry(4, 15*time.Second, 1)))
		w.make(timer("b", delay(6500*time.Millisecond)))
		time.Sleep(5200 * time.Millisecond)
		crashed.Store(true)
		w.crash(2 * time.Second)
		time.Sleep(2 * time.Minute)
		if !moved.Load() {
			t.Error("no row changed its lane")
		}
		for _, name := range []string{"soon", "later"} {
			if cs := w.of(name); len(cs) != 2 {
				t.Errorf("%d calls, want the first and its retry: %+v", len(cs), cs)
			}
		}
	})
}
