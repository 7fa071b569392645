package scheduler_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// once checks that no due of a timer was called twice or early.
func (w *world) once(name string) {
	w.t.Helper()
	seen := map[int64]bool{}
	for _, c := range w.of(name) {
		if c.at < c.key.Due {
			w.t.Errorf("due %s was called early, at %s", stamp(c.key.Due), stamp(c.at))
		}
		if seen[c.key.Due] {
			w.t.Errorf("due %s was called again at %s", stamp(c.key.Due), stamp(c.at))
		}
		seen[c.key.Due] = true
	}
}

// A timer that is changed after a step back does not call again what the former
// schedule called: it rests until the clock is where it was, as one that is not
// changed does.
func TestStepBackThenChange(t *testing.T) {
	const s = time.Second
	for name, change := range map[string]func(w *world, id engine.TimerID){
		"schedule": func(w *world, id engine.TimerID) {
			if err := w.reschedule(id, every(5*s)); err != nil {
				w.t.Fatal(err)
			}
		},
		"disable and enable": func(w *world, id engine.TimerID) {
			w.disable(id, 0)
			time.Sleep(20 * s)
			w.enable(id, engine.CatchUpAll)
		},
		"disable until": func(w *world, id engine.TimerID) { w.disable(id, w.now()+15_000) },
	} {
		for _, wait := range []time.Duration{0, 20 * s} { // before the step: is all settled?
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprint(name, " after ", wait, ", crash ", crash), func(t *testing.T) {
					begin(t, func(t *testing.T, w *world) {
						from := w.now()
						id := w.make(timer("a", every(10*s), atMostOnce))
						time.Sleep(60*s + 50*time.Millisecond)
						if wait > 0 {
							w.settle()
						}
						w.step(-4 * time.Minute)
						time.Sleep(30 * s)
						change(w, id)
						time.Sleep(wait)
						if crash {
							w.crash(s)
						}
						time.Sleep(time.Minute)
						if n := len(w.of("a")); n != 6 {
							t.Errorf("%d calls while the clock is behind, want the 6 of before", n)
						}
						time.Sleep(4 * time.Minute)
						w.settle()
						w.once("a")
						if ds := dues(w.of("a")); !slices.Contains(ds, from+80_000) || !slices.Contains(ds, from+90_000) {
							t.Errorf("it does not go on when the clock is where it was: %d calls", len(ds))
						}
					})
				})
			}
		}
	}
}

// What was called before the clock was set back is not taken for a call after the
// delete, whose instant is then earlier: the ledger proves itself.
func TestStepBackThenDelete(t *testing.T) {
	for _, wait := range []time.Duration{0, 20 * time.Second} {
		begin(t, func(t *testing.T, w *world) {
			id := w.make(timer("a", every(10*time.Second)))
			time.Sleep(time.Minute + 50*time.Millisecond)
			w.settle()
			w.step(-4 * time.Minute)
			time.Sleep(wait)
			if _, err := w.Delete(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Minute)
			if n := len(w.of("a")); n != 6 {
				t.Errorf("%d calls, want the 6 of before", n)
			}
		})
	}
}

// A call that is open when the clock is set back and the process dies is told of
// as one that may have been sent; what had ended is not called again.
func TestStepBackThenCrashDuringACall(t *testing.T) {
	const s = time.Second
	for _, back := range []time.Duration{3 * s, 4 * time.Minute} {
		for _, once := range []bool{false, true} {
			t.Run(fmt.Sprint(back, " at most once ", once), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					opts := []func(*engine.Definition){timeout(time.Minute)}
					if once {
						opts = append(opts, atMostOnce)
					}
					w.replies("a", ok, ok, slow(30*s), ok)
					w.replies("b", slow(30*s), ok)
					id := w.make(timer("a", every(10*s), opts...))
					w.make(timer("b", delay(30*s), opts...))
					w.make(timer("c", every(time.Second), opts...))
					time.Sleep(31*s + 50*time.Millisecond)
					w.step(-back)
					time.Sleep(100 * time.Millisecond)
					w.crash(s)
					time.Sleep(10 * s)
					w.crash(s)
					time.Sleep(5 * time.Minute)
					w.settle()
					want := 2
					if once {
						want = 1
						w.once("a")
						w.once("b")
					}
					w.once("c")
					for _, name := range []string{"a", "b"} {
						var cs []call
						for _, c := range w.of(name) {
							if c.key.Due == from+30_000 {
								cs = append(cs, c)
							}
						}
						if len(cs) != want || want == 2 && !cs[1].redelivered {
							t.Errorf("%s, whose call was open: %+v", name, cs)
						}
					}
					if r := w.record(engine.Key{Timer: id, Due: from + 30_000}); once && r.Status != engine.Unknown {
						t.Errorf("the record of the open call says %s", r.Status)
					}
					w.accounted(id, from, w.now()-10_000, 10_000)
				})
			})
		}
	}
}

