package alert

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// settled puts the end of a task of some node into history.
func (w *world) settled(timer engine.TimerID, status engine.TaskStatus) {
	w.Helper()
	now := w.now()
	t := &engine.Task{Key: engine.Key{Timer: timer, Due: now}, App: "shop", Name: "t" + timer.String(), Status: status, Ended: now}
	w.Ended(t) // its own engine tells it too
	record := engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)}
	if err := w.cold.Settle(w.Context(), &engine.Settlement{Owner: "n", Tasks: []engine.Record{record}}); err != nil {
		w.Fatal(err)
	}
}

// Of several nodes one judges, what all have called; another goes on where that ended, and
// any acknowledges.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		var leader atomic.Int32
		nodes := [2]*world{newWorld(t, cold), newWorld(t, cold)}
		for i, w := range nodes {
			w.cfg.Leads = func() bool { return leader.Load() == int32(i) }
		}
		a, b := nodes[0], nodes[1]
		a.channel(60)
		a.rule("r", func(r *Rule) { r.After, r.By, r.Repeat = 3, "app", 10*time.Minute })
		a.rule("timer", func(r *Rule) { r.On, r.Repeat = []string{"unknown"}, 10*time.Minute })
		a.run()
		b.run()
		time.Sleep(10 * time.Second)
		a.settled(1, engine.Dead)
		b.settled(2, engine.Dead)
		a.says(5 * time.Second)
		b.settled(3, engine.Dead)
		if m := a.says(5*time.Second, "incident.opened"); m[0].Incident.Count != 3 {
			t.Errorf("%+v", m[0].Incident)
		}
		b.settled(4, engine.Unknown)
		a.says(5*time.Second, "incident.opened")
		a.says(2 * time.Minute) // nothing is counted twice
		for _, i := range b.Incidents("shop") {
			if i.Timer != 0 {
				if _, err := b.Ack(t.Context(), "shop", i.ID, "on it"); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.says(10*time.Minute, "incident.repeated") // of the other one

		leader.Store(1)
		b.says(10 * time.Second)
		for _, i := range b.Incidents("shop") {
			if i.Timer == 0 && i.Count != 3 || i.Timer != 0 && (i.Count != 1 || i.Acked == 0) {
				t.Errorf("%+v", i)
			}
		}
		a.settled(4, engine.Succeeded)
		b.says(time.Minute, "incident.recovered", "incident.recovered")
		b.settled(5, engine.Unknown)
		b.says(10*time.Second, "incident.opened")
		a.says(time.Second)
		a.stop()
		b.stop()
	})
}

// A node that does not judge any more does not go on to send what a channel did not take: the node
// that judges does.
func TestLeadIsGivenWhileAChannelIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		var leader atomic.Int32
		var up atomic.Bool
		nodes := [2]*world{newWorld(t, cold), newWorld(t, cold)}
		for i, w := range nodes {
			w.cfg.Leads = func() bool { return leader.Load() == int32(i) }
			w.send = func(*Delivery) Result { return Result{Delivered: up.Load()} }
		}
		a, b := nodes[0], nodes[1]
		a.channel(60)
		a.rule("r", func(r *Rule) { r.Repeat = 0 })
		a.run()
		b.run()
		time.Sleep(10 * time.Second)
		a.settled(1, engine.Dead)
		time.Sleep(30 * time.Second)
		leader.Store(1)
		time.Sleep(10 * time.Minute)
		for _, w := range nodes {
			w.mu.Lock()
			w.sent = nil
			w.mu.Unlock()
		}
		up.Store(true)
		b.says(time.Hour, "incident.opened")
		a.says(0)
		leader.Store(0) // the message was sent
		a.says(time.Minute)
		a.stop()
		b.stop()
	})
}

// The failures of a node that could not store them for minutes are counted, each once.
func TestLeadSettledLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.cfg.Leads = func() bool { return true }
		w.channel(60)
		w.rule("r", func(r *Rule) { r.By = "app" })
		w.run()
		time.Sleep(10 * time.Second)
		records := w.fails(1, 1000, 23*time.Hour)
		time.Sleep(3 * time.Minute)
		w.settles(records[:500])
		w.says(2*time.Minute, "incident.opened")
		w.counted(500)
		w.settles(records[500:])
		w.says(10 * time.Minute)
		w.counted(1000)
		w.stop()
	})
}

// A failure of a task that was due days ago, such as that of a redrive, is told, whichever node has
// called it: history is not searched that far back.
func TestLeadIsToldOfOldDues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		a, b := newWorld(t, cold), newWorld(t, cold)
		a.cfg.Leads, b.cfg.Leads = func() bool { return true }, func() bool { return false }
		a.AskBy(func(_ context.Context, message []byte) map[string][]byte {
			answer, err := b.Report(message)
			if err != nil {
				t.Error(err)
			}
			return map[string][]byte{"b": answer}
		})
		a.channel(60)
		a.rule("r", func(r *Rule) { r.Repeat = 0 })
		a.run()
		b.run()
		time.Sleep(10 * time.Second)
		for n, w := range []*world{a, b} {
			for days := range 3 {
				w.settles(w.fails(10*n+days+1, 1, time.Duration(days*24)*time.Hour))
			}
			a.says(2*time.Minute, "incident.opened", "incident.opened", "incident.opened")
		}
		a.counted(6)
		a.stop()
		b.stop()
	})
}

