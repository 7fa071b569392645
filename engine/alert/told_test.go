package alert

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A message that one of two channels did not get before the process was killed is sent again
// under the same id, and so is the message of the end of an incident.
func TestToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.put(ChannelKind, "shop", "stuck", Channel{Kind: "slack", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		w.rule("r", func(r *Rule) { r.Channels = []string{"ops", "stuck"} })
		w.run()
		hang := make(chan struct{})
		got := map[string]string{}
		w.cfg.Send = func(_ context.Context, d *Delivery) Result {
			if d.Channel.Kind == "slack" {
				<-hang
			} else {
				got[d.Message.Type] = d.Message.ID
			}
			return Result{Delivered: true}
		}
		w.ends(1, engine.Dead)
		time.Sleep(10 * time.Second)
		w.ends(1, engine.Succeeded)
		time.Sleep(10 * time.Second)
		synctest.Wait()

		again := newWorld(t, cold) // beside the first, which stores nothing more
		stuck := map[string]string{}
		again.send = func(d *Delivery) Result {
			if d.Channel.Kind == "slack" {
				stuck[d.Message.Type] = d.Message.ID
			}
			return Result{Delivered: true}
		}
		again.run()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if len(again.sent) != 4 || len(stuck) != 2 || stuck["incident.opened"] != got["incident.opened"] || stuck["incident.recovered"] != got["incident.recovered"] {
			t.Errorf("%v, want %v", stuck, got)
		}
		again.stop()
		third := newWorld(t, cold)
		third.run()
		third.says(time.Minute)
		third.stop()
		close(hang)
		w.stop()
	})
}

// A success that was settled while no process ran ends an incident of its timer, and one of
// its app.
func TestSucceededBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.rule("app", func(r *Rule) { r.By, r.Within = "app", time.Minute })
		w.run()
		w.ends(1, engine.Dead)
		w.says(10*time.Second, "incident.opened", "incident.opened")
		w.stop()
		w.settled(1, engine.Succeeded)
		time.Sleep(time.Minute)
		w = newWorld(t, cold)
		w.run()
		w.says(10*time.Second, "incident.recovered", "incident.recovered")
		w.stop()
	})
}

// An incident that cannot be stored is told, and stored later.
func TestStoredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.full.Store(true)
		w.ends(1, engine.Dead)
		m := w.says(time.Minute, "incident.opened")
		w.full.Store(false)
		time.Sleep(10 * time.Second)
		again := newWorld(t, cold)
		if all := again.Incidents("shop"); len(all) != 1 || all[0].ID != m[0].Incident.ID {
			t.Errorf("%+v", all)
		}
		w.stop()
	})
}

// A digest counts each incident once, also those of messages that had to make room for others, and
// names each once.
func TestDigestCountsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(2)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		const n = 9000
		for i := range n {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		w.says(20*time.Second, "incident.opened")
		for i := range n {
			w.ends(engine.TimerID(i+1), engine.Succeeded)
		}
		time.Sleep(20 * time.Second)
		m := w.says(time.Minute, "digest")
		named := map[string]bool{}
		for _, i := range m[0].Incidents {
			named[i.ID] = i.Closed != 0
		}
		if m[0].Count != n || len(named) != mostNamed {
			t.Errorf("%d incidents are counted, want %d; %d are named", m[0].Count, n, len(named))
		}
		w.says(10 * time.Second)
		if len(w.ending) != 0 {
			t.Errorf("%d incidents are still to be told of", len(w.ending))
		}
		w.stop()
	})
}

// A new incident is stored at once, and not with it the others that count meanwhile.
func TestCountsAreStoredEveryFewSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.run()
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.ends(1, engine.Dead)
		first := w.says(time.Second, "incident.opened")[0].Incident.ID
		stored := func() (i Incident) {
			i, _ = read[Incident](w.set.Get(engine.ObjectKey{Kind: incidentKind, App: "shop", Name: first}))
			return i
		}
		w.ends(1, engine.Dead)
		w.ends(2, engine.Dead)
		w.says(time.Second, "incident.opened")
		if i := stored(); i.Count != 1 {
			t.Errorf("of %d failures is stored after a second", i.Count)
		}
		time.Sleep(2 * saveEvery)
		if i := stored(); i.Count != 2 {
			t.Errorf("%d failures are stored, want 2", i.Count)
		}
		w.stop()
	})
}