// What a timer that was created after a step back has called keeps its records,
// and no more are made, however its range ends.
func TestStepBackRangeEnds(t *testing.T) {
	const s = time.Second
	for name, end := range map[string]func(w *world, id engine.TimerID){
		"disabled":            func(w *world, id engine.TimerID) { w.disable(id, 0) },
		"found late, skipped": func(w *world, _ engine.TimerID) { w.crash(42 * s) },
		"stepped forward":     func(w *world, _ engine.TimerID) { w.step(10 * time.Minute); time.Sleep(10 * s); w.crash(s) },
		"a call is open":      func(w *world, _ engine.TimerID) { time.Sleep(4 * s); w.power(s) },
	} {
		t.Run(name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.make(timer("old", every(10*s)))
				time.Sleep(40 * s)
				w.settle()
				w.step(-time.Hour)
				made := w.now()
				w.replies("a", ok, ok, ok, ok, ok, slow(2*s), ok)
				id := w.make(timer("a", every(7*s), misfire(engine.MisfireSkip, time.Hour), atMostOnce))
				time.Sleep(38*s + 500*time.Millisecond)
				stopped := w.now()
				end(w, id)
				time.Sleep(30 * s)
				w.settle()
				w.once("a")
				to := w.now() - 10_000
				if name == "disabled" {
					to = stopped
				}
				w.accounted(id, made, to, 7000)
				if name == "found late, skipped" {
					for _, c := range w.of("a") {
						if c.at-c.key.Due > 12_000 {
							t.Errorf("due %s was called %d ms late, and its timer skips such", stamp(c.key.Due), c.at-c.key.Due)
						}
					}
				}
			})
		})
	}
}

// Minutes that are admitted late while a step forward makes their timers misfire:
// each due is called once.
func TestStepForwardWhileMinutesAreLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage()
		var tries atomic.Int64
		refuse := w.before.get()
		w.before.set(func(op string, arg any) error {
			if s, is := arg.(*engine.Settlement); is && len(s.Owe) > 0 && away.Load() {
				tries.Add(1)
			}
			return refuse(op, arg)
		})
		w.start()
		from := w.now()
		w.minutely(misfire(engine.MisfireAll, time.Hour))
		for range 2 {
			time.Sleep(2 * time.Minute)
			away.Store(true)
			time.Sleep(4 * time.Minute)
			w.step(3 * time.Minute)
			time.Sleep(time.Minute)
			away.Store(false)
		}
		time.Sleep(3*time.Minute + 500*time.Millisecond)
		to := w.now()
		w.settle()
		w.wantMinutely(from, to)
		if n := tries.Load(); n == 0 || n > 2*60+10 {
			t.Errorf("what was decided was tried %d times in two outages of which a minute each follows a step", n)
		}
	})
}

// Dues that a disable cancelled count again when the clock is set back before them, by less
// than the watermark lags, and the timer is enabled: their keys were not used.
func TestStepBackBehindACancel(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.behave("a", func(*call) reply { return slow(10 * time.Second) })
		id := w.make(timer("a", every(100*time.Millisecond), overlap(engine.OverlapQueue)))
		time.Sleep(3*time.Second + 50*time.Millisecond)
		w.disable(id, 0)
		w.step(-time.Second)
		enabled := w.now()
		w.enable(id, engine.CatchUpNone)
		time.Sleep(30 * time.Second)
		w.disable(id, 0)
		time.Sleep(20 * time.Second)
		w.settle()
		w.once("a")
		if got := dues(w.of("a")); len(got) < 3 || got[1] <= enabled || got[1] > enabled+100 {
			t.Errorf("called were %v, enabled at %d", got, enabled)
		}
	})
}

