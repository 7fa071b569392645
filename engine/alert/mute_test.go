package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

func (w *world) mute(name string, of Match, d time.Duration) {
	w.Helper()
	w.put(MuteKind, "shop", name, Mute{Match: of, Until: time.Now().Add(d).UnixMilli()})
}

// A mute has an incident recorded, and not sent.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.mute("m", Match{NamePrefix: "t1"}, time.Hour)
		w.run()
		w.ends(1, engine.Dead)
		w.says(2 * time.Second)
		if all := w.Incidents("shop"); len(all) != 1 || !all[0].Muted {
			t.Errorf("%+v", all)
		}
		w.ends(2, engine.Dead)
		w.says(2*time.Second, "incident.opened")
		w.stop()
	})
}

// An incident that is open when no mute holds for it any more is sent then, once: when the last
// mute ends or is deleted, also after a start. One that was closed or acknowledged is not.
func TestMuteEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(r *Rule) { r.On, r.Repeat = append(r.On, "paused"), 24*time.Hour })
		w.rule("app", func(r *Rule) { r.On, r.By, r.Within = []string{"unknown"}, "app", 24*time.Hour })
		states := []State{{Word: "paused", App: "shop", Of: "app"}}
		w.cfg.States = func() []State { return states }
		w.mute("t1", Match{NamePrefix: "t1"}, time.Hour)
		w.mute("team", Match{Label: "team=a"}, 2*time.Hour)
		w.mute("all", Match{}, 30*time.Minute)
		w.run()
		for i := range 4 {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		w.ends(5, engine.Unknown)
		w.says(10 * time.Minute)
		for range 9 { // more tasks than an incident keeps
			w.ends(6, engine.Unknown)
		}
		w.ends(3, engine.Succeeded)
		for _, i := range w.Incidents("shop") {
			if i.By == "t4" {
				if _, err := w.Ack(t.Context(), "shop", i.ID, ""); err != nil {
					t.Error(err)
				}
			}
		}
		if m := w.says(21*time.Minute, "incident.opened"); m[0].Incident.State != "paused" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.says(time.Hour)
		w.stop()
		w = newWorld(t, cold)
		w.cfg.States = func() []State { return states }
		w.run()
		w.says(10 * time.Minute)
		if err := w.set.Delete(t.Context(), engine.ObjectKey{Kind: MuteKind, App: "shop", Name: "team"}, nil); err != nil {
			t.Fatal(err)
		}
		for _, m := range w.says(2*time.Second, "incident.opened", "incident.opened", "incident.opened") {
			if m.ID != "al_"+m.Incident.ID+"_1" || m.Incident.Muted {
				t.Errorf("%s %+v", m.ID, m.Incident)
			}
		}
		w.says(2 * time.Hour)
		w.ends(1, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered")
		w.stop()
	})
}
