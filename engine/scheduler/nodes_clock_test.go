package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// atSteps runs a test of three nodes for each of some steps of the first one's clock.
func atSteps(t *testing.T, steps []time.Duration, f func(t *testing.T, w *world, ws []*world, step time.Duration)) {
	for _, step := range steps {
		t.Run(step.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(3)
				defer endNodes(ws)
				tellEachOther(ws)
				startAll(ws)
				f(t, w, ws, step)
			})
		})
	}
}

// The clock of one of three nodes is set far ahead, or back. The node calls nothing and gives its shards away, and the
// others call what is due there, at most 2 s late: no due between the two clocks is missed.
func TestNodeWhoseClockIsSetFar(t *testing.T) {
	atSteps(t, []time.Duration{8 * time.Second, 40 * time.Second, time.Hour, -40 * time.Second, -time.Hour}, func(t *testing.T, w *world, ws []*world, step time.Duration) {
		from := time.Now().UnixMilli()
		every10 := w.make(timer("recurring", every(10*time.Second)))
		all := w.make(timer("all", every(10*time.Second), misfire(engine.MisfireAll, 24*time.Hour)))
		shot := w.make(timer("shot", at(from+100_000)))
		window := w.make(timer("window", at(from+100_000), misfire(engine.MisfireLatest, time.Minute)))
		time.Sleep(61*time.Second + 537*time.Millisecond)
		w.step(step)
		time.Sleep(60 * time.Second)
		if n := w.node.owns(); n != 0 {
			t.Errorf("the node with the wrong clock owns %d shards", n)
		}
		for name, id := range map[string]engine.TimerID{"recurring": every10, "all": all, "shot": shot, "window": window} {
			want := grid(from, from+120_000, 10_000, from)
			if name == "shot" || name == "window" {
				want = []int64{from + 100_000}
			}
			called := map[int64]bool{}
			for _, c := range ofAll(ws, name) {
				called[c.key.Due] = true
				if late := c.at - c.key.Due; late < 0 || late > 2500 {
					t.Errorf("%s, due %s, was called %d ms late, redelivered %v", name, stamp(c.key.Due), late, c.redelivered)
				}
			}
			for _, due := range want {
				if !called[due] {
					t.Errorf("%s, due %s, was not called", name, stamp(due))
				}
			}
			if t.Failed() {
				t.Log(name, w.verdicts(id, from))
			}
		}
	})
}

// A call is under way when the clock of its node is set. The node gives the shard away and tells the next owner the
// result: the call is not made again, and an at_most_once task succeeds.
func TestCallOfANodeWhoseClockIsSet(t *testing.T) {
	atSteps(t, []time.Duration{-5 * time.Second, -time.Minute, 8 * time.Second, 9 * time.Second}, func(t *testing.T, w *world, ws []*world, step time.Duration) {
		due := time.Now().UnixMilli() + 10_000
		behaveAll(ws, "slow", slow(4*time.Second))
		behaveAll(ws, "once", slow(4*time.Second))
		w.make(timer("slow", at(due), timeout(5*time.Second)))
		once := w.make(timer("once", at(due), timeout(5*time.Second), atMostOnce))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		w.step(step)
		time.Sleep(30 * time.Second)
		for _, name := range []string{"slow", "once"} {
			cs := ofAll(ws, name)
			if len(cs) != 1 {
				t.Errorf("%s was called %d times", name, len(cs))
			}
		}
		if rs := w.records(once); len(rs) != 1 || rs[0].Status != engine.Succeeded {
			t.Errorf("the at_most_once task has the records %v", w.verdicts(once, due))
		}
	})
}

// The clock of MySQL is set, and those of the nodes agree: no due is missed, and none is called early or late by more
// than the nodes take to find that out.
func TestNodesWhoseTableHasItsClockSet(t *testing.T) {
	for _, step := range []time.Duration{12 * time.Second, time.Hour, -time.Hour} {
		for _, nodes := range []int{2, 3, 5} {
			t.Run(fmt.Sprint(step, " ", nodes), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) {
					ws := w.nodes(nodes)
					defer endNodes(ws)
					startAll(ws)
					from := time.Now().UnixMilli()
					ids := map[string]engine.TimerID{}
					for i := range 10 {
						name := fmt.Sprint("every-", i)
						ids[name] = ws[i%nodes].make(timer(name, every(10*time.Second)))
					}
					time.Sleep(61*time.Second + 537*time.Millisecond)
					w.node.table.SetClock(step)
					time.Sleep(60 * time.Second)
					for name, id := range ids {
						if called := dues(ofAll(ws, name)); len(called) < 12 {
							t.Errorf("%s was called %d times: %v", name, len(called), w.verdicts(id, from))
						}
						for _, c := range ofAll(ws, name) {
							if late := c.at - c.key.Due; late < 0 || late > 2000 {
								t.Errorf("%s, due %s, was called %d ms late", name, stamp(c.key.Due), late)
							}
						}
					}
				})
			})
		}
	}
}

// A node is alone, and its clock is set an hour ahead. The node calls on by the time as it was, and its records say so.
func TestRecordsOfALoneNodeWhoseClockIsSet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(1)
		defer endNodes(ws)
		startAll(ws)
		id := w.make(timer("n", every(10*time.Second)))
		time.Sleep(31*time.Second + 537*time.Millisecond)
		w.step(time.Hour)
		time.Sleep(2 * time.Minute)
		w.settle()
		rs := w.records(id)
		if len(rs) < 15 {
			t.Errorf("%d records", len(rs))
		}
		for _, r := range rs {
			if r.Status != engine.Succeeded || r.Lateness < 0 || r.Lateness > 3*time.Second {
				t.Errorf("due %s: the record says %v, %v late, sent at %v", stamp(r.Key.Due), r.Status, r.Lateness, time.UnixMicro(r.Attempts[0].Started).UTC())
			}
		}
	})
}