// A timer that was made before the clock was set back rests until the clock is where
// it was, also when it is disabled for a while, whatever it was before that: its
// max_runs count from there.
func TestStepBackThenDisabledForAWhile(t *testing.T) {
	t.Parallel()
	const ever, while = 0, 20_000 // ms
	for name, disables := range map[string][]int64{
		"once":                            {while},
		"after for good":                  {ever, while},
		"after a while":                   {while, while},
		"after for good, after a while":   {while, ever, while},
		"for good twice, and for a while": {ever, ever, while},
	} {
		for _, apart := range []time.Duration{0, time.Second} {
			t.Run(fmt.Sprint(name, ", apart ", apart), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					from += 10_000 - from%10_000 // an interval has no dues before it was made, a calendar has
					d := timer("a", engine.Schedule{Cron: "*/10 * * * * *", MaxRuns: 3})
					id := w.make(d)
					time.Sleep(time.Duration(from-w.now()-5000) * time.Millisecond)
					w.step(-5 * time.Minute)
					time.Sleep(5 * time.Second)
					for i, until := range disables {
						if until != ever {
							until += w.now()
						}
						if _, err := w.Disable(t.Context(), id, 0, fmt.Sprint("reason ", i), until); err != nil {
							t.Fatal(err)
						}
						time.Sleep(apart)
					}
					time.Sleep(7 * time.Minute)
					w.settle()
					equal(t, "dues", dues(w.of("a")), []int64{from, from + 10_000, from + 20_000})
				})
			})
		}
	}
}

// A watermark that was stored though nobody said so (the answer of the settle was
// lost) holds for a timer that is made after the clock was set back behind it; one
// that was not stored does no harm.
func TestStepBackBehindALostAnswer(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, stored := range []bool{true, false} {
		for _, wait := range []time.Duration{s, 61 * s, 2 * time.Minute} { // till the stop: in the range's time, at its end, after it
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprint("stored ", stored, ", stopped after ", wait, ", crash ", crash), func(t *testing.T) {
					bubble(t, func(t *testing.T, w *world) {
						away := w.outage()
						w.start()
						w.make(timer("old", every(500*time.Millisecond)))
						time.Sleep(10 * s)
						if stored {
							w.mute.Store(true)
						} else {
							away.Store(true)
						}
						time.Sleep(20 * s) // each shard's is written
						w.step(-time.Minute)
						time.Sleep(10 * s) // settles that do not reach so far
						w.mute.Store(false)
						away.Store(false)
						made := w.now()
						id := w.make(timer("new", every(1700*time.Millisecond), misfire(engine.MisfireSkip, 30*s), atMostOnce))
						time.Sleep(wait)
						if crash {
							w.crash(5 * s)
						} else if err := w.stop(); err != nil {
							t.Fatal(err)
						} else {
							w.step(5 * s)
							w.start()
						}
						time.Sleep(80 * s)
						w.step(time.Hour)
						w.settle()
						w.crash(s)
						time.Sleep(10 * s)
						w.settle()
						w.once("new")
						w.accounted(id, made, w.now()-10_000, 1700)
					})
				})
			}
		}
	}
}

// A timer that is made after the clock was set back does not rest when it is disabled
// and enabled: what was yet to come was not cancelled, and is caught up.
func TestStepBackThenMadeAndDisabled(t *testing.T) {
	const s = time.Second
	for _, catch := range []engine.CatchUp{engine.CatchUpNone, engine.CatchUpLatest, engine.CatchUpAll} {
		for _, runs := range []int64{0, 4} {
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprint("catch up ", catch, ", runs ", runs, ", crash ", crash), func(t *testing.T) {
					begin(t, func(t *testing.T, w *world) {
						w.make(timer("old", every(10*s)))
						time.Sleep(40 * s)
						w.settle()
						w.step(-time.Hour)
						from := w.now()
						id := w.make(timer("a", engine.Schedule{Every: 10 * s, MaxRuns: runs}, atMostOnce))
						time.Sleep(15 * s)
						w.disable(id, 0)
						time.Sleep(60 * s) // 20 to 70 s
						if crash {
							w.crash(s)
						}
						w.enable(id, catch)
						time.Sleep(24 * s)
						want := []int64{10}
						switch last := int64(70); {
						case catch == engine.CatchUpAll && runs == 0:
							want = append(want, 20, 30, 40, 50, 60, 70)
						case catch == engine.CatchUpAll:
							want = append(want, 20, 30, 40)
						case catch == engine.CatchUpLatest && runs == 0:
							want = append(want, last)
						case catch == engine.CatchUpLatest:
							want = append(want, 40)
						}
						want = append(want, 80, 90) // anew: max_runs count from the enable
						for i := range want {
							want[i] = from + 1000*want[i]
						}
						got := dues(w.of("a"))
						slices.Sort(got) // what is caught up is called at once
						equal(t, "dues", got, want)
						w.settle()
						w.once("a")
					})
				})
			}
		}
	}
}

