package alert

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// In no minute a channel gets more messages than it takes, repeats included, and every
// incident is in one of them.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(18)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		var at []time.Time
		told := 0
		w.send = func(d *Delivery) Result {
			at = append(at, time.Now())
			if len(at)%20 >= 17 {
				return Result{} // it is tried again
			}
			told += max(d.Message.Count, 1)
			return Result{Delivered: true}
		}
		w.ends(1, engine.Dead)
		time.Sleep(55 * time.Second)
		for i := range 600 {
			w.ends(engine.TimerID(i+2), engine.Dead)
			time.Sleep(250 * time.Millisecond)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range at {
			if i >= 18 && at[i].Sub(at[i-18]) < time.Minute {
				t.Fatalf("19 messages in %v", at[i].Sub(at[i-18]))
			}
		}
		if told != 601 {
			t.Errorf("%d incidents were told, want 601", told)
		}
		w.stop()
	})
}

// A message is sent when its incident is stored: a process that is killed then sends it again
// under the same id.
func TestStoredFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.send = func(d *Delivery) Result {
			o := w.set.Get(engine.ObjectKey{Kind: incidentKind, App: "shop", Name: d.Message.Incident.ID})
			if o == nil {
				t.Error("the incident is not stored")
			} else if i, _ := read[Incident](o); i.Told != 1 || i.Sent != 0 {
				t.Errorf("stored is %+v", i)
			}
			return Result{Delivered: true}
		}
		w.puts = 10 * time.Millisecond
		for i := range 200 {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		w.mu.Lock()
		w.send = nil
		n := len(w.sent)
		w.mu.Unlock()
		if n != 59 {
			t.Errorf("%d messages were sent, want 59", n)
		}
		w.stop()
	})
}

// Slack takes one message a second.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.put(ChannelKind, "shop", "ops", Channel{Kind: "slack", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		w.rule("r", func(*Rule) {})
		w.run()
		var at []time.Time
		w.send = func(*Delivery) Result {
			at = append(at, time.Now())
			return Result{Delivered: true}
		}
		for i := range 5 {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		w.says(time.Minute, "incident.opened", "incident.opened", "incident.opened", "incident.opened", "incident.opened")
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) < time.Second {
				t.Errorf("two messages in %v", at[i].Sub(at[i-1]))
			}
		}
		w.stop()
	})
}

// A channel that hangs holds up neither the engine nor another channel.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.put(ChannelKind, "shop", "stuck", Channel{Kind: "slack", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		w.rule("r", func(r *Rule) { r.Channels, r.Repeat = []string{"stuck", "ops"}, 0 })
		hang := make(chan struct{})
		got := 0
		w.Alerter.cfg.Send = func(_ context.Context, d *Delivery) Result {
			if d.Channel.Kind == "slack" {
				<-hang
			} else {
				got += max(d.Message.Count, 1)
			}
			return Result{Delivered: true}
		}
		w.run()
		began := time.Now()
		for i := range 2000 {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the engine waited for %v", took)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got != 2000 {
			t.Errorf("the other channel was told of %d incidents, want 2000", got)
		}
		close(hang)
		w.stop()
	})
}

// Beyond 10,000 incidents, failures are counted by app: none is missed, and a judge that is
// full does not go through all it has for each.
func TestMerged(t *testing.T) {
	j := newJudge(func() string { return "i" })
	r := NewRule()
	r.On = []string{"dead"}
	j.rules["shop"] = []*ruleAt{newRuleAt("shop", "r", r)}
	const n = 300_000
	var all []*Incident
	for i := range n {
		ev := event{Key: engine.Key{Timer: engine.TimerID(i + 1), Due: 1}, App: "shop", Status: engine.Dead, Ended: 1}
		all = append(all, j.failed(&ev, nil, 0)...)
	}
	sum := int64(0)
	for _, i := range all {
		sum += i.Count
	}
	if len(all) != mostGroups+1 || sum != n || all[mostGroups].By != "shop" {
		t.Errorf("%d incidents of %d failures", len(all), sum)
	}
	for i := range mostGroups { // all timers but the merged ones succeed
		ev := event{Key: engine.Key{Timer: engine.TimerID(i + 1), Due: 2}, App: "shop", Status: engine.Succeeded, Ended: 2}
		j.succeeded(&ev)
	}
	if j.pass(3_600_000, func(string, int64) bool { return true }); len(j.groups) != 1 {
		t.Errorf("%d groups are left", len(j.groups))
	}
}

