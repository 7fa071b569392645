package alert

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A process that is killed right after a message, without an end, leaves the incident.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.run()
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.ends(1, engine.Dead)
		first := w.says(100*time.Millisecond, "incident.opened")
		again := newWorld(t, cold) // beside the first, which stores nothing more
		again.run()
		if all := again.Incidents("shop"); len(all) != 1 || all[0].ID != first[0].Incident.ID || all[0].Count != 1 {
			t.Errorf("%+v", all)
		}
		if again.saved == 0 {
			t.Error("there is no cursor")
		}
		again.stop()
		w.stop()
	})
}

// A process that is killed before it stores its cursor leaves incidents whose failures the next
// one finds in history: they are not counted again, and open nothing again.
func TestCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.run()
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.rule("app", func(r *Rule) { r.By = "app" })
		w.says(10 * time.Millisecond)
		w.settled(1, engine.Dead)
		told := map[string]bool{}
		for _, m := range w.says(500*time.Millisecond, "incident.opened", "incident.opened") {
			told[m.ID] = true
		}
		w.settled(2, engine.Dead)
		told[w.says(500*time.Millisecond, "incident.opened")[0].ID] = true
		w.settled(2, engine.Succeeded)
		told[w.says(500*time.Millisecond, "incident.recovered")[0].ID] = true
		again := newWorld(t, cold) // beside the first, which stores nothing more
		again.settled(3, engine.Dead)
		again.run()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		opened := ""
		for _, m := range again.sent {
			if !told[m.ID] {
				opened += m.Type + " " + m.Incident.By + " "
			}
		}
		if opened != "incident.opened t3 " {
			t.Errorf("%q is new", opened)
		}
		want := map[string]int64{"t1": 1, "t2": 1, "t3": 1, "shop": 3}
		for _, i := range again.Incidents("") {
			if i.Count != want[i.By] || (i.Closed != 0) != (i.By == "t2") {
				t.Errorf("%s counts %d failures, want %d: %+v", i.By, i.Count, want[i.By], i)
			}
			delete(want, i.By)
		}
		if len(want) != 0 {
			t.Errorf("there is no incident of %v", want)
		}
		again.stop()
		w.stop()
	})
}

// An incident whose rule was deleted, or counts by something else since, is closed by a start if
// the former process was killed before it did.
func TestKilledBeforeItCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("deleted", func(*Rule) {})
		w.rule("changed", func(*Rule) {})
		w.run()
		w.ends(1, engine.Dead)
		w.says(10*time.Second, "incident.opened", "incident.opened")
		again := newWorld(t, cold) // beside the first, which stores nothing more
		if err := again.set.Delete(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "deleted"}, nil); err != nil {
			t.Fatal(err)
		}
		again.rule("changed", func(r *Rule) { r.By = "app" })
		again.run()
		again.says(2*time.Second, "incident.recovered") // of the rule that is there
		third := newWorld(t, cold)
		for _, i := range third.Incidents("") {
			if i.Why != "gone" {
				t.Errorf("%+v", i)
			}
		}
		again.stop()
		w.stop()
	})
}

// A start finds no failures from before a rule was made, though the last failure that was judged is
// of long before.
func TestStartWithARuleThatIsNewer(t *testing.T) {
	for _, leads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cold := memory.NewCold()
			start := func() (w *world) {
				if w = newWorld(t, cold); leads {
					w.cfg.Leads = func() bool { return true }
				}
				return w
			}
			w := start()
			w.channel(60)
			w.rule("other", func(r *Rule) { r.On, r.Repeat = []string{"unknown"}, 0 })
			w.run()
			time.Sleep(10 * time.Second)
			w.settled(1, engine.Unknown)
			w.says(time.Minute, "incident.opened")
			for i := range 20 { // no rule is about these
				w.settled(engine.TimerID(100+i), engine.Dead)
				time.Sleep(time.Minute)
			}
			w.rule("dead", func(r *Rule) { r.Repeat = 0 })
			w.says(10 * time.Second)
			w.stop()
			w.settled(2, engine.Dead)
			w = start()
			w.run()
			if m := w.says(10*time.Second, "incident.opened"); m[0].Incident.By != "t2" {
				t.Errorf("%+v", m[0].Incident)
			}
			w.stop()
		})
	}
}

// An incident about late calls closes when its rule is about failures only: nothing else would end it.
func TestRuleIsAboutSomethingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		late := func(r *Rule) { r.On, r.Repeat = []string{"late"}, time.Hour }
		w.rule("first", late)
		w.rule("second", late)
		w.run()
		w.first(1, 1, time.Minute)
		w.says(10*time.Second, "incident.opened", "incident.opened")
		w.rule("first", func(*Rule) {})
		if m := w.says(10*time.Second, "incident.recovered"); m[0].Incident.Rule != "first" || m[0].Incident.Why != "gone" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.stop()
		w.rule("second", func(*Rule) {})
		w = newWorld(t, cold)
		w.run()
		if m := w.says(10*time.Second, "incident.recovered"); m[0].Incident.Rule != "second" || m[0].Incident.Why != "gone" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.stop()
	})
}

// An incident whose messages nobody can get counts as told, so that it can be forgotten: its channel hung, its rule
// was deleted, and the process ended, or was killed before it closed the incident.
func TestUntoldOfARuleThatIsGone(t *testing.T) {
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprint("killed=", killed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cold := memory.NewCold()
				w := newWorld(t, cold)
				w.channel(60)
				w.rule("r", func(*Rule) {})
				w.send = func(*Delivery) Result { return Result{} }
				w.run()
				w.ends(1, engine.Dead)
				time.Sleep(10 * time.Second)
				again := w
				if killed {
					w.full.Store(true) // it stores nothing more
					again = newWorld(t, cold)
				}
				if err := again.set.Delete(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "r"}, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(20 * time.Second)
				if !killed {
					w.stop()
					again = newWorld(t, cold)
				}
				again.run()
				time.Sleep(time.Minute)
				again.stop()
				if all := again.stored("", nil); len(all) != 1 || all[0].Ending || len(again.ending) != 0 {
					t.Errorf("stored: %+v; %d in memory", all, len(again.ending))
				}
				if killed {
					w.stop()
				}
			})
		})
	}
}
