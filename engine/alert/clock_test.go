package alert

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// While the clock is set back by hours, incidents open and end as before, states are looked at,
// a repeat comes in time, and no failure is lost by a kill.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const by = 2 * time.Hour
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		var paused atomic.Bool
		w.cfg.States = func() (all []State) {
			if paused.Load() {
				all = append(all, State{Word: "paused", App: "shop", Of: "app"})
			}
			return all
		}
		w.rule("r", func(r *Rule) { r.Repeat = time.Hour })
		w.rule("app", func(r *Rule) { r.By, r.Within, r.Repeat = "app", time.Minute, 0 })
		w.rule("twice", func(r *Rule) { r.After, r.Within, r.By = 2, 10*time.Minute, "target" })
		w.rule("state", func(r *Rule) { r.On, r.Repeat = []string{"paused"}, 0 })
		w.run()
		w.ends(1, engine.Dead)
		w.says(5*time.Minute, "incident.opened", "incident.opened")
		w.ends(1, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered", "incident.recovered")
		time.Sleep(time.Hour)
		w.ends(2, engine.Dead)
		w.says(10*time.Second, "incident.opened", "incident.opened")

		w.back.Store(int64(by))
		w.ends(2, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered")
		paused.Store(true)
		w.says(10*time.Second, "incident.opened")
		if m := w.says(time.Minute, "incident.recovered"); m[0].Incident.By != "shop" || m[0].Incident.Closed < m[0].Incident.Opened {
			t.Errorf("%+v", m[0].Incident)
		}
		w.settled(3, engine.Dead)
		w.says(10*time.Second, "incident.opened", "incident.opened", "incident.opened") // with twice
		w.says(time.Hour, "incident.repeated")

		w.stop()
		w.settled(4, engine.Dead) // and was not judged
		again := newWorld(t, cold)
		again.cfg.States = w.cfg.States
		again.back.Store(int64(by))
		again.run()
		again.says(5*time.Second, "incident.opened")
		again.back.Store(int64(2 * by))
		again.ends(4, engine.Succeeded)
		again.says(2*time.Second, "incident.recovered")
		again.stop()

		third := newWorld(t, cold) // the clock was set back while no process ran
		third.cfg.States = w.cfg.States
		third.back.Store(int64(3 * by))
		third.run()
		third.says(time.Second)
		third.ends(3, engine.Succeeded)
		third.says(2*time.Second, "incident.recovered")
		third.stop()
	})
}
