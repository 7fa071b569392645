package alert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/engine/secret"
	"xtimer/tier/memory"
)

// world is an alerter on a tier in memory, and what its channels were sent.
type world struct {
	testing.TB
	*Alerter
	cold *memory.Cold
	set  *object.Set
	mu   sync.Mutex
	sent []Message
	send func(d *Delivery) Result
	stop func()
	gone atomic.Uint64 // the timer that is not there
	away atomic.Bool   // definitions cannot be read
	full atomic.Bool   // objects cannot be stored
	puts time.Duration // how long it takes to store objects
	bad  engine.Key    // a record that is stored and cannot be read
	back atomic.Int64  // by how much (ns) the clock is set back
	// How long it takes to read definitions, and when each read began.
	loads time.Duration
	began []time.Time
	pages atomic.Int64 // of tasks that were read
}

// timers is a cold tier that has each timer but one.
type timers struct {
	*memory.Cold
	w *world
}

func (c timers) Timer(_ context.Context, id engine.TimerID) (*engine.Timer, error) {
	if uint64(id) == c.w.gone.Load() {
		return nil, engine.ErrNotFound
	}
	return &engine.Timer{ID: id}, nil
}

// Tasks ends a page before the record that cannot be read, or fails on it.
func (c timers) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	c.w.pages.Add(1)
	ts, next, err := c.Cold.Tasks(ctx, f, before, limit)
	switch i := slices.IndexFunc(ts, func(t *engine.Task) bool { return t.Key == c.w.bad }); {
	case i == 0:
		return nil, engine.Key{}, &engine.Damage{Row: "a record", Key: c.w.bad, Err: errors.New("its bytes are wrong")}
	case i > 0:
		return ts[:i], ts[i-1].Key, nil
	}
	return ts, next, err
}

func (c timers) Load(_ context.Context, ids []engine.TimerID) ([][]byte, error) {
	if c.w.away.Load() {
		return nil, engine.ErrUnavailable
	}
	c.w.began = append(c.w.began, time.Now())
	time.Sleep(c.w.loads)
	all := make([][]byte, len(ids))
	for i, id := range ids {
		if uint64(id) != c.w.gone.Load() {
			all[i] = engine.Carried(&engine.Timer{ID: id, Definition: engine.Definition{App: "shop", Name: fmt.Sprint("t", id), Labels: []engine.Label{{Key: "team", Value: "a"}}}})
		}
	}
	return all, nil
}

func (c timers) PutObjects(ctx context.Context, puts ...engine.ObjectPut) error {
	if time.Sleep(c.w.puts); c.w.full.Load() {
		return engine.ErrUnavailable
	}
	return c.Cold.PutObjects(ctx, puts...)
}

func newWorld(t testing.TB, cold *memory.Cold) *world {
	w := &world{TB: t, cold: cold}
	log := slog.New(slog.DiscardHandler)
	w.set = object.New(timers{cold, w}, time.Now, log)
	w.Alerter = New(Config{Objects: w.set, Cold: timers{cold, w}, Log: log, Metrics: metrics.NewSet(), Now: w.time, Send: func(_ context.Context, d *Delivery) Result {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, d.Message)
		if w.send != nil {
			return w.send(d)
		}
		return Result{Delivered: true}
	}})
	if err := w.set.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) time() time.Time { return time.Now().Add(-time.Duration(w.back.Load())) }

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	if w.cfg.Leads != nil {
		go func() { _ = w.set.FollowOthers(ctx) }()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = w.Alerter.Run(ctx)
	}()
	w.stop = func() {
		cancel()
		<-ended
	}
	synctest.Wait()
}

