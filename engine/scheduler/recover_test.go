package scheduler_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// A call that was cut off by a crash is made again, however long the crash took
// and whatever the misfire policy: it had begun in time.
func TestBegunIsCalledAgain(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		for _, after := range []time.Duration{300 * time.Millisecond, 4 * time.Second} {
			t.Run(fmt.Sprint(policy, " ", after), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					from := w.now()
					w.replies("a", slow(time.Minute), ok)
					id := w.make(timer("a", every(5*time.Second), timeout(2*time.Minute), misfire(policy, time.Hour)))
					time.Sleep(5*time.Second + after)
					w.crash(time.Minute)
					w.settle()
					n := 0
					for _, c := range w.of("a") {
						if c.key.Due == from+5000 {
							if n++; n == 2 && !c.redelivered {
								t.Error("it was sent again and not marked as redelivered")
							}
						}
					}
					if n != 2 {
						t.Errorf("it was called %d times, want 2: %q", n, w.verdicts(id, from))
					}
				})
			})
		}
	}
}

// A retry that waits keeps its attempts and its time over a crash, also when so
// many dues were missed that they are owed as a range.
func TestRetryWithinARange(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(c *call) reply {
			switch c.key.Due {
			case from + 100:
				return slow(30 * time.Second) // holds the watermark back
			case from + 200:
				if c.attempt == 1 {
					return fail
				}
			}
			return ok
		})
		w.make(timer("a", every(100*time.Millisecond), misfire(engine.MisfireAll, time.Hour), timeout(time.Minute), retry(4, 5*time.Minute, 1)))
		time.Sleep(time.Second)
		w.crash(3 * time.Minute)
		time.Sleep(6 * time.Minute)
		var attempts []int
		for _, c := range w.of("a") {
			if c.key.Due == from+200 {
				attempts = append(attempts, c.attempt)
				if c.attempt == 2 && c.at < from+200+300_000 {
					t.Errorf("the retry came %d ms after its due", c.at-c.key.Due)
				}
			}
		}
		equal(t, "attempts", attempts, []int{1, 2})
	})
}

// What settling cannot store for a minute waits in memory and journal; nothing
// is lost or repeated, also when the process dies in that time.
func TestSettleFails(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var away atomic.Bool
				w.before.set(func(op string, _ any) error {
					if op == "Settle" && away.Load() {
						return errors.New("the cold tier is away.Load()")
					}
					return nil
				})
				w.start()
				from := w.now()
				id := w.make(timer("a", every(time.Second), misfire(engine.MisfireAll, time.Hour)))
				w.behave("r", func(c *call) reply {
					if c.attempt == 1 {
						return fail
					}
					return ok
				})
				r := w.make(timer("r", every(3*time.Second), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(10*time.Second + 500*time.Millisecond)
				away.Store(true)
				time.Sleep(time.Minute)
				s, err := w.Stats(t.Context())
				if err != nil || s.SettleBacklog < 50 || s.Tiers["cold"] {
					t.Errorf("stats: backlog %d, cold tier up %v, %v", s.SettleBacklog, s.Tiers["cold"], err)
				}
				if w.Ready() == nil {
					t.Error("it says that it is ready")
				}
				if crash {
					w.kill()
					away.Store(false)
					time.Sleep(500 * time.Millisecond)
					w.start()
				}
				away.Store(false)
				time.Sleep(10 * time.Second)
				w.disable(id, 0)
				w.disable(r, 0)
				to := w.now()
				w.settle()
				w.accounted(id, from, to, 1000)
				w.accounted(r, from, to, 3000)
				seen := map[string]int{}
				for _, name := range []string{"a", "r"} {
					for _, c := range w.of(name) {
						if seen[fmt.Sprint(c.key, c.attempt)]++; seen[fmt.Sprint(c.key, c.attempt)] > 1 {
							t.Errorf("attempt %d of %s was made twice", c.attempt, c.key)
						}
					}
				}
			})
		})
	}
}

// A drain lets calls end, keeps what waits due, and leaves nothing to repeat.
func TestDrain(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(*call) reply { return slow(1500 * time.Millisecond) })
		id := w.make(timer("a", every(100*time.Millisecond)))
		w.replies("b", fail, ok)
		b := w.make(timer("b", delay(time.Second), retry(3, 4*time.Second, 1)))
		time.Sleep(3*time.Second + 50*time.Millisecond)
		began := time.Now()
		if err := w.stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 2*time.Second {
			t.Errorf("the drain took %v", d)
		}
		for _, c := range w.of("a") {
			if c.ended == 0 {
				t.Errorf("the call for %s was cut off", c.key)
			}
		}
		time.Sleep(time.Second)
		w.start()
		time.Sleep(3 * time.Second)
		w.disable(id, 0)
		to := w.now()
		w.settle()
		seen := map[int64]int{}
		for _, c := range w.of("a") {
			if seen[c.key.Due]++; seen[c.key.Due] > 1 {
				t.Errorf("%s was called twice", c.key)
			}
		}
		w.accounted(id, from, to-1500, 100)
		equal(t, "b", w.verdicts(b, from), []string{"1s succeeded"})
		if n := len(w.of("b")); n != 2 {
			t.Errorf("b was called %d times, want 2", n)
		}
	})
}