// Dues that a step forward owes one by one, and that a step back then puts ahead of the
// clock, are called once: the plan has them too.
func TestStepForwardThenBackWithoutAnswers(t *testing.T) {
	const s = time.Second
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		id := w.make(timer("a", every(1700*time.Millisecond), misfire(engine.MisfireSkip, time.Hour), atMostOnce))
		time.Sleep(30 * s)
		w.mute.Store(true)
		w.step(12 * s)
		time.Sleep(7 * s)
		w.step(-2 * time.Minute)
		time.Sleep(10 * s)
		w.mute.Store(false)
		time.Sleep(10 * s)
		w.crash(3 * s)
		time.Sleep(3 * time.Minute)
		w.settle()
		w.once("a")
		w.accounted(id, from, w.now()-10_000, 1700)
	})
}

// A range that reaches beyond the watermark, for the settle that should have moved it
// was lost, is decided once by a start: each due that is not called counts once.
func TestRangeBeyondTheWatermarkCountsOnce(t *testing.T) {
	const s = time.Second
	bubble(t, func(t *testing.T, w *world) {
		away := w.outage()
		w.start()
		w.make(timer("old", every(250*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(10 * s)
		away.Store(true)
		time.Sleep(20 * s)
		w.step(-time.Minute)
		time.Sleep(10 * s)
		away.Store(false)
		id := w.make(timer("new", every(1700*time.Millisecond), misfire(engine.MisfireSkip, 30*s)))
		time.Sleep(40 * s) // 10 s before the end of its range
		w.settle()
		w.crash(100 * s)
		w.disable(id, 0) // nothing ends any more
		w.settle()
		missed := 0
		for _, r := range w.records(id) {
			if r.Status == engine.Missed {
				missed += int(max(r.Count, 1))
			}
		}
		if n := int(w.metric(`xtimer_fires_total{result="missed"}`)); missed == 0 || n != missed {
			t.Errorf("%d dues are counted as missed, the records have %d: %v", n, missed, w.verdicts(id, w.starts[0]))
		}
	})
}

// The dues of a timer with max_runs that was made before the clock was set back begin
// where that was: an enable catches none up from before.
func TestStepBackThenCatchUp(t *testing.T) {
	for _, catch := range []engine.CatchUp{engine.CatchUpLatest, engine.CatchUpAll} {
		t.Run(fmt.Sprint(catch), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				id := w.make(timer("a", engine.Schedule{Cron: "*/10 * * * * *", MaxRuns: 3}))
				w.step(-time.Hour)
				time.Sleep(time.Minute)
				w.disable(id, 0)
				time.Sleep(25 * time.Second)
				enabled := w.now()
				w.enable(id, catch)
				time.Sleep(time.Minute)
				w.settle()
				got := dues(w.of("a"))
				if len(got) != 3 || got[0] <= enabled {
					t.Errorf("enabled at %s, called %d, from %s on", stamp(enabled), len(got), stamp(got[0]))
				}
			})
		})
	}
}

// A call under way when the process dies may have been sent. When the clock is set back then, its task
// waits for the due again, and a change that ends it leaves a record with that attempt: the due is not
// called for the next generation.
func TestStepBackThenChangeOfABegunTask(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.replies("a", slow(30*time.Second), ok)
		id := w.make(timer("a", every(10*time.Second), timeout(time.Minute)))
		time.Sleep(11 * time.Second)
		w.step(-time.Minute)
		w.crash(time.Second)
		time.Sleep(5 * time.Second)
		w.disable(id, w.now()+15_000)
		time.Sleep(3 * time.Minute)
		w.settle()
		key := engine.Key{Timer: id, Due: from + 10_000}
		if n := len(slices.DeleteFunc(w.of("a"), func(c call) bool { return c.key != key })); n != 1 {
			t.Errorf("the due was called %d times", n)
		}
		if r, err := w.Task(t.Context(), key); err != nil || r.Status != engine.Cancelled || len(r.Attempts) != 1 {
			t.Errorf("its record is %+v, %v; want one cancelled with the attempt that was begun", r, err)
		}
	})
}

