package alert

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// The incident of a timer that is deleted closes, and that of another does not.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.ends(1, engine.Dead)
		w.ends(2, engine.Dead)
		w.says(2*time.Second, "incident.opened", "incident.opened")
		w.gone.Store(2)
		if m := w.says(time.Minute, "incident.recovered"); m[0].Incident.By != "t2" || m[0].Incident.Why != "gone" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.stop()
	})
}

// Many incidents are stored together: a store that takes 10 ms for each transaction holds up the
// judging for less than a second. A start knows all of them.
func TestStoredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(18)
		for _, name := range []string{"a", "b"} {
			w.rule(name, func(r *Rule) { r.Repeat = 0 })
		}
		w.run()
		w.puts = 10 * time.Millisecond
		const n = 600 // of each rule
		for i := range n {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		time.Sleep(4 * time.Second)
		count := func(all []Incident) (n int64) {
			for _, i := range all {
				n += i.Count
			}
			return n
		}
		if all := w.stored("shop", nil); len(all) != 2*n || count(all) != 2*n {
			t.Errorf("%d incidents of %d failures are stored", len(all), count(all))
		}
		w.stop()
		again := newWorld(t, cold)
		again.run()
		if len(again.open) != 2*n {
			t.Errorf("a start knows %d incidents", len(again.open))
		}
		again.stop()
	})
}

// Of the incidents that were closed, the newest are kept, for a time.
func TestForgotten(t *testing.T) {
	defer func(was int) { mostClosed = was }(mostClosed)
	mostClosed = 100
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat, r.Recovered = 0, false })
		w.run()
		for _, n := range []int{50, mostClosed - 20} {
			for _, status := range []engine.TaskStatus{engine.Dead, engine.Succeeded} {
				for i := range n {
					w.ends(engine.TimerID(i+1), status)
				}
				time.Sleep(4 * time.Second)
			}
		}
		time.Sleep(2 * time.Minute) // until all are told
		all := w.Incidents("shop")
		slices.SortFunc(all, func(x, y Incident) int { return cmp.Compare(x.Opened, y.Opened) })
		if len(all) != mostClosed || all[19].Opened == all[20].Opened {
			t.Errorf("%d incidents are kept", len(all))
		}
		w.forget(t.Context(), all[20].Closed)
		if n := len(w.Incidents("shop")); n != mostClosed-20 {
			t.Errorf("%d incidents are kept", n)
		}
		w.stop()
	})
}

func (c timers) DeleteObjects(ctx context.Context, of ...*engine.Object) error {
	time.Sleep(c.w.puts)
	return c.Cold.DeleteObjects(ctx, of...)
}

// Timers that fail and succeed in turns close incidents as fast as the store takes them: they are
// forgotten as fast, with a store that takes 100 ms for each transaction, and not only each minute.
func TestForgottenAsFast(t *testing.T) {
	defer func(was int) { mostClosed = was }(mostClosed)
	mostClosed = 100
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.mute("m", Match{}, 24*time.Hour) // nothing waits for a message
		w.puts = 100 * time.Millisecond
		w.run()
		const n, rounds = 1000, 20
		most := 0
		for range rounds {
			for _, status := range []engine.TaskStatus{engine.Dead, engine.Succeeded} {
				for i := range n {
					w.ends(engine.TimerID(i+1), status)
				}
				time.Sleep(10 * time.Second)
			}
			most = max(most, len(w.stored("", nil)))
		}
		time.Sleep(10 * time.Second)
		if kept := len(w.stored("", nil)); most > n+mostClosed || kept != mostClosed {
			t.Errorf("%d incidents were stored, and %d are kept", most, kept)
		}
		w.stop()
	})
}

// A success before the last failure does not end an incident of an app, though it was seen while
// the incident, or another one of the app, was open.
func TestASuccessBeforeEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("app", func(r *Rule) { r.By, r.Within = "app", time.Minute })
		w.run()
		w.ends(1, engine.Dead)
		w.says(10*time.Second, "incident.opened")
		w.ends(2, engine.Succeeded)
		time.Sleep(10 * time.Second)
		w.ends(1, engine.Dead)
		w.says(10 * time.Minute)
		w.ends(2, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered")
		w.stop()
	})
}