// A timer that is made at a node whose clock was set is due by the right time.
func TestCreateAtANodeWhoseClockIsSet(t *testing.T) {
	atSteps(t, []time.Duration{-time.Hour, time.Hour}, func(t *testing.T, w *world, ws []*world, step time.Duration) {
		time.Sleep(10 * time.Second)
		w.step(step)
		set := time.Now()
		type made struct {
			name string
			at   time.Time
		}
		var all []made
		for i := range 40 {
			name := fmt.Sprint("delay-", i)
			if c := w.Create(t.Context(), timer(name, delay(5*time.Minute)), nil); c.Err == nil {
				all = append(all, made{name, time.Now()})
			}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(6 * time.Minute)
		if len(all) == 0 {
			t.Error("the node makes no timer")
		}
		for _, x := range all {
			cs := ofAll(ws, x.name)
			if len(cs) != 1 {
				t.Errorf("made %v after the step with a delay of 5 min, and called %d times within 6 min", x.at.Sub(set), len(cs))
			}
			for _, c := range cs {
				if after := time.Duration(c.at-x.at.UnixMilli()) * time.Millisecond; after < 5*time.Minute-time.Second || after > 5*time.Minute+3*time.Second {
					t.Errorf("made %v after the step with a delay of 5 min, and called after %v", x.at.Sub(set), after)
				}
			}
		}
	})
}

// A call is under way when the clock of its node is set far ahead, and the result reaches no other node. The next owner
// makes the call again once the call must have ended, and the timer goes on.
func TestLostCallOfANodeWhoseClockIsSet(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(3)
		defer endNodes(ws)
		for _, x := range ws {
			x.tune = func(e *scheduler.Scheduler) {
				e.TellBy(func(context.Context, string, []byte) ([]byte, error) { return nil, errors.New("not in this test") })
			}
		}
		startAll(ws)
		due := time.Now().UnixMilli() + 10_000
		isFirst := true
		for _, n := range ws {
			n.behave("slow", func(*call) reply {
				if !isFirst {
					return ok
				}
				isFirst = false
				return slow(4 * time.Second)
			})
		}
		id := w.make(timer("slow", every(10*time.Second), timeout(5*time.Second), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, 24*time.Hour)))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		w.step(time.Hour)
		time.Sleep(5 * time.Minute)
		if cs := ofAll(ws, "slow"); len(cs) < 30 {
			t.Errorf("5 min after the clock of a node was set there were %d calls of a timer that is due every 10 s: %v", len(cs), w.verdicts(id, due))
		}
	})
}

// The clock of the node that sweeps is set ahead by more than the history is kept. Nothing is swept by that clock.
func TestSweepOfANodeWhoseClockIsSet(t *testing.T) {
	for phase := range 10 { // of the janitor
		bubble(t, func(t *testing.T, w *world) {
			ws := w.nodes(3)
			defer endNodes(ws)
			startAll(ws)
			id := w.make(timer("n", every(time.Minute)))
			time.Sleep(3*time.Minute + time.Duration(phase)*time.Second + 500*time.Millisecond)
			before := len(w.records(id))
			if before == 0 {
				t.Fatal("there is no history")
			}
			w.step(40 * 24 * time.Hour)
			time.Sleep(20 * time.Second)
			if n := w.node.owns(); n != 0 {
				t.Errorf("it owns %d shards", n)
			}
			w.step(-40 * 24 * time.Hour)
			if after := len(w.records(id)); after < before {
				t.Errorf("phase %d s: of %d records %d are left", phase, before, after)
			}
		})
	}
}

// The clock of one of three nodes is an hour ahead for less than a second.
func TestNodeWhoseClockIsSetForAMoment(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(3)
		defer endNodes(ws)
		startAll(ws)
		from := time.Now().UnixMilli()
		id := w.make(timer("recurring", every(10*time.Second)))
		time.Sleep(61*time.Second + 537*time.Millisecond)
		w.step(time.Hour)
		time.Sleep(700 * time.Millisecond)
		w.step(-time.Hour)
		time.Sleep(60 * time.Second)
		if n := len(ofAll(ws, "recurring")); n < 12 {
			t.Errorf("%d of 12 dues were called: %v", n, w.verdicts(id, from))
		}
	})
}

// The clock of a node is set during a call: the record of the call has the time of its first byte by the clock before.
func TestClockOfANodeIsSetDuringACall(t *testing.T) {
	atSteps(t, []time.Duration{time.Hour, -time.Hour}, func(t *testing.T, w *world, ws []*world, step time.Duration) {
		var ids []engine.TimerID
		for i := range 12 { // some at each node
			name := fmt.Sprint(i)
			for _, x := range ws {
				x.replies(name, slow(2*time.Second))
			}
			ids = append(ids, w.make(timer(name, delay(5*time.Second))))
		}
		time.Sleep(6 * time.Second)
		sent := time.Now().UnixMilli() - 1000
		w.step(step)
		time.Sleep(5 * time.Minute)
		for _, x := range ws {
			x.settle()
		}
		for _, id := range ids {
			for _, r := range w.records(id) {
				for _, a := range r.Attempts {
					if off := a.Started/1000 - sent; off < -50 || off > 3000 {
						t.Errorf("%s: an attempt began %d ms after the time of the call", r.Key, off)
					}
				}
			}
		}
	})
}
