package alert

import (
	"fmt"
	"slices"
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

// A failure decodes no mute, however many there are, ended ones too. Mutes that were put, deleted or
// ended count at once, and one that has ended holds again when the clock was set back.
func TestMutesAreDecodedWhenTheyChange(t *testing.T) {
	w := newWorld(t, memory.NewCold())
	for i := range 100 {
		w.mute(fmt.Sprint("ended", i), Match{Label: "team=a"}, -time.Hour)
		w.mute(fmt.Sprint("holds", i), Match{NamePrefix: "t1"}, time.Hour)
	}
	w.put(MuteKind, "*", "all", Mute{Match: Match{NamePrefix: "t2"}, Until: time.Now().Add(time.Minute).UnixMilli()})
	want := func(t1, t2, t3, needsTimer bool) {
		t.Helper()
		got := []bool{w.muted("shop", "t1", nil), w.muted("shop", "t2", nil), w.muted("shop", "t3", nil), w.mutesNeedTimer("shop")}
		if !slices.Equal(got, []bool{t1, t2, t3, needsTimer}) {
			t.Errorf("t1, t2, t3 are muted, and a timer is needed: %v", got)
		}
	}
	want(true, true, false, false)
	if n := testing.AllocsPerRun(10, func() { want(true, true, false, false) }); n > 10 {
		t.Errorf("%v allocations to look at 201 mutes", n)
	}
	w.back.Store(int64(90 * time.Minute))
	want(true, true, false, true)
	w.back.Store(int64(-2 * time.Minute))
	want(true, false, false, false)
	w.back.Store(0)
	w.mute("t3", Match{NamePrefix: "t3"}, time.Hour)
	want(true, true, true, false)
	for _, k := range []engine.ObjectKey{{Kind: MuteKind, App: "shop", Name: "t3"}, {Kind: MuteKind, App: "*", Name: "all"}} {
		if err := w.set.Delete(t.Context(), k, nil); err != nil {
			t.Fatal(err)
		}
	}
	want(true, false, false, false)
}
