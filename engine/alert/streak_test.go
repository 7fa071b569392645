package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// Failures of timers that never succeed, such as those of one-shots, are forgotten: they keep no
// later streak from being told, and other incidents keep the names of their timers.
func TestOldStreaksAreForgotten(t *testing.T) {
	defer func(was int) { mostGroups = was }(mostGroups)
	mostGroups = 300
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("streak", func(r *Rule) { r.Streak = 2 })
		w.rule("other", func(r *Rule) { r.On, r.Repeat = []string{"unknown"}, 0 })
		w.run()
		for day := range 3 {
			for i := range mostGroups / 3 {
				w.settled(engine.TimerID(1000+day*mostGroups+i), engine.Dead)
			}
			time.Sleep(24 * time.Hour)
		}
		w.says(time.Minute)
		w.settled(1, engine.Unknown)
		if m := w.says(time.Minute, "incident.opened"); m[0].Incident.By != "t1" {
			t.Errorf("%+v", m[0].Incident)
		}
		for range 3 {
			w.settled(1, engine.Dead)
			time.Sleep(time.Hour)
		}
		if m := w.says(time.Minute, "incident.opened"); m[0].Incident.By != "t1" || m[0].Incident.Count != 2 {
			t.Errorf("%+v", m[0].Incident)
		}
		w.stop()
	})
}

// While a judge is full, streaks are as history has them, and their incident is that of the app.
func TestStreaksOfAFullJudge(t *testing.T) {
	defer func(was int) { mostGroups = was }(mostGroups)
	mostGroups = 300
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("streak", func(r *Rule) { r.Streak, r.Repeat = 3, 0 })
		w.run()
		for i := range mostGroups {
			w.settled(engine.TimerID(1000+i), engine.Dead)
		}
		time.Sleep(time.Minute)
		for _, status := range []engine.TaskStatus{engine.Dead, engine.Dead, engine.Succeeded, engine.Dead, engine.Dead} {
			w.settled(1, status)
			w.says(time.Second)
		}
		w.settled(1, engine.Dead)
		if m := w.says(time.Second, "incident.opened"); m[0].Incident.By != "shop" || m[0].Incident.Count != 3 {
			t.Errorf("%+v", m[0].Incident)
		}
		w.settled(1, engine.Dead)
		w.says(time.Minute)
		w.counted(4)
		w.settled(2, engine.Succeeded)
		w.says(time.Hour, "incident.recovered")
		w.stop()
	})
}
