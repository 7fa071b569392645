package alert

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// The last 20 messages of a channel are known, each with what came of it; a message that is
// sent again is one. They end with the channel.
func TestDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(1000)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		defer w.stop()
		answers := []Result{
			{Error: "no answer"},
			{Status: 503, Answer: strings.Repeat("€", 100), Error: "503"},
			{Delivered: true, Status: 200, Answer: "ok"},
			{Final: true, Status: 200, Answer: "310000", Error: "the answer has the code 310000"},
		}
		w.send = func(*Delivery) Result {
			r := answers[0]
			answers = answers[min(1, len(answers)-1):]
			return r
		}
		w.ends(1, engine.Dead)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		got := w.Deliveries("shop", "ops")
		if len(got) != 1 || got[0].Outcome != "retrying" || got[0].Attempts != 2 || got[0].Answer != strings.Repeat("€", 66) || got[0].By != "t1" {
			t.Fatalf("%+v", got)
		}
		time.Sleep(time.Minute)
		w.ends(2, engine.Dead)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got = w.Deliveries("shop", "ops")
		if len(got) != 2 || got[0].Outcome != "refused" || got[0].By != "t2" || got[1].Outcome != "delivered" || got[1].Attempts != 3 || got[1].Error != "" {
			t.Fatalf("%+v", got)
		}
		if _, err := w.Test(t.Context(), "shop", "ops"); err != nil {
			t.Fatal(err)
		}
		if got := w.Deliveries("shop", "ops"); got[0].Type != "test" || got[0].Outcome != "refused" {
			t.Errorf("%+v", got[0])
		}
		for i := range 30 {
			w.ends(engine.TimerID(i+10), engine.Dead)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.Deliveries("shop", "ops"); len(got) != keptOfChannel || got[0].Type != "incident.opened" {
			t.Errorf("%d %+v", len(got), got[0])
		}
		for _, k := range []engine.ObjectKey{{Kind: RuleKind, App: "shop", Name: "r"}, {Kind: ChannelKind, App: "shop", Name: "ops"}} {
			if err := w.set.Delete(context.Background(), k, nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.Deliveries("shop", "ops"); len(got) != 0 {
			t.Errorf("%d of a channel that is gone", len(got))
		}
	})
}

// Of many channels those are kept that were sent something last.
func TestKeptChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s deliveries
		for i := range keptChannels + 10 {
			s.note(engine.ObjectKey{Name: fmt.Sprint(i)}, &Message{ID: "m"}, &Result{}, "delivered")
			time.Sleep(time.Millisecond)
		}
		if len(s.of) != keptChannels || s.of[engine.ObjectKey{Name: "9"}] != nil || s.of[engine.ObjectKey{Name: "10"}] == nil {
			t.Errorf("%d channels are kept", len(s.of))
		}
	})
}
