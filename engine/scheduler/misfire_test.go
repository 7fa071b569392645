package scheduler_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
	"xtimer/engine/policy"
)

// What a start finds more than 10 s late follows the policy; what is less late
// fires late; what is older than the window is missed. Consecutive dues that are
// not called are one record with their count.
func TestMisfire(t *testing.T) {
	const (
		latest, skip, all = engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll
		h                 = time.Hour
	)
	for _, x := range []struct {
		name   string
		s      engine.Schedule
		policy engine.MisfirePolicy
		window time.Duration
		down   time.Duration // from 5 s after the creation on
		want   []string      // by the time 5 s after the start
	}{
		{"5s latest", every(4 * time.Second), latest, h, 5 * time.Second, []string{"4s succeeded", "8s succeeded", "12s succeeded"}},
		{"5s skip", every(4 * time.Second), skip, h, 5 * time.Second, []string{"4s succeeded", "8s succeeded", "12s succeeded"}},
		{"5s, no window", every(4 * time.Second), all, 0, 5 * time.Second, []string{"4s succeeded", "8s missed misfire_window", "12s succeeded"}},
		{"1m latest", every(20 * time.Second), latest, h, time.Minute, []string{"20s skipped misfire", "40s succeeded", "1m0s succeeded"}},
		{"1m skip", every(20 * time.Second), skip, h, time.Minute, []string{"20s…40s ×2 skipped misfire", "1m0s succeeded"}},
		{"1m all", every(20 * time.Second), all, h, time.Minute, []string{"20s succeeded", "40s succeeded", "1m0s succeeded"}},
		{"1m all, window 30s", every(20 * time.Second), all, 30 * time.Second, time.Minute, []string{"20s missed misfire_window", "40s succeeded", "1m0s succeeded"}},
		{"30h latest", every(h), latest, 24 * h, 30 * h, []string{"1h0m0s…6h0m0s ×6 missed misfire_window", "7h0m0s…28h0m0s ×22 skipped misfire", "29h0m0s succeeded", "30h0m0s succeeded"}},
		{"30h skip", every(h), skip, 24 * h, 30 * h, []string{"1h0m0s…6h0m0s ×6 missed misfire_window", "7h0m0s…29h0m0s ×23 skipped misfire", "30h0m0s succeeded"}},
		{"one-shot 1m skip", delay(20 * time.Second), skip, h, time.Minute, []string{"20s succeeded"}},
		{"one-shot 30h, window 24h", delay(20 * time.Second), latest, 24 * h, 30 * h, []string{"20s missed misfire_window"}},
		{"one-shot 30h, window 48h", delay(20 * time.Second), latest, 48 * h, 30 * h, []string{"20s succeeded"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				id := w.make(timer("a", x.s, misfire(x.policy, x.window)))
				time.Sleep(5 * time.Second)
				w.crash(x.down)
				w.settle()
				got := w.verdicts(id, from)
				equal(t, "verdicts", got, x.want)
				for _, c := range w.of("a") {
					if late := c.key.Due < w.starts[1] && c.key.Due > w.crashes[0]; late != c.redelivered {
						t.Errorf("due %d: redelivered %v", c.key.Due-from, c.redelivered)
					}
				}
				n := len(w.of("a"))
				w.crash(time.Second)
				w.settle()
				for _, c := range w.of("a")[n:] {
					if c.key.Due < w.crashes[1]-1000 {
						t.Errorf("due %d was called again after another start", c.key.Due-from)
					}
				}
			})
		})
	}
}

// Under the policy all, more than a thousand dues are owed as a range and all
// called, once, also over a second crash in the middle of it.
func TestMisfireRange(t *testing.T) {
	t.Parallel()
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(*call) reply { return slow(300 * time.Millisecond) })
		id := w.make(timer("a", every(50*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(time.Second)
		w.crash(4 * time.Minute)
		time.Sleep(200 * time.Millisecond)
		w.crash(time.Second)
		time.Sleep(time.Minute + 25*time.Millisecond) // between two dues
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.accounted(id, from, to, 50)
		last := map[int64]call{}
		for _, c := range w.of("a") {
			if was, again := last[c.key.Due]; again && was.ended != 0 && was.ended < w.crashes[0]-20 {
				t.Errorf("due %d was called again", c.key.Due-from)
			}
			last[c.key.Due] = c
		}
		if n := len(grid(from, to, 50, from)); len(last) != n {
			t.Errorf("%d dues were called, want %d", len(last), n)
		}
	})
}

// What a step forward made misfires, and was decided so, is not decided again by a
// change: neither when it is recorded nor while it is being stored. The ledger of the
// world tells of dues with two records.
func TestChangeOfDecidedMisfires(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireLatest} {
		for _, window := range []time.Duration{time.Hour, time.Minute} {
			t.Run(fmt.Sprint(policy, window), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					id := w.make(timer("a", every(10*time.Second), misfire(policy, window)))
					time.Sleep(35 * time.Second)
					w.settle()
					from := w.now()
					w.step(10 * time.Minute)
					for len(w.records(id)) < 5 {
						time.Sleep(time.Millisecond)
					}
					was := w.verdicts(id, from)
					w.disable(id, 0)
					w.settle()
					is := w.verdicts(id, from)
					for _, v := range was {
						if !slices.Contains(is, v) {
							t.Errorf("it was %q, and is %q", v, is)
						}
					}
				})
			})
		}
	}
}

