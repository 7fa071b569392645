package alert

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// first tells of a first attempt that is so late.
func (w *world) first(timer engine.TimerID, due int64, late time.Duration) {
	w.First(engine.Key{Timer: timer, Due: due}, "shop", fmt.Sprint("t", timer), late)
}

// A late first attempt opens an incident, also while it is waited for, and counts once; one in
// bounds ends it, and the end of a task does not.
func TestLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.first(1, 1, time.Hour) // before there is a rule
		w.rule("r", func(r *Rule) { r.On, r.Late = []string{"late", "dead"}, 2*time.Second })
		w.rule("hour", func(r *Rule) { r.On, r.Late = []string{"late"}, time.Hour })
		w.run()
		w.first(1, 1, 2*time.Second) // not more
		w.says(2 * time.Second)
		w.first(1, 1, 5*time.Second) // it waits
		w.first(1, 1, 9*time.Second)
		if m := w.says(2*time.Second, "incident.opened"); m[0].Incident.Count != 1 || m[0].Incident.On[0] != "late" || m[0].Incident.Tasks[0].Status != "late" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.first(1, 2, 3*time.Second)
		w.ends(1, engine.Succeeded)
		w.says(2 * time.Second)
		w.first(1, 1, 61*time.Minute) // of the other rule
		if m := w.says(2*time.Second, "incident.opened"); m[0].Incident.Rule != "hour" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.first(1, 3, time.Millisecond)
		m := w.says(2*time.Second, "incident.recovered", "incident.recovered")
		if m[0].Incident.Count+m[1].Incident.Count != 3 {
			t.Errorf("%+v %+v", m[0].Incident, m[1].Incident)
		}
		w.ends(1, engine.Dead)
		w.says(2*time.Second, "incident.opened")
		w.first(1, 4, time.Millisecond)
		w.says(2 * time.Second) // it was dead, and is no more on time
		w.stop()
	})
}

// A state opens an incident, a backlog when it has lasted, and its end closes it; what was
// found of a fault stays. A start goes on with them.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		var now atomic.Pointer[[]State]
		now.Store(new([]State))
		w.cfg.States = func() []State { return *now.Load() }
		w.rule("r", func(r *Rule) { r.On = []string{"backlog", "paused"} })
		w.put(ChannelKind, "*", "ops", Channel{Kind: "webhook", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		r := NewRule()
		r.On, r.Channels = []string{"tier", "audit", "verify"}, []string{"ops"}
		w.put(RuleKind, "*", "all", r)
		w.run()
		w.says(10 * time.Second)
		now.Store(&[]State{{"backlog", "shop", "shop", 1001}, {"backlog", "else", "else", 5000}, {"paused", "shop", "flow k", 0}, {"breaker", "shop", "flow k", 0}})
		if m := w.says(10*time.Second, "incident.opened"); m[0].Incident.By != "flow k" || m[0].Incident.State != "paused" || m[0].Incident.App != "shop" {
			t.Errorf("%+v", m[0].Incident)
		}
		if m := w.says(time.Minute, "incident.opened"); m[0].Incident.State != "backlog" || m[0].Incident.App != "shop" {
			t.Errorf("%+v", m[0].Incident)
		}
		now.Store(&[]State{{"backlog", "shop", "shop", 1000}})
		w.says(10*time.Second, "incident.recovered")
		now.Store(&[]State{{"tier", "*", "cold tier", 0}, {"audit", "*", "audit", 0}, {"verify", "*", "verify", 0}})
		w.says(10*time.Second, "incident.opened", "incident.opened", "incident.opened")
		w.stop()

		w = newWorld(t, cold)
		w.cfg.States = func() []State { return nil }
		w.run()
		w.says(15*time.Second, "incident.recovered") // the tier
		w.says(60*time.Second, "incident.recovered") // the backlog
		if all := w.Incidents("*"); len(all) != 3 || min(all[0].Closed, 1)+min(all[1].Closed, 1)+min(all[2].Closed, 1) != 1 {
			t.Errorf("%+v", all)
		}
		w.stop()
	})
}

// A mute matches the timer that opens an incident, also of a rule by app; only one of all
// timers mutes a state.
func TestMuteMatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.cfg.States = func() []State { return []State{{"paused", "shop", "app", 0}} }
		w.rule("r", func(r *Rule) { r.On, r.By = []string{"dead", "paused"}, "app" })
		w.put(MuteKind, "shop", "m", Mute{Match: Match{NamePrefix: "t1"}, Until: time.Now().Add(time.Hour).UnixMilli()})
		w.run()
		w.says(10*time.Second, "incident.opened") // paused
		w.ends(1, engine.Dead)
		w.says(2 * time.Second)
		if all := w.Incidents("shop"); len(all) != 2 || all[0].Muted == all[1].Muted {
			t.Errorf("%+v", all)
		}
		w.stop()
	})
}