func (w *world) put(kind, app, name string, v any) {
	w.Helper()
	body, err := json.Marshal(v)
	if err == nil {
		_, _, err = w.set.Put(w.Context(), engine.ObjectKey{Kind: kind, App: app, Name: name}, body, nil)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) rule(name string, edit func(*Rule)) {
	w.Helper()
	r := NewRule()
	r.On, r.Channels = []string{"dead", "failed"}, []string{"ops"}
	edit(&r)
	w.put(RuleKind, "shop", name, r)
}

func (w *world) channel(perMinute int) {
	w.put(ChannelKind, "shop", "ops", Channel{Kind: "webhook", URL: Text{Value: "http://x/"}, Lang: "en", PerMinute: perMinute})
}

func (w *world) ends(timer engine.TimerID, status engine.TaskStatus) {
	now := w.now()
	w.Ended(&engine.Task{Key: engine.Key{Timer: timer, Due: now}, App: "shop", Name: fmt.Sprint("t", timer), Status: status, Ended: now})
}

// says waits, and wants the types of the messages sent since.
func (w *world) says(after time.Duration, want ...string) []Message {
	w.Helper()
	time.Sleep(after)
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var got []string
	for _, m := range w.sent {
		got = append(got, m.Type)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%q was sent, want %q", got, want)
	}
	sent := w.sent
	w.sent = nil
	return sent
}

// An incident opens once, counts, is repeated, and closes with the next success of the timer.
func TestIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.run()
		w.ends(1, engine.Dead) // before there is a rule
		w.rule("r", func(r *Rule) { r.Repeat = time.Hour })
		w.ends(1, engine.Succeeded)
		w.ends(1, engine.Missed) // not of the rule
		w.says(time.Minute)
		w.ends(1, engine.Dead)
		m := w.says(2*time.Second, "incident.opened")
		if i := m[0].Incident; i.By != "t1" || i.Count != 1 || i.App != "shop" || i.Rule != "r" || m[0].ID != "al_"+i.ID+"_1" {
			t.Errorf("%+v", i)
		}
		w.ends(1, engine.Failed)
		w.ends(2, engine.Dead)
		w.says(2*time.Second, "incident.opened") // of the second timer
		again := w.says(time.Hour, "incident.repeated", "incident.repeated")
		if again[0].Incident.Count+again[1].Incident.Count != 3 {
			t.Errorf("%+v %+v", again[0].Incident, again[1].Incident)
		}
		w.ends(2, engine.Succeeded)
		if m := w.says(2*time.Second, "incident.recovered"); m[0].Incident.By != "t2" || m[0].Incident.Why != "recovered" {
			t.Errorf("%+v", m[0].Incident)
		}
		for _, i := range w.Incidents("shop") {
			if i.By == "t1" {
				if _, err := w.Ack(t.Context(), "shop", i.ID, "on it"); err != nil {
					t.Error(err)
				}
			}
		}
		w.says(3 * time.Hour) // nothing: it is acknowledged
		w.stop()
	})
}

func TestThresholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.run()
		w.rule("three", func(r *Rule) { r.After, r.Within, r.By = 3, time.Minute, "app" })
		w.ends(1, engine.Dead)
		w.ends(2, engine.Dead)
		w.says(61 * time.Second)
		w.ends(3, engine.Dead)
		w.says(2 * time.Second)
		w.ends(4, engine.Dead)
		w.ends(5, engine.Dead)
		if m := w.says(2*time.Second, "incident.opened"); m[0].Incident.By != "shop" || m[0].Incident.Count != 3 {
			t.Errorf("%+v", m[0].Incident)
		}
		w.says(2 * time.Minute) // no success yet
		w.ends(9, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered")

		w.rule("three", func(r *Rule) { r.Streak = 2 })
		w.ends(1, engine.Dead)
		w.says(2 * time.Second)
		w.ends(1, engine.Succeeded)
		w.says(2 * time.Second)
		w.ends(1, engine.Dead)
		w.says(2 * time.Second)
		w.ends(1, engine.Dead)
		w.says(2*time.Second, "incident.opened")
		if err := w.set.Delete(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "three"}, nil); err != nil {
			t.Fatal(err)
		}
		if m := w.says(2*time.Second, "incident.recovered"); m[0].Incident.Why != "gone" {
			t.Errorf("%+v", m[0].Incident)
		}
		for _, i := range w.Incidents("") {
			if i.Closed == 0 {
				t.Errorf("an incident of a rule that is gone is open: %+v", i)
			}
		}
		if w.matcher.Load() != nil {
			t.Error("there is a matcher without a rule")
		}
		w.stop()
	})
}