func TestChangeWhileMisfiresAreStored(t *testing.T) {
	t.Parallel()
	changes := map[string]func(w *world, id engine.TimerID){
		"disable": func(w *world, id engine.TimerID) { w.disable(id, 0) },
		"delete": func(w *world, id engine.TimerID) {
			if _, err := w.Delete(w.t.Context(), id, 0); err != nil {
				w.t.Fatal(err)
			}
		},
		"schedule": func(w *world, id engine.TimerID) {
			if err := w.reschedule(id, every(7*time.Second)); err != nil {
				w.t.Fatal(err)
			}
		},
	}
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireAll, engine.MisfireSkip} {
		for _, stored := range []bool{false, true} { // when the change comes
			for name, change := range changes {
				t.Run(fmt.Sprint(policy, ", stored ", stored, ", ", name), func(t *testing.T) {
					bubble(t, func(t *testing.T, w *world) {
						var wait atomic.Bool
						under := make(chan struct{}, 1)
						slowly := func(arg any) {
							s, is := arg.(*engine.Settlement)
							decides := is && len(s.Marks) == 0 && (len(s.Owe) > 10 || slices.ContainsFunc(s.Tasks, func(r engine.Record) bool {
								return r.Status == engine.Skipped || r.Status == engine.Missed
							}))
							if decides && wait.CompareAndSwap(true, false) {
								under <- struct{}{}
								time.Sleep(300 * time.Millisecond)
							}
						}
						w.before.set(func(_ string, arg any) error {
							if !stored {
								slowly(arg)
							}
							return nil
						})
						w.after.set(func(_ string, arg any) {
							if stored {
								slowly(arg)
							}
						})
						w.start()
						id := w.make(timer("a", every(10*time.Second), misfire(policy, 2*time.Minute)))
						time.Sleep(35 * time.Second)
						wait.Store(true)
						w.step(10 * time.Minute)
						<-under
						time.Sleep(time.Millisecond)
						change(w, id)
						changed := w.now()
						time.Sleep(time.Minute)
						w.settle()
						for _, c := range w.of("a") {
							if name != "schedule" && c.at > changed {
								t.Errorf("%s was called after the change, at %s", stamp(c.key.Due), stamp(c.at))
							}
						}
					})
				})
			}
		}
	}
}

// A change does not wait for ever for a decision that cannot be stored.
func TestChangeWhileMisfiresCannotBeStored(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage("Settle")
		w.start()
		id := w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, 2*time.Minute)))
		time.Sleep(35 * time.Second)
		w.settle()
		away.Store(true)
		w.step(10 * time.Minute)
		time.Sleep(time.Second)
		asked := time.Now()
		_, err := w.Disable(t.Context(), id, 0, "", 0)
		if took := time.Since(asked); !errors.Is(err, engine.ErrUnavailable) || took > 11*time.Second {
			t.Errorf("%v after %v", err, took)
		}
		away.Store(false)
		time.Sleep(5 * time.Second)
		w.disable(id, 0)
		w.settle()
	})
}

// What the limit of a key held before a kill is no misfire, though the watermark has waited for the tasks and they have no
// rows: of dues since the last settle alone nobody knows that they were held.
func TestHeldByALimitBeforeAKill(t *testing.T) {
	const unsettled = 4000
	for _, down := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
		for _, mis := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireLatest} {
			t.Run(fmt.Sprint(down, mis), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.start()
					w.change(t, limit.FlowKey("app", "k"), func(x *limit.Object) { x.Limit = &flow.Limit{Rate: 1, Per: 4 * time.Second, Burst: 1} })
					from := w.now() - w.now()%60_000 + 60_000
					time.Sleep(time.Duration(from-w.now()-500) * time.Millisecond)
					id := w.make(timer("a", cron("*/2 * * * * *"), flows("k"), misfire(mis, time.Hour)))
					time.Sleep(time.Duration(from+40_000-w.now()+300) * time.Millisecond)
					killed := w.now()
					w.crash(down)
					time.Sleep(5 * time.Minute)
					w.settle()
					known := killed
					if down.Milliseconds() > policy.MisfireAfter {
						known -= unsettled
					}
					if n := len(w.of("a")); n < 20 {
						t.Errorf("%d calls", n)
					}
					for _, r := range w.records(id) {
						if r.Key.Due <= known && r.Reason == engine.ReasonMisfire {
							t.Errorf("killed at %s: %d dues from %s on, which the limit had held, are skipped as misfires", stamp(killed), r.Count, stamp(r.Key.Due))
						}
					}
				})
			})
		}
	}
}