// The node that judges is told of late calls and states of the others: a backlog is the sum of
// all, and what a node says holds while the node lives and does not answer. Late calls that
// were not asked for are told after a change of the judge.
func TestLeadAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		var leader, silent, dead, backlog atomic.Int32
		nodes := [2]*world{newWorld(t, cold), newWorld(t, cold)}
		for i, w := range nodes {
			other := nodes[1-i]
			w.cfg.Leads = func() bool { return leader.Load() == int32(i) }
			w.cfg.States = func() []State {
				all := []State{{Word: "backlog", App: "shop", Of: "shop", N: int64(backlog.Load())}}
				if i == 1 && backlog.Load() > 0 {
					all = append(all, State{Word: "breaker", App: "shop", Of: "flow x"})
				}
				return all
			}
			w.AskBy(func(_ context.Context, message []byte) map[string][]byte {
				answer, err := other.Report(message)
				switch {
				case err != nil:
					t.Error(err)
				case dead.Load() > 0:
					return nil
				case silent.Load() > 0:
					answer = nil
				}
				return map[string][]byte{"other": answer}
			})
		}
		a, b := nodes[0], nodes[1]
		a.channel(60)
		a.rule("late", func(r *Rule) { r.On, r.Late, r.Repeat = []string{"late"}, 2*time.Second, 0 })
		a.rule("state", func(r *Rule) {
			r.On, r.Over, r.For, r.Repeat = []string{"backlog", "breaker"}, 100, 10*time.Second, 0
		})
		a.run()
		b.run()
		time.Sleep(10 * time.Second)

		b.first(7, 1, time.Minute)
		if m := a.says(5*time.Second, "incident.opened"); m[0].Incident.On[0] != "late" || m[0].Incident.Tasks[0].Key == "" {
			t.Errorf("%+v", m[0].Incident)
		}
		b.first(8, 1, time.Millisecond)
		a.says(5 * time.Second)
		b.first(7, 2, time.Millisecond) // in time again
		a.says(5*time.Second, "incident.recovered")

		backlog.Store(60) // on each of the two
		a.says(30*time.Second, "incident.opened", "incident.opened")
		silent.Store(1)
		a.says(time.Minute)
		dead.Store(1)
		a.says(time.Minute, "incident.recovered", "incident.recovered")
		dead.Store(0)
		silent.Store(0)
		backlog.Store(0)
		a.says(time.Minute)

		silent.Store(1)
		leader.Store(2) // nobody, for a while
		time.Sleep(3 * time.Second)
		b.first(9, 1, time.Minute)
		time.Sleep(10 * time.Second)
		leader.Store(1)
		b.says(10*time.Second, "incident.opened")
		leader.Store(2)
		time.Sleep(3 * time.Second)
		b.first(10, 1, time.Minute)
		time.Sleep(time.Minute) // too long ago
		leader.Store(1)
		b.says(10 * time.Second)
		a.stop()
		b.stop()
	})
}

// An acknowledgement that another node has stored is not lost when the node that judges stores
// the incident before it has seen that; and a closed incident does not open by one.
func TestAckOfAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		a, b := newWorld(t, cold), newWorld(t, cold)
		a.cfg.Leads = func() bool { return true }
		b.cfg.Leads = func() bool { return false }
		a.channel(60)
		a.rule("r", func(*Rule) {})
		a.run()
		b.run()
		time.Sleep(10 * time.Second)
		a.settled(1, engine.Dead)
		id := a.says(10*time.Second, "incident.opened")[0].Incident.ID
		if _, err := b.Ack(t.Context(), "shop", id, "on it"); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		a.open[id].changed = true
		a.mu.Unlock()
		a.save(t.Context())
		a.says(24 * time.Hour)
		if all := a.Incidents("shop"); all[0].Note != "on it" {
			t.Errorf("%+v", all[0])
		}
		a.mu.Lock()
		i := a.open[id]
		i.Closed, i.Acked = a.now(), 0
		a.closed(i)
		a.mu.Unlock()
		a.save(t.Context())
		if _, err := b.Ack(t.Context(), "shop", id, ""); !errors.Is(err, engine.ErrNotFound) {
			t.Error(err)
		}
		a.stop()
		b.stop()
		if all := newWorld(t, cold).Incidents("shop"); len(all) != 1 || all[0].Closed == 0 {
			t.Errorf("%+v", all)
		}
	})
}