// Messages to Feishu of a full or half hour are spread over 20 s; others, and those to other
// channels, are sent at once.
func TestSpread(t *testing.T) {
	for _, at := range []string{"2026-11-27T10:00:00Z", "2026-11-27T10:30:19.999Z"} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		least, most := time.Hour, time.Duration(0)
		for range 1000 {
			wait := spread("feishu", now)
			least, most = min(least, wait), max(most, wait)
		}
		if least > 3*time.Second || most < 17*time.Second || most >= 20*time.Second {
			t.Errorf("%s: messages wait between %v and %v", at, least, most)
		}
		if wait := spread("wecom", now); wait != 0 {
			t.Errorf("%s: a message to WeCom waits %v", at, wait)
		}
		if wait := spread("feishu", now.Add(20*time.Second)); wait != 0 {
			t.Errorf("20 s after %s a message waits %v", at, wait)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.put(ChannelKind, "shop", "ops", Channel{Kind: "feishu", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		var longest time.Duration
		sent := 0
		w.send = func(*Delivery) Result {
			sent++
			longest = max(longest, time.Since(time.Now().Truncate(30*time.Minute)))
			return Result{Delivered: true}
		}
		for i := range 10 {
			w.ends(engine.TimerID(i+1), engine.Dead)
			time.Sleep(30 * time.Minute)
		}
		w.stop()
		w.mu.Lock() // held by each call of send
		defer w.mu.Unlock()
		if sent != 10 || longest < 2*time.Second || longest > 22*time.Second {
			t.Errorf("%d messages were sent, the last one %v late", sent, longest)
		}
	})
}

// An app tests its channels 6 times a minute, and is told when it may again; others are not held up.
func TestTestsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		for _, app := range []string{"shop", "other"} {
			w.put(ChannelKind, app, "ops", Channel{Kind: "webhook", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		}
		for range 6 {
			if _, err := w.Test(t.Context(), "shop", "ops"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(20 * time.Second)
		_, err := w.Test(t.Context(), "shop", "ops")
		var f *engine.Fault
		if !errors.As(err, &f) || f.Code != "too_many_tests" || f.Rate.Wait != 40*time.Second {
			t.Errorf("%+v", err)
		}
		if _, err := w.Test(t.Context(), "other", "ops"); err != nil {
			t.Error(err)
		}
		time.Sleep(40 * time.Second)
		if _, err := w.Test(t.Context(), "shop", "ops"); err != nil {
			t.Error(err)
		}
	})
}

// A message that a channel does not take goes where the channel says when it is sent again, at
// once when that was changed or takes a test; and it ends with the channel.
func TestChannelIsChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		url := func(to string) {
			w.put(ChannelKind, "shop", "ops", Channel{Kind: "webhook", URL: Text{Value: to}, Lang: "en", PerMinute: 60})
		}
		url("http://wrong/")
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		var attempts []string
		right := "http://right/"
		set := func(to string) {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			right, attempts, w.sent = to, nil, nil
		}
		w.send = func(d *Delivery) Result {
			attempts = append(attempts, d.Channel.URL.Value)
			return Result{Delivered: d.Channel.URL.Value == right}
		}
		w.ends(1, engine.Dead)
		time.Sleep(20 * time.Minute)
		set(right)
		w.put(ChannelKind, "shop", "other", Channel{Kind: "webhook", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		w.channelChanged(engine.ObjectKey{}) // some may have changed
		w.says(time.Second)
		url(right)
		w.says(time.Second, "incident.opened")

		set("none")
		w.ends(2, engine.Dead)
		time.Sleep(20 * time.Minute)
		set("http://right/")
		if _, err := w.Test(t.Context(), "shop", "ops"); err != nil {
			t.Error(err)
		}
		w.says(time.Second, "test", "incident.opened")

		set("none")
		w.ends(3, engine.Dead)
		w.ends(4, engine.Dead)
		time.Sleep(time.Second)
		for _, k := range []engine.ObjectKey{{Kind: RuleKind, App: "shop", Name: "r"}, {Kind: ChannelKind, App: "shop", Name: "ops"}} {
			if err := w.set.Delete(t.Context(), k, nil); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Hour)
		w.stop()
		if len(attempts) != 1 {
			t.Errorf("%d attempts, want 1 before the channel was deleted", len(attempts))
		}
	})
}

// The box of a channel goes with the channel: of one that is idle at once, of one that hangs when its
// last send ends.
func TestBoxesOfDeletedChannels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		hangs := make(chan struct{})
		w.Alerter.cfg.Send = func(_ context.Context, d *Delivery) Result {
			if d.Channel.Kind == "slack" {
				<-hangs
			}
			return Result{Delivered: true}
		}
		kinds := map[string]string{"idle": "webhook", "busy": "slack", "stays": "webhook"}
		for name, kind := range kinds {
			w.put(ChannelKind, "shop", name, Channel{Kind: kind, URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: 60})
		}
		boxes := func(want ...string) {
			t.Helper()
			synctest.Wait()
			w.box.mu.Lock()
			defer w.box.mu.Unlock()
			var got []string
			for k := range w.box.boxes {
				got = append(got, k.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("there are boxes of %q, want %q", got, want)
			}
		}
		w.rule("r", func(r *Rule) { r.Channels, r.Repeat = []string{"idle", "busy", "stays"}, 0 })
		w.run()
		w.ends(1, engine.Dead)
		time.Sleep(10 * time.Second)
		boxes("busy", "idle", "stays")
		w.rule("r", func(r *Rule) { r.Channels, r.Repeat = []string{"stays"}, 0 })
		for _, name := range []string{"idle", "busy"} {
			if err := w.set.Delete(t.Context(), engine.ObjectKey{Kind: ChannelKind, App: "shop", Name: name}, nil); err != nil {
				t.Fatal(err)
			}
		}
		boxes("busy", "stays")
		close(hangs)
		boxes("stays")
		w.stop()
	})
}