// Of the repeats that a channel did not take, the last is sent when it takes messages again, also
// after a start.
func TestOneRepeatAfterAnOutage(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cold := memory.NewCold()
			w := newWorld(t, cold)
			w.channel(60)
			w.rule("r", func(r *Rule) { r.Repeat = time.Minute })
			w.run()
			w.send = func(*Delivery) Result { return Result{} }
			w.ends(1, engine.Dead)
			time.Sleep(50*time.Minute + 30*time.Second)
			w.mu.Lock()
			w.sent, w.send = nil, nil
			w.mu.Unlock()
			if restarts {
				w.stop()
				w = newWorld(t, cold)
				w.run()
			} else if _, err := w.Test(t.Context(), "shop", "ops"); err != nil {
				t.Error(err)
			} else {
				w.mu.Lock()
				w.sent = w.sent[1:]
				w.mu.Unlock()
			}
			if m := w.says(10*time.Second, "incident.opened", "incident.repeated"); m[1].ID != "al_"+m[1].Incident.ID+"_51" {
				t.Errorf("%s is sent last", m[1].ID)
			}
			w.stop()
		})
	}
}

// An acknowledgement that cannot be stored is an error, and is stored with the next save.
func TestAckIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.ends(1, engine.Dead)
		id := w.says(10*time.Second, "incident.opened")[0].Incident.ID
		w.full.Store(true)
		if _, err := w.Ack(t.Context(), "shop", id, "on it"); err == nil {
			t.Error("an acknowledgement that is not stored is no error")
		}
		w.full.Store(false)
		time.Sleep(10 * time.Second)
		if i := newWorld(t, cold).Incidents("shop")[0]; i.Note != "on it" {
			t.Errorf("%+v", i)
		}
		w.stop()
	})
}

// A change of how often a rule repeats holds for the incidents that are open.
func TestRepeatIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		repeat := func(d time.Duration) { w.rule("r", func(r *Rule) { r.Repeat = d }) }
		repeat(4 * time.Hour)
		w.run()
		w.ends(1, engine.Dead)
		w.says(5*time.Minute, "incident.opened")
		repeat(10 * time.Minute)
		w.says(4 * time.Minute)
		w.says(2*time.Minute, "incident.repeated")
		repeat(0)
		w.says(24 * time.Hour)
		repeat(time.Hour)
		w.says(59 * time.Minute)
		w.says(2*time.Minute, "incident.repeated")
		w.stop()
	})
}

// An incident is stored before it is told also while the open incidents are not gone through,
// because that takes long.
func TestStoredFirstBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.send = func(d *Delivery) Result {
			if w.set.Get(d.Message.Incident.item().Key) == nil {
				t.Error("it is told before it is stored")
			}
			return Result{Delivered: true}
		}
		w.ends(1, engine.Dead)
		w.says(10*time.Second, "incident.opened")
		w.passTook = 100 * time.Millisecond
		w.ends(2, engine.Dead)
		w.says(10*time.Second, "incident.opened")
		w.stop()
	})
}

// A success ends the incident of its timer though the last record is of a later due, which was
// skipped while that success was being called: after a start, and for the one of several nodes that
// judges.
func TestSuccessBeforeASkippedDue(t *testing.T) {
	for _, leads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cold := memory.NewCold()
			w := newWorld(t, cold)
			if leads {
				w.cfg.Leads = func() bool { return true }
			}
			w.channel(60)
			w.rule("r", func(r *Rule) { r.Repeat = 0 })
			w.run()
			time.Sleep(10 * time.Second)
			w.settled(1, engine.Succeeded)
			time.Sleep(time.Second)
			w.settled(1, engine.Dead)
			w.says(5*time.Second, "incident.opened")
			w.settled(1, engine.Skipped)
			w.says(time.Minute) // the success is of before
			if !leads {
				w.stop()
			}
			due := w.now()
			time.Sleep(time.Second)
			w.settled(1, engine.Skipped)
			task := &engine.Task{Key: engine.Key{Timer: 1, Due: due}, App: "shop", Name: "t1", Status: engine.Succeeded, Ended: w.now()}
			w.settles([]engine.Record{{Key: task.Key, Status: task.Status, Encoded: engine.AppendTask(nil, task)}})
			if !leads {
				w = newWorld(t, cold)
				w.run()
			}
			w.says(time.Minute, "incident.recovered")
			w.stop()
		})
	}
}
