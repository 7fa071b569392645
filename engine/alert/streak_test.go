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

// A failure reads no more of a long row of failures than the longest streak that is counted needs.
func TestALongStreakIsNotReadAll(t *testing.T) {
	defer func(was int) { mostGroups = was }(mostGroups)
	mostGroups = 1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("two", func(r *Rule) { r.Streak, r.Repeat = 2, 0 })
		w.rule("thirty", func(r *Rule) { r.Streak, r.Repeat = 30, 0 })
		w.run()
		w.settled(1, engine.Dead) // the judge is full
		w.says(time.Minute)
		var records []engine.Record
		for i := range 1000 {
			at := w.now() - int64(i+1)*1000
			task := &engine.Task{Key: engine.Key{Timer: 2, Due: at}, App: "shop", Name: "t2", Status: engine.Dead, Ended: at}
			records = append(records, engine.Record{Key: task.Key, Status: task.Status, Encoded: engine.AppendTask(nil, task)})
		}
		w.settles(records)
		for _, opened := range [][]string{{"incident.opened", "incident.opened"}, nil} {
			w.pages.Store(0)
			w.settled(2, engine.Dead)
			w.says(time.Minute, opened...)
			if n := w.pages.Load(); n > 2 {
				t.Errorf("a failure reads %d pages of 20 tasks; 29 tasks are needed", n)
			}
		}
		for _, i := range w.Incidents("shop") {
			if want := map[string]int64{"two": 3, "thirty": 31}[i.Rule]; i.Count != want || i.By != "shop" {
				t.Errorf("%+v", i)
			}
		}
		w.stop()
	})
}

// A success right after a failure ends the incident of that, though it comes before the failure is
// judged.
func TestSuccessBeforeItsFailureIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		for range 2 {
			time.Sleep(10 * time.Second)
			w.ends(1, engine.Dead)
			w.ends(1, engine.Succeeded)
			w.says(time.Minute, "incident.opened", "incident.recovered")
		}
		w.ends(2, engine.Succeeded)
		if w.ring.holds.Load() || w.ring.events.len > 0 {
			t.Error("a success of a timer that has not failed lately is judged")
		}
		w.stop()
	})
}

// Likewise in a burst, in which failures wait for seconds: a success ends an incident and a streak.
func TestSuccessInABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("timer", func(r *Rule) { r.Repeat, r.Match.NamePrefix = 0, "t1" })
		w.rule("streak", func(r *Rule) { r.Streak, r.Match.NamePrefix = 3, "t3" })
		w.rule("app", func(r *Rule) { r.Repeat, r.By, r.Match.Label, r.Match.NamePrefix = 0, "app", "team=a", "t2" })
		w.loads = 20 * time.Millisecond
		w.run()
		time.Sleep(10 * time.Second)
		w.fails(20_000, 3000, time.Second)
		for range 3 {
			for _, status := range []engine.TaskStatus{engine.Dead, engine.Succeeded} {
				time.Sleep(500 * time.Millisecond)
				w.ends(1, status)
				w.ends(3, status)
			}
		}
		time.Sleep(time.Minute)
		for _, i := range w.Incidents("shop") {
			if i.Rule == "streak" || i.Rule == "timer" && i.Closed == 0 {
				t.Errorf("%+v", i)
			}
		}
		w.stop()
	})
}
