package alert

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A state that several nodes have is one with the sum of theirs. No state is looked for among all
// others: there may be as many as open breakers. That would take 100 times as long.
func TestWithOthers(t *testing.T) {
	state := func(of, n int) State { return State{Word: "backlog", App: "shop", Of: fmt.Sprint(of), N: int64(n)} }
	a := &Alerter{lead: lead{states: map[string][]State{"b": {state(2, 1), state(3, 1)}, "c": {state(3, 1)}}}}
	got := a.withOthers([]State{state(1, 1), state(2, 1)})
	if want := []State{state(1, 1), state(2, 2), state(3, 2)}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var own, others []State
	for i := range 5000 {
		own, others = append(own, state(i, 1)), append(others, state(5000+i, 1))
	}
	from := time.Now()
	all := slices.Clone(own)
	for _, s := range others {
		if !slices.ContainsFunc(all, func(x State) bool { return x.Word == s.Word && x.App == s.App && x.Of == s.Of }) {
			all = append(all, s)
		}
	}
	looked := time.Since(from)
	a.lead.states = map[string][]State{"b": others}
	from = time.Now()
	got = a.withOthers(own)
	if took := time.Since(from); took > looked/4 || !slices.Equal(got, all) {
		t.Errorf("%d states in %v, and in %v if each is looked for among all", len(got), took, looked)
	}
}

// asks has a node that judges ask another one. As lost says, the answer comes too late.
func (w *world) asks(other *atomic.Pointer[world], lost *atomic.Bool) {
	w.AskBy(func(_ context.Context, message []byte) map[string][]byte {
		answer, err := other.Load().Report(message)
		if err != nil {
			w.Error(err)
		}
		if lost.Load() {
			answer = nil
		}
		return map[string][]byte{"b": answer}
	})
}

// The failures of old dues wait on their node until they are judged, and are counted once.
func TestOldDuesWait(t *testing.T) {
	for _, how := range []string{"nobody leads", "answers are lost", "definitions cannot be read", "late calls fill the ring", "the node begins anew", "the lead is lost meanwhile"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cold := memory.NewCold()
				a, b := newWorld(t, cold), newWorld(t, cold)
				var none, lost atomic.Bool
				var other atomic.Pointer[world]
				other.Store(b)
				a.cfg.Leads, b.cfg.Leads = func() bool { return !none.Load() }, func() bool { return false }
				b.ring.events.most = 20
				a.asks(&other, &lost)
				a.channel(60)
				a.rule("r", func(r *Rule) { r.Repeat, r.Match.Label, r.By = 0, "team=a", "app" })
				a.rule("late", func(r *Rule) { r.On, r.Repeat, r.By = []string{"late"}, 0, "rule" })
				a.run()
				b.run()
				time.Sleep(10 * time.Second)
				a.settles(a.fails(1, 1, 48*time.Hour))
				b.settles(b.fails(11, 1, 48*time.Hour))
				a.says(10*time.Second, "incident.opened")
				of, n := b, 30
				switch how {
				case "nobody leads":
					none.Store(true)
					time.Sleep(3 * time.Second)
				case "late calls fill the ring":
					none.Store(true)
					for time.Sleep(3 * time.Second); b.ring.lost.Get() == 0; {
						b.first(7, 1, time.Minute)
					}
				case "the node begins anew":
					lost.Store(true)
					b.stop()
					of = newWorld(t, cold)
					of.cfg.Leads = b.cfg.Leads
					of.run()
					other.Store(of)
					n = 1
				case "answers are lost":
					lost.Store(true)
				case "the lead is lost meanwhile":
					a.away.Store(true)
					of = a
				default:
					a.away.Store(true)
				}
				of.settles(of.fails(21, n, 48*time.Hour))
				if of == a {
					time.Sleep(5 * time.Second)
					none.Store(true)
				}
				time.Sleep(time.Minute)
				none.Store(false)
				lost.Store(false)
				a.away.Store(false)
				a.says(10 * time.Minute)
				a.counted(int64(2 + n))
				for _, w := range []*world{a, b, of} {
					w.stop()
				}
				if of.ring.events.len+of.ring.briefs.len+of.ring.firsts.len > 0 || of.ring.holds.Load() {
					t.Error("something waits that was judged")
				}
			})
		})
	}
}

// A node that judges and one that is asked understand each other if one has an older version, which
// knows no numbers: what was told once is not told again.
func TestOldDuesOfOlderVersions(t *testing.T) {
	w := newWorld(t, memory.NewCold())
	w.cfg.Leads = func() bool { return false }
	w.channel(60)
	w.rule("r", func(*Rule) {})
	w.fails(1, 3, 48*time.Hour)
	for _, want := range []int{3, 0} {
		answer, err := w.Report([]byte(`{"watched":null}`))
		var r report
		if err != nil || json.Unmarshal(answer, &r) != nil || len(r.Ends) != want {
			t.Errorf("%s, %v", answer, err)
		}
	}
	a := newWorld(t, w.cold)
	a.forgetAll()
	a.rulesChanged(engine.ObjectKey{})
	a.judge.setRules(a.inForce(), a.now())
	a.AskBy(func(context.Context, []byte) map[string][]byte {
		return map[string][]byte{"b": fmt.Appendf(nil, `{"states":null,"firsts":null,"ends":[{"Key":{"Timer":1,"Due":1},"App":"shop","Name":"t1","Ended":5,"Code":0,"Class":0,"Status":%d,"N":1}]}`, engine.Dead)}
	})
	a.askOthers(t.Context())
	a.askOthers(t.Context())
	if len(a.open) != 1 {
		t.Errorf("%d incidents are open", len(a.open))
	}
}

// A new rule does not count what waited when the last rule before it was deleted.
func TestOldEndsOfAFormerRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		a, b := newWorld(t, cold), newWorld(t, cold)
		var lost atomic.Bool
		var other atomic.Pointer[world]
		other.Store(b)
		a.cfg.Leads, b.cfg.Leads = func() bool { return true }, func() bool { return false }
		a.asks(&other, &lost)
		a.channel(60)
		a.rule("r", func(r *Rule) { r.Repeat, r.By = 0, "app" })
		a.run()
		b.run()
		time.Sleep(10 * time.Second)
		b.settles(b.fails(1, 1, 48*time.Hour)) // not asked for yet
		if err := a.cfg.Objects.Delete(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "r"}, nil); err != nil {
			t.Fatal(err)
		}
		_ = b.cfg.Objects.Load(t.Context())
		time.Sleep(time.Hour)
		a.rule("new", func(r *Rule) { r.Repeat, r.By = 0, "app" })
		_ = b.cfg.Objects.Load(t.Context())
		time.Sleep(time.Minute)
		a.mu.Lock()
		for _, i := range a.open {
			t.Errorf("the rule of a minute ago has an incident that opened %v ago: %+v", time.Duration(a.now()-i.Opened)*time.Millisecond, *i)
		}
		a.mu.Unlock()
		a.stop()
		b.stop()
	})
}

// The last rule is deleted while ends that wait behind the ring are judged.
func TestRuleDeletedWhileBriefsAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.ring.events.most = 10
		w.loads = 100 * time.Millisecond
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat, r.By = 0, "app" })
		w.run()
		time.Sleep(time.Second)
		w.fails(1, 100, time.Second)
		time.Sleep(50 * time.Millisecond)
		if err := w.cfg.Objects.Delete(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "r"}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.stop()
	})
}
