package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A channel that fails ten times in a row is an incident of the app "*" until it takes a
// message, also across a start; a rule about channels tells another channel of it.
func TestChannelFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		broken := func(d *Delivery) Result { return Result{Delivered: d.Channel.Kind == "slack", Final: true} }
		w.send = broken
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat, r.Recovered = 0, false })
		w.run()
		fail := func(from, n int) {
			for i := range n {
				w.ends(engine.TimerID(from+i), engine.Dead)
				time.Sleep(10 * time.Second)
			}
			synctest.Wait()
		}
		open := func() (all []Incident) {
			for _, i := range w.Incidents("*") {
				if i.Closed == 0 {
					all = append(all, i)
				}
			}
			return all
		}
		fail(1, 9)
		if got := open(); len(got) != 0 {
			t.Errorf("after 9 failures: %+v", got)
		}
		fail(10, 1)
		got := open()
		if len(got) != 1 || got[0].By != "shop/ops" || got[0].On[0] != "channel" || got[0].Severity != "critical" || got[0].Rule != "(built in)" {
			t.Errorf("after 10 failures: %+v", got)
		}
		w.stop()

		w = newWorld(t, cold)
		w.send = broken
		w.run()
		time.Sleep(time.Minute)
		if again := open(); len(again) != 1 || again[0].ID != got[0].ID {
			t.Errorf("after a start: %+v", again)
		}
		w.mu.Lock()
		w.sent, w.send = nil, nil
		w.mu.Unlock()
		if r, err := w.Test(t.Context(), "shop", "ops"); err != nil || !r.Delivered {
			t.Error(r, err)
		}
		time.Sleep(10 * time.Second)
		if got := open(); len(got) != 0 {
			t.Errorf("after a message was taken: %+v", got)
		}

		w.put(ChannelKind, "*", "boss", Channel{Kind: "slack", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		r := NewRule()
		r.On, r.Channels = []string{"channel"}, []string{"boss"}
		w.put(RuleKind, "*", "channels", r)
		w.says(0, "test")
		w.mu.Lock()
		w.send = broken
		w.mu.Unlock()
		fail(20, 10)
		if len(w.sent) != 11 || w.sent[10].Incident.State != "channel" || w.sent[10].Incident.Rule != "channels" {
			t.Errorf("%d messages, the last %+v", len(w.sent), w.sent[len(w.sent)-1].Incident)
		}
		w.stop()
	})
}
