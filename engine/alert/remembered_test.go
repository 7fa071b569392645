package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A start forgets neither a streak nor the failures within a time, and does not count those
// again of which an incident was told that has ended.
func TestRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("streak", func(r *Rule) { r.Streak, r.Match.Label = 3, "team=a" })
		w.rule("within", func(r *Rule) { r.On, r.By, r.After, r.Within = []string{"missed"}, "app", 3, time.Hour })
		w.rule("other", func(r *Rule) { r.Streak, r.Match.NamePrefix = 2, "x" })
		w.run()
		again := func() {
			t.Helper()
			time.Sleep(time.Minute)
			w.says(0)
			w.stop()
			w = newWorld(t, cold)
			w.run()
			time.Sleep(10 * time.Second)
		}
		tell := func(timer engine.TimerID, status engine.TaskStatus) {
			w.settled(timer, status)
			time.Sleep(2 * time.Second)
		}
		tell(1, engine.Dead)
		tell(1, engine.Succeeded)
		tell(1, engine.Dead)
		tell(2, engine.Missed)
		tell(2, engine.Missed)
		again()
		tell(1, engine.Dead)
		tell(1, engine.Skipped)
		tell(3, engine.Dead)
		again()
		tell(1, engine.Dead)
		if m := w.says(time.Second, "incident.opened"); m[0].Incident.Count != 3 || m[0].Incident.Rule != "streak" {
			t.Errorf("%+v", m[0].Incident)
		}
		tell(2, engine.Missed)
		if m := w.says(time.Second, "incident.opened"); m[0].Incident.Count != 3 || m[0].Incident.Rule != "within" {
			t.Errorf("%+v", m[0].Incident)
		}
		time.Sleep(70 * time.Minute)
		tell(1, engine.Succeeded)
		w.says(time.Minute, "incident.recovered", "incident.recovered")
		tell(2, engine.Missed)
		tell(3, engine.Dead)
		again()
		tell(2, engine.Missed)
		w.says(time.Second)
		tell(3, engine.Dead)
		w.says(time.Second, "incident.opened")
		w.stop()
	})
}

// A success between failures that are read from history ends a streak: of failures that a start
// finds, and of those of all nodes.
func TestStreaksInHistory(t *testing.T) {
	for _, leads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cold := memory.NewCold()
			start := func() (w *world) {
				w = newWorld(t, cold)
				if leads {
					w.cfg.Leads = func() bool { return true }
				}
				return w
			}
			w := start()
			w.channel(60)
			w.rule("streak", func(r *Rule) { r.Streak = 3 })
			w.run()
			w.says(10 * time.Second)
			w.settled(1, engine.Dead)
			w.says(10 * time.Second)
			if !leads {
				w.stop()
			}
			for range 3 {
				for _, status := range []engine.TaskStatus{engine.Dead, engine.Succeeded, engine.Dead} {
					time.Sleep(100 * time.Millisecond)
					w.settled(1, status)
				}
			}
			if !leads {
				w = start()
				w.run()
			}
			w.says(10 * time.Second)
			w.settled(1, engine.Dead)
			w.says(10 * time.Second)
			w.settled(1, engine.Dead)
			if m := w.says(10*time.Second, "incident.opened"); m[0].Incident.Count != 3 {
				t.Errorf("%+v", m[0].Incident)
			}
			w.stop()
		})
	}
}