// A due that was called before the clock was set back, and is called again by hand when the timer is enabled, is
// not caught up besides: it is past by the new clock, and has no record while its call is under way.
func TestStepBackThenCatchUpBesideARedrive(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", reject)
		id := w.make(timer("a", every(10*time.Second)))
		time.Sleep(65 * time.Second)
		w.settle()
		key := w.of("a")[5].key
		w.step(-time.Minute)
		time.Sleep(time.Second)
		w.disable(id, 0)
		time.Sleep(57 * time.Second)
		w.replies("a", slow(30*time.Second), ok)
		if err := w.Redrive(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.enable(id, engine.CatchUpAll)
		time.Sleep(2 * time.Minute)
		w.settle()
		if n := len(slices.DeleteFunc(w.of("a"), func(c call) bool { return c.key != key })); n != 2 {
			t.Errorf("%v was called %d times, want once by itself and once by hand", key, n)
		}
	})
}

// The clock is set back by 5 s during a call, and the timer is disabled. The call ends and is settled. After a restart the
// timer is enabled before the clock is where it was: the due of the call is not called again.
func TestStepBackDuringACallThenAStart(t *testing.T) {
	for _, crash := range []bool{true, false} {
		begin(t, func(t *testing.T, w *world) {
			w.replies("a", slow(time.Second), ok)
			id := w.make(timer("a", every(9*time.Second), atMostOnce))
			time.Sleep(9*time.Second + 50*time.Millisecond)
			w.step(-7 * time.Second)
			w.disable(id, 0)
			time.Sleep(2500 * time.Millisecond)
			if crash {
				w.crash(time.Second)
			} else {
				if err := w.stop(); err != nil {
					t.Fatal(err)
				}
				w.start()
			}
			w.enable(id, engine.CatchUpNone)
			time.Sleep(20 * time.Second)
			w.settle()
			w.once("a")
		})
	}
}

// The clock is set back during a call, and the timer is changed. The disk is nearly full when the call ends, so that its
// record is left out; after a crash the next generation does not call the due again.
func TestLeftOutOfAFormerGeneration(t *testing.T) {
	for _, wait := range []time.Duration{50 * time.Millisecond, 20 * time.Second} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprint("stepped after ", wait, ", disk nearly full ", full), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					var critical atomic.Bool
					w.config.DiskCritical = critical.Load
					w.start()
					w.behave("a", func(c *call) reply {
						if len(w.named["a"]) == 2 {
							return slow(40 * time.Second)
						}
						return ok
					})
					id := w.make(timer("a", cron("*/10 * * * * *"), atMostOnce, timeout(time.Minute), overlap(engine.OverlapAllow)))
					time.Sleep(time.Duration(30_000-w.now()%10_000) * time.Millisecond)
					time.Sleep(wait)
					w.step(-time.Minute)
					w.disable(id, 0)
					w.enable(id, engine.CatchUpNone)
					critical.Store(full)
					time.Sleep(45*time.Second - wait)
					critical.Store(false)
					w.crash(time.Second)
					time.Sleep(3 * time.Minute)
					w.settle()
					w.once("a")
				})
			})
		}
	}
}

// The clock is set back during a call, and the timer is disabled and enabled. Successes are sampled, or some were left out, so
// the next generation owes nothing ahead of the clock: it does not call the due again, and nothing crashes.
func TestUnprovableDueOfAFormerGeneration(t *testing.T) {
	for _, sampled := range []bool{true, false} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprint("sampled ", sampled, ", crash ", crash), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					var critical atomic.Bool
					w.config.DiskCritical = critical.Load
					w.config.HistorySampled = sampled
					w.start()
					critical.Store(!sampled)
					w.behave("a", func(c *call) reply {
						if len(w.named["a"]) == 3 {
							return slow(20 * time.Second)
						}
						return ok
					})
					id := w.make(timer("a", cron("*/10 * * * * *"), atMostOnce, timeout(time.Minute)))
					w.unread = map[engine.TimerID]bool{id: true} // with a sample, a changed timer rests: no record tells of that
					time.Sleep(time.Duration(40_000-w.now()%10_000) * time.Millisecond)
					time.Sleep(50 * time.Millisecond)
					critical.Store(false)
					w.step(-time.Minute)
					w.disable(id, 0)
					w.enable(id, engine.CatchUpNone)
					time.Sleep(25 * time.Second)
					if crash {
						w.crash(time.Second)
					}
					time.Sleep(3 * time.Minute)
					w.settle()
					w.once("a")
				})
			})
		}
	}
}