// The target of a match is the same with or without the port of its scheme, and in any case of letters.
func TestMatchTarget(t *testing.T) {
	of := &engine.Timer{Definition: engine.Definition{Callback: engine.Callback{URL: "https://API.example.com/pay?x=1"}}}
	for target, want := range map[string]bool{
		"https://api.example.com": true, "https://api.example.com:443": true, "HTTPS://Api.Example.com:443/": true,
		"http://api.example.com": false, "https://api.example.com:444": false, "https://example.com": false,
	} {
		m := Match{Target: target}
		if err := m.check(); err != nil || m.matches("t", of) != want {
			t.Errorf("%s matches: %v, want %v; %v", target, !want, want, err)
		}
	}
	for _, target := range []string{"api.example.com", "ftp://api.example.com", "https://", "https:///x", "x"} {
		if m := (Match{Target: target}); m.check() == nil {
			t.Errorf("%s is taken", target)
		}
	}
}

func TestWords(t *testing.T) {
	for _, x := range []struct {
		app, code string
		edit      func(r *Rule)
	}{
		{"shop", "", func(r *Rule) { r.On = []string{"late", "backlog", "breaker", "paused", "quota", "dead"} }},
		{"*", "", func(r *Rule) {
			r.On = []string{"tier", "clock", "disk", "memory", "early", "audit", "verify", "channel"}
		}},
		{"shop", "system_event", func(r *Rule) { r.On = []string{"channel"} }},
		{"shop", "system_event", func(r *Rule) { r.On = []string{"dead", "disk"} }},
		{"shop", "unknown_value", func(r *Rule) { r.On = []string{"sunk"} }},
		{"shop", "out_of_range", func(r *Rule) { r.On, r.Late = []string{"late"}, 2*time.Hour }},
		{"shop", "out_of_range", func(r *Rule) { r.On, r.For = []string{"backlog"}, time.Second }},
		{"shop", "out_of_range", func(r *Rule) { r.On, r.Streak = []string{"late"}, 3 }},
	} {
		r := NewRule()
		r.Channels = []string{"ops"}
		x.edit(&r)
		code := ""
		if f, ok := r.Check(x.app).(*engine.Fault); ok {
			code = f.Code
		}
		if code != x.code {
			t.Errorf("%s %q: %q, want %q", x.app, r.On, code, x.code)
		}
	}
}

// While the judge is full, states are of their apps, and a start goes on with these incidents. They close
// when none of their states is so any more, and when there is room again each state has its name.
func TestStatesOfAFullJudge(t *testing.T) {
	defer func(was int) { mostGroups = was }(mostGroups)
	mostGroups = 100
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[[]State]
		cold := memory.NewCold()
		start := func() (w *world) {
			w = newWorld(t, cold)
			w.cfg.States = func() []State { return *now.Load() }
			return w
		}
		w := start()
		w.put(ChannelKind, "*", "ops", Channel{Kind: "webhook", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		r := NewRule()
		r.On, r.Channels, r.Repeat = []string{"breaker", "clock"}, []string{"ops"}, 0
		w.put(RuleKind, "*", "all", r)
		var all []State
		for i := range 1000 {
			all = append(all, State{Word: "breaker", App: "shop", Of: fmt.Sprint("flow k", i)})
		}
		// wants waits, and wants so many named incidents and the others; it returns the ids of all.
		wants := func(named int, others ...string) (ids []string) {
			t.Helper()
			time.Sleep(20 * time.Second)
			synctest.Wait()
			var got []string
			for _, i := range w.Incidents("") {
				switch {
				case i.Closed != 0:
					continue
				case strings.HasPrefix(i.By, "flow k"):
					named--
				default:
					got = append(got, i.By)
				}
				ids = append(ids, i.ID)
			}
			slices.Sort(got)
			slices.Sort(ids)
			if named != 0 || !slices.Equal(got, others) {
				t.Errorf("%d incidents of breakers are missing, the others are of %q, want %q", named, got, others)
			}
			return ids
		}
		full := append(slices.Clip(all), State{Word: "breaker", App: "else", Of: "flow l"}, State{Word: "clock", App: "*", Of: "clock of b"})
		now.Store(&full)
		w.run()
		before := wants(100, "clock of b", "else", "shop")
		w.stop()
		w = start()
		w.run()
		if after := wants(100, "clock of b", "else", "shop"); !slices.Equal(after, before) {
			t.Error("a start opens others")
		}
		now.Store(new(all[:100]))
		wants(100)
		now.Store(new(all[500:]))
		wants(99, "shop")
		now.Store(new(all[995:]))
		wants(5)
		now.Store(new([]State))
		wants(0)
		w.stop()
	})
}