// The drain has an end: what is cut off is called again at the next start.
func TestDrainCutsOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.Drain = 2 * time.Second
		w.start()
		w.replies("a", slow(time.Minute), ok)
		from := w.now()
		id := w.make(timer("a", delay(time.Second), timeout(2*time.Minute)))
		time.Sleep(2 * time.Second)
		began := time.Now()
		w.stop()
		if d := time.Since(began); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("the drain took %v, want 2 s", d)
		}
		w.start()
		w.settle()
		cs := w.of("a")
		if len(cs) != 2 || !cs[1].redelivered {
			t.Errorf("calls: %+v", cs)
		}
		equal(t, "verdicts", w.verdicts(id, from), []string{"1s succeeded"})
	})
}

// Random timers, changes and crashes against an oracle: each due that stood in
// force ends as one record, and a call is repeated only beside a crash.
func TestRandomCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(seeds(5)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) { w.random(rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

// history of one random timer: spans in which an interval was in force.
type history struct {
	name  string
	id    engine.TimerID
	gap   int64
	spans []span
	gone  int64 // deleted then; 0: not
}

type span struct{ from, to, anchor, gap int64 } // dues in (from, to]; to 0: still

func (w *world) random(r *rand.Rand) {
	t := w.t
	var all []*history
	live := func() *history {
		for range 20 {
			if h := all[r.IntN(len(all))]; h.gone == 0 {
				return h
			}
		}
		return nil
	}
	for step := range 120 {
		switch k := r.IntN(10); {
		case k < 4 || len(all) == 0:
			h := &history{name: fmt.Sprint("t", step), gap: int64(500 + r.IntN(20_000))}
			o := []func(*engine.Definition){misfire(engine.MisfireAll, time.Hour), retry(50, time.Second, 1), timeout(20 * time.Second)}
			mood := r.IntN(4)
			seed := r.Uint64()
			w.behave(h.name, func(c *call) reply {
				x := rand.New(rand.NewPCG(seed^uint64(c.key.Due), uint64(c.attempt)))
				switch {
				case mood == 0:
					return ok
				case mood == 1 && x.IntN(3) == 0:
					return fail
				case mood == 2 && x.IntN(4) == 0:
					return slow(time.Duration(x.IntN(8000)) * time.Millisecond)
				case mood == 3 && x.IntN(5) == 0:
					return notSent
				}
				return slow(time.Duration(x.IntN(40)) * time.Millisecond)
			})
			h.id = w.make(timer(h.name, every(time.Duration(h.gap)*time.Millisecond), o...))
			now := w.now()
			h.spans = []span{{now, 0, now, h.gap}}
			all = append(all, h)
		case k < 6:
			if h := live(); h != nil {
				gap := int64(500 + r.IntN(20_000))
				if gap == h.gap {
					break
				}
				if err := w.reschedule(h.id, every(time.Duration(gap)*time.Millisecond)); err != nil {
					t.Fatal(err)
				}
				now := w.now()
				last := &h.spans[len(h.spans)-1]
				last.to, h.gap = now, gap
				h.spans = append(h.spans, span{now, 0, last.anchor, gap})
			}
		case k < 7:
			if h := live(); h != nil {
				if _, err := w.Delete(t.Context(), h.id, 0); err != nil {
					t.Fatal(err)
				}
				h.gone = w.now()
				h.spans[len(h.spans)-1].to = h.gone
			}
		case k < 8:
			down := time.Duration(r.IntN(3000)) * time.Millisecond
			if r.IntN(4) == 0 {
				down = time.Duration(r.IntN(60)) * time.Second
			}
			if r.IntN(2) == 0 {
				w.crash(down)
			} else {
				w.power(down)
			}
		default:
			time.Sleep(time.Duration(r.IntN(7000)) * time.Millisecond)
		}
		time.Sleep(time.Duration(r.IntN(900)) * time.Millisecond)
	}
	for _, h := range all {
		if h.gone == 0 {
			w.disable(h.id, 0)
			h.spans[len(h.spans)-1].to = w.now()
		}
	}
	time.Sleep(90 * time.Second)
	for _, h := range all {
		w.judge(h)
	}
}

// callsOf is when, after its due, a due was called.
func (w *world) callsOf(name string, due int64) (ats []int64) {
	for _, c := range w.of(name) {
		if c.key.Due == due {
			ats = append(ats, c.at-due)
		}
	}
	return ats
}

// since is when, after an instant, crashes were.
func (w *world) since(at int64) (ms []int64) {
	for _, x := range w.crashes {
		if x > at && x < at+60_000 {
			ms = append(ms, x-at)
		}
	}
	return ms
}

// judge holds one random timer against what should have become of it.
func (w *world) judge(h *history) {
	t := w.t
	want := map[int64]int64{} // due → end of the span that it stood in
	for _, s := range h.spans {
		for _, d := range grid(s.from, s.to, s.gap, s.anchor) {
			want[d] = s.to
		}
	}
	got := map[int64]int{}
	for _, r := range w.records(h.id) {
		if !r.Status.Final() {
			t.Errorf("%s due %s is %s", h.name, stamp(r.Key.Due), r.Status)
		}
		if r.Count <= 1 {
			got[r.Key.Due]++
			continue
		}
		for d := range want {
			if d >= r.Key.Due && d <= r.DueLast {
				got[d]++
			}
		}
	}
	for d := range want {
		if got[d] != 1 {
			t.Errorf("%s (gap %d) due %s has %d records, want 1; it was called at %v, its schedule ended %d ms after it, crashes: %v",
				h.name, h.gap, stamp(d), got[d], w.callsOf(h.name, d), want[d]-d, w.since(d))
		}
		delete(got, d)
	}
	for d := range got {
		t.Errorf("%s has a record of %s, which is no due of it", h.name, stamp(d))
	}
	type attempt struct {
		due int64
		n   int
	}
	last := map[attempt]call{}
	for _, c := range w.of(h.name) {
		end, due := want[c.key.Due]
		switch {
		case !due:
			t.Errorf("%s was called for %s, which is no due of it", h.name, stamp(c.key.Due))
		case c.at < c.key.Due:
			t.Errorf("%s was called early for %s", h.name, stamp(c.key.Due))
		case c.at > end:
			t.Errorf("%s was called for %s %d ms after the 2xx of the change that ended it", h.name, stamp(c.key.Due), c.at-end)
		}
		a := attempt{c.key.Due, c.attempt}
		if was, again := last[a]; again {
			crashed := false
			for _, x := range w.crashes {
				crashed = crashed || x >= was.at && x <= c.at
			}
			if !crashed || !c.redelivered {
				t.Errorf("%s due %s attempt %d was repeated; beside a crash: %v, redelivered: %v", h.name, stamp(c.key.Due), c.attempt, crashed, c.redelivered)
			}
		}
		last[a] = c
	}
}

// What is taken into memory before the rest of what is owed, and is over when
// its row's turn comes, is not called again.
func TestResumeReadsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls = 40
		w.start()
		d := every(100 * time.Millisecond)
		d.EndAt = w.now() + 90_000
		for i := range 26 {
			w.replies(fmt.Sprint(i), slow(100*time.Millisecond))
			w.make(timer(fmt.Sprint(i), d, misfire(engine.MisfireAll, time.Hour)))
		}
		ids := map[string]engine.TimerID{}
		for _, again := range []time.Duration{84, 86, 88, 90} { // so that they are on different pages
			name := fmt.Sprint("again", again)
			w.replies(name, fail, ok)
			ids[name] = w.make(timer(name, delay(0), overlap(engine.OverlapSkip), retry(4, again*time.Second, 1), func(d *engine.Definition) {
				d.Callback.URL = "http://127.0.0.1:2/"
			}))
		}
		time.Sleep(time.Second)
		w.crash(90 * time.Second)
		time.Sleep(2 * time.Second)
		if s, err := w.Stats(t.Context()); err != nil || s.Overdue < 9_000 {
			t.Fatalf("%d tasks wait: that is no crowd; %v", s.Overdue, err)
		}
		time.Sleep(time.Minute)
		for name, id := range ids {
			if cs := w.of(name); len(cs) != 2 {
				t.Errorf("%s: %d calls, want 2: %+v", name, len(cs), cs)
			}
			equal(t, name, w.verdicts(id, w.starts[0]), []string{"0s succeeded"})
		}
	})
}

// A node that was suspended has the end of a due in its journal which the next owner of the shard
// decided in a run. When it has the shard again, the due has one end.
func TestEndBesideARun(t *testing.T) {
	t.Parallel()
	begin(t, func(t *testing.T, w *world) {
		id := w.make(timer("a", every(time.Second), misfire(engine.MisfireSkip, time.Hour)))
		time.Sleep(5 * time.Second)
		def, err := w.cold.Timer(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		due := w.now()/1000*1000 + 20_000
		w.crash(time.Minute) // the run
		w.settle()
		w.crashes = append(w.crashes, w.now())
		w.kill()
		w.journal.mu.Lock()
		w.journal.append(engine.EncodeTask(policy.NotCalled(def, due, engine.Skipped, engine.ReasonOverlap, w.now())))
		w.journal.synced = w.journal.first + len(w.journal.records)
		w.journal.mu.Unlock()
		w.start()
		w.settle()
		inRun := false
		for _, r := range w.records(id) {
			if r.Key.Due == due {
				t.Errorf("a record of its own: %v, %s", r.Status, r.Reason)
			}
			inRun = inRun || r.Key.Due < due && due < r.DueLast
		}
		if !inRun {
			t.Error("no run has the due")
		}
	})
}