// After the clock was set back, the lanes that are full of tasks which wait for it have the cold tier asked for rows every
// 2 s each, not with each turn: there are none for an hour. What is made meanwhile is called on time.
func TestStepBackAsksForNoRowsAllTheTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCallsPerTarget = 100, 1
		var reads atomic.Int64
		w.before.set(func(op string, _ any) error {
			if op == "OwedIn" {
				reads.Add(1)
			}
			return nil
		})
		w.start()
		const lanes = 20
		target := func(i int) func(*engine.Definition) {
			return func(d *engine.Definition) { d.Callback.URL = fmt.Sprintf("http://127.0.0.%d:1/x", i+1) }
		}
		for i := range lanes {
			name := fmt.Sprint(i)
			w.replies(name, slow(2*time.Second))
			w.make(timer(name, every(100*time.Millisecond), target(i)))
		}
		time.Sleep(2 * time.Minute)
		w.step(-time.Hour)
		time.Sleep(time.Minute)
		before := reads.Load()
		const seconds = 60
		time.Sleep(seconds * time.Second)
		if n := reads.Load() - before; n > lanes*(seconds/2+1) {
			t.Errorf("the cold tier was asked %d times in %d s, for %d lanes", n, seconds, lanes)
		}
		for i := range lanes {
			w.make(timer(fmt.Sprint("new", i), delay(time.Second+time.Duration(i)*70*time.Millisecond), target(i)))
		}
		time.Sleep(5 * time.Second)
		for i := range lanes {
			calls := w.of(fmt.Sprint("new", i))
			if len(calls) != 1 || calls[0].at-calls[0].key.Due > 100 {
				t.Errorf("a new timer has the calls %v", calls)
			}
		}
	})
}

// Retries fill a lane, with the dues that wait for them, and the clock is set back by an hour: a timer of the lane that is
// made then is called.
func TestStepBackBesideRetries(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 4
		w.start()
		for _, name := range []string{"a", "b", "c"} {
			w.behave(name, func(*call) reply { return fail })
			w.make(timer(name, every(time.Second), overlap(engine.OverlapQueue), retry(10, 20*time.Second, 1)))
		}
		time.Sleep(30 * time.Second)
		w.step(-time.Hour)
		w.make(timer("new", every(time.Second)))
		time.Sleep(30*time.Second + 500*time.Millisecond)
		if n := len(w.of("new")); n < 25 {
			t.Errorf("%d calls", n)
		}
	})
}

// A timer is behind, and the clock is set back. When the clock has come to the ranges of earlier dues, the wheel goes
// through these, and their lane has no room: the timer has one range without end still, and no due is called twice.
func TestStepBackOfATimerThatIsBehind(t *testing.T) {
	for _, before := range []time.Duration{60, 69, 75, 90} {
		for _, back := range []time.Duration{90, 110, 130, 150} {
			t.Run(fmt.Sprintf("%d s, back by %d s", before, back), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					w.config.MaxWaiting = 4
					w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &flow.Limit{Rate: 2, Per: time.Second, Burst: 1}}})
					w.start()
					w.make(timer("a", every(250*time.Millisecond), flows("k"), misfire(engine.MisfireLatest, time.Hour)))
					time.Sleep(before * time.Second)
					w.crash(585 * time.Millisecond)
					time.Sleep(5500 * time.Millisecond)
					crashed := len(w.of("a"))
					w.step(-back * time.Second)
					time.Sleep(150 * time.Second)
					w.SetRule(keyK, nil)
					time.Sleep(time.Minute)
					seen := map[int64]bool{}
					for _, c := range w.of("a")[crashed:] {
						if seen[c.key.Due] {
							t.Errorf("called twice for %s", stamp(c.key.Due))
						}
						seen[c.key.Due] = true
					}
					if len(seen) < 300 {
						t.Errorf("%d calls", len(seen))
					}
				})
			})
		}
	}
}
