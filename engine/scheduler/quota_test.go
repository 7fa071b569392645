package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/quota"
)

// limitApp sets the quota of the app of the world's timers.
func (w *world) limitApp(l quota.Limits) {
	w.t.Helper()
	if _, _, err := w.Objects().Put(w.t.Context(), quota.Key("app"), l.Body(), nil); err != nil {
		w.t.Fatal(err)
	}
}

// A quota of calls holds them and loses none, over a crash too.
func TestAQuotaHoldsCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.limitApp(quota.Limits{FiresPerSecond: 10, InFlight: 4})
		due := w.now() + 5_000
		ids := map[string]engine.TimerID{}
		for i := range 60 {
			name := fmt.Sprint(i)
			w.behave(name, func(*call) reply { return slow(100 * time.Millisecond) })
			ids[name] = w.make(timer(name, at(due)))
		}
		time.Sleep(7 * time.Second)
		w.crash(3 * time.Second)
		time.Sleep(12 * time.Second)
		w.settle()
		var begun []int64
		held := 0
		for name, id := range ids {
			calls := w.of(name)
			if len(calls) == 0 || len(calls) > 2 {
				t.Errorf("%d calls of %s", len(calls), name)
			}
			for _, c := range calls {
				begun = append(begun, c.at)
			}
			r := w.record(engine.Key{Timer: id, Due: due})
			if r.Status != engine.Succeeded {
				t.Errorf("%s is %s", name, r.Status)
			}
			for _, h := range r.Holds {
				if h.By == "quota" && h.Name == "app" {
					held++
				} else {
					t.Errorf("%s was held by %+v", name, h)
				}
			}
		}
		if held < 30 {
			t.Errorf("%d tasks say that the quota held them", held)
		}
		slices.Sort(begun)
		for i := 10; i < len(begun); i++ {
			if begun[i]-begun[i-10] < 1000 {
				t.Fatalf("11 calls within %d ms, from %s on", begun[i]-begun[i-10], stamp(begun[i-10]))
			}
		}
		for i := 4; i < len(begun); i++ {
			if begun[i]-begun[i-4] < 100 {
				t.Fatalf("5 calls in flight at %s", stamp(begun[i]))
			}
		}
	})
}

// A create beyond the quota stores nothing, and is made a second later: at most a 64th more, for
// so long may a create count longer than it should.
func TestAQuotaOfCreates(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		w.limitApp(quota.Limits{CreatesPerSecond: 3})
		create := func(name string) error {
			return w.Create(t.Context(), timer(name, every(time.Hour)), nil).Err
		}
		for range 2 {
			var refused *engine.Fault
			for i := range 5 {
				err := create(fmt.Sprintf("%d-%d", w.now(), i))
				if i < 3 && err != nil {
					t.Errorf("create %d: %v %+v", i, err, refused)
				}
				if i >= 3 && (!errors.As(err, &refused) || refused.Code != "rate_limited" || refused.Rate.Wait <= 0 || refused.Rate.Wait > time.Second+time.Second/64) {
					t.Errorf("create %d: %v %+v", i, err, refused)
				}
			}
			time.Sleep(refused.Rate.Wait)
		}
		if n, err := w.cold.Counts(t.Context()); err != nil || n.Enabled != 6 {
			t.Errorf("%+v, %v", n, err)
		}
		if n := w.metric(`xtimer_quota_refusals_total{what="creates"}`); n != 4 {
			t.Errorf("%v refusals are counted", n)
		}
		if apps := w.RefusingQuotas(); !slices.Equal(apps, []string{"app"}) {
			t.Errorf("the quotas of %v refuse", apps)
		}
		time.Sleep(time.Minute)
		if apps := w.RefusingQuotas(); len(apps) != 0 {
			t.Errorf("the quotas of %v refuse", apps)
		}
		other := timer("x", every(time.Hour))
		other.App = "other"
		for i := range 5 {
			other.Name = fmt.Sprint(i)
			if c := w.Create(t.Context(), other, nil); c.Err != nil {
				t.Errorf("an app without a quota: %v", c.Err)
			}
		}
	})
}

// The clock is a day ahead for a while, in which somebody looks at the quota of an app: one-shots that were over by then
// count again.
func TestQuotaAfterTheClockWasAhead(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.limitApp(quota.Limits{Timers: 5})
		w.make(timer("first", at(w.now()+3*3600_000)))
		w.step(24 * time.Hour)
		time.Sleep(10 * time.Second)
		w.QuotaUse(t.Context(), "app")
		w.step(-24 * time.Hour)
		time.Sleep(10 * time.Second)
		if n := w.createMany(50); n > 5 {
			t.Errorf("%d timers of 5 were created", n)
		}
	})
}

// Another node creates timers in shards that went to it, and ends: the node that gets the shards back counts them.
func TestQuotaOfShardsThatComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		ws[0].start()
		time.Sleep(2 * time.Second)
		w.limitApp(quota.Limits{Timers: 10})
		w.QuotaUse(t.Context(), "app")
		ws[1].start()
		time.Sleep(20 * time.Second)
		for i := range 10 {
			ws[1].make(timer(fmt.Sprint("x", i), at(w.now()+3600_000)))
		}
		if err := ws[1].stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(20 * time.Second)
		if n := w.createMany(20); n > 0 {
			t.Errorf("%d timers more than the quota of 10: %+v", n, w.QuotaUse(t.Context(), "app"))
		}
	})
}

// createMany creates as many of n timers as the quota has room for.
func (w *world) createMany(n int) (created int) {
	for i := range n {
		if c := w.Create(w.t.Context(), timer(fmt.Sprint("many-", i), at(w.now()+3600_000)), nil); c.Err == nil {
			created++
		}
	}
	return created
}