// Beyond the rate of a channel all messages of a minute are one digest, which counts all.
func TestDigest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(5)
		w.rule("r", func(*Rule) {})
		w.run()
		for i := range 1000 {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		w.says(2*time.Second, "incident.opened", "incident.opened", "incident.opened", "incident.opened")
		if m := w.says(time.Minute, "digest"); m[0].Count != 996 || len(m[0].Incidents) != 20 {
			t.Errorf("%d of 996 are counted, %d named", m[0].Count, len(m[0].Incidents))
		}
		w.stop()
	})
}

// A channel that does not answer is tried again for an hour, under the same id; one that
// refuses for good is not. Another channel is not held up.
func TestRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Repeat = 0 })
		w.run()
		failures := 3
		w.send = func(*Delivery) Result {
			failures--
			return Result{Delivered: failures < 0}
		}
		w.ends(1, engine.Dead)
		m := w.says(40*time.Second, "incident.opened", "incident.opened", "incident.opened", "incident.opened")
		if m[0].ID != m[3].ID {
			t.Error("a message has another id when it is repeated")
		}
		w.send = func(*Delivery) Result { return Result{Final: true} }
		w.ends(2, engine.Dead)
		w.says(2*time.Hour, "incident.opened")
		w.send = func(*Delivery) Result { return Result{} }
		w.ends(3, engine.Dead)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		w.mu.Lock()
		n := len(w.sent)
		w.sent, w.send = nil, nil
		w.mu.Unlock()
		if n < 10 || n > 30 {
			t.Errorf("%d tries in an hour", n)
		}
		w.ends(4, engine.Dead)
		w.says(2*time.Second, "incident.opened")
		w.stop()
	})
}

// After a start, incidents go on, what was not sent is sent under its id, and failures since
// the cursor are found in history.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.send = func(*Delivery) Result { return Result{} }
		w.ends(1, engine.Dead)
		first := w.says(10*time.Second, "incident.opened", "incident.opened")
		w.stop()

		now := time.Now().Add(time.Second).UnixMilli()
		late := &engine.Task{Key: engine.Key{Timer: 2, Due: now - 1000}, App: "shop", Name: "t2", Status: engine.Dead, Ended: now}
		record := engine.Record{Key: late.Key, Status: late.Status, Encoded: engine.AppendTask(nil, late)}
		if err := cold.Settle(t.Context(), &engine.Settlement{Owner: "n", Tasks: []engine.Record{record}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w = newWorld(t, cold)
		w.run()
		m := w.says(2*time.Second, "incident.opened", "incident.opened")
		if m[0].ID != first[0].ID || m[1].Incident.By != "t2" {
			t.Errorf("%+v %+v", m[0], m[1])
		}
		w.ends(1, engine.Succeeded)
		w.says(2*time.Second, "incident.recovered")
		w.stop()
	})
}

func TestInUse(t *testing.T) {
	w := newWorld(t, memory.NewCold())
	w.channel(60)
	w.rule("r", func(*Rule) {})
	if err := w.set.Delete(t.Context(), engine.ObjectKey{Kind: ChannelKind, App: "shop", Name: "ops"}, nil); err == nil || err.Error() != "it is used by rule r" {
		t.Error(err)
	}
	token, err := secret.New(w.set, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.put(ChannelKind, "shop", "mail", Channel{Kind: "email", SMTP: &SMTP{Password: Text{Secret: "password"}}})
	for _, k := range []engine.ObjectKey{{Kind: secret.Kind, App: "shop", Name: "password"}, {Kind: secret.Kind, App: "other", Name: "password"}} {
		body, err := token.Body(k, "value")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.set.Put(t.Context(), k, body, nil); err != nil {
			t.Fatal(err)
		}
		err = w.set.Delete(t.Context(), k, nil)
		if want := "it is used by channel mail"; (k.App == "shop") != (err != nil && err.Error() == want) {
			t.Errorf("%v: %v", k, err)
		}
	}
	if _, _, err := w.set.Put(t.Context(), engine.ObjectKey{Kind: RuleKind, App: "shop", Name: "s"}, []byte(`{"channels":["none"]}`), nil); err == nil {
		t.Error("a rule names a channel that is not there")
	}
}

// Without a rule, the end of a task costs a load of a pointer.
func BenchmarkEndedWithoutRules(b *testing.B) {
	a := &Alerter{}
	task := &engine.Task{App: "shop", Status: engine.Dead}
	for b.Loop() {
		a.Ended(task)
	}
}
