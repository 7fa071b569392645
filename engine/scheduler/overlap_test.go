package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// busy is from the first attempt to the final status, retry waits included.
func TestOverlap(t *testing.T) {
	const s = time.Second
	for _, x := range []struct {
		name    string
		overlap engine.Overlap
		replies []reply
		want    []string
		dues    []int64 // in the order of calls, after the start (s)
	}{
		{"skip, a slow call", engine.OverlapSkip, []reply{slow(25 * s), ok}, []string{"10s succeeded", "20s skipped overlap", "30s skipped overlap", "40s succeeded", "50s succeeded"}, []int64{10, 40, 50}},
		{"skip, a retry", engine.OverlapSkip, []reply{fail, ok}, []string{"10s succeeded", "20s skipped overlap", "30s skipped overlap", "40s succeeded", "50s succeeded"}, []int64{10, 10, 40, 50}},
		{"queue, a slow call", engine.OverlapQueue, []reply{slow(25 * s), ok}, []string{"10s succeeded", "20s succeeded", "30s succeeded", "40s succeeded", "50s succeeded"}, []int64{10, 20, 30, 40, 50}},
		{"queue, a retry", engine.OverlapQueue, []reply{fail, ok}, []string{"10s succeeded", "20s succeeded", "30s succeeded", "40s succeeded", "50s succeeded"}, []int64{10, 10, 20, 30, 40, 50}},
		{"allow, a retry", engine.OverlapAllow, []reply{fail, ok}, []string{"10s succeeded", "20s succeeded", "30s succeeded", "40s succeeded", "50s succeeded"}, []int64{10, 20, 30, 10, 40, 50}},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.replies("a", x.replies...)
				id := w.make(timer("a", every(10*s), overlap(x.overlap), retry(4, 25*s, 1), timeout(time.Minute)))
				time.Sleep(55 * s)
				equal(t, "verdicts", w.verdicts(id, from), x.want)
				var got []int64
				for _, c := range w.of("a") {
					got = append(got, (c.key.Due-from)/1000)
				}
				equal(t, "calls", got, x.dues)
			})
		})
	}
}

// A queue keeps at most 100 waiting.
func TestOverlapQueueIsFull(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.replies("a", slow(150*100*time.Millisecond), ok)
		id := w.make(timer("a", every(100*time.Millisecond), overlap(engine.OverlapQueue), timeout(time.Minute)))
		time.Sleep(20 * time.Second)
		w.disable(id, 0)
		w.settle()
		full := 0
		for _, r := range w.records(id) {
			if r.Reason == engine.ReasonQueueFull {
				full++
			}
		}
		if full < 48 || full > 51 {
			t.Errorf("%d dues did not find room, want about 50", full)
		}
		cs := w.of("a")
		for i := 1; i < len(cs); i++ {
			if cs[i].at < cs[i-1].ended {
				t.Fatalf("call %d: due %d at %d, after due %d that ended at %d", i, cs[i].key.Due-from, cs[i].at-from, cs[i-1].key.Due-from, cs[i-1].ended-from)
			}
		}
	})
}

// A task that waits for its retry is busy also after a crash, however far the
// retry is.
func TestOverlapOverACrash(t *testing.T) {
	for _, backoff := range []time.Duration{30 * time.Second, 10 * time.Minute} {
		t.Run(backoff.String(), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.replies("a", fail, ok)
				w.make(timer("a", every(10*time.Second), overlap(engine.OverlapSkip), retry(4, backoff, 1)))
				time.Sleep(15 * time.Second)
				w.crash(time.Second)
				time.Sleep(backoff - 10*time.Second)
				if cs := w.of("a"); len(cs) != 1 {
					t.Errorf("%d calls while the first task waits for its retry, want 1: %+v", len(cs), cs)
				}
				time.Sleep(30 * time.Second)
				if cs := w.of("a"); len(cs) < 2 || cs[1].key.Due != from+10_000 || cs[1].attempt != 2 {
					t.Errorf("the retry: %+v", cs)
				}
			})
		})
	}
}

// Nor does a due of a queue that was missed meanwhile pass that task, be the crash before or after
// the task has got a row.
func TestOverlapQueueOverACrash(t *testing.T) {
	for _, at := range []time.Duration{15 * time.Second, 75 * time.Second} {
		t.Run(at.String(), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.replies("a", fail, ok)
				w.make(timer("a", every(10*time.Second), overlap(engine.OverlapQueue), retry(4, 2*time.Minute, 1), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(at)
				w.crash(8 * time.Second)
				time.Sleep(4 * time.Minute)
				got := dues(w.of("a"))
				equal(t, "dues", got[:min(6, len(got))], []int64{from + 10_000, from + 10_000, from + 20_000, from + 30_000, from + 40_000, from + 50_000})
			})
		})
	}
}

// Also where the cold tier is away for a while, after the start has recovered and before it
// has read the task.
func TestOverlapOverAnOutageAtAStart(t *testing.T) {
	for _, o := range []engine.Overlap{engine.OverlapSkip, engine.OverlapQueue} {
		t.Run(o.String(), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.replies("a", fail, ok)
				w.make(timer("a", every(10*time.Second), overlap(o), retry(4, 10*time.Minute, 1)))
				time.Sleep(15 * time.Second)
				var back atomic.Int64
				w.before.set(func(op string, _ any) error {
					switch {
					case op == "Lanes":
						back.Store(w.now() + 5000)
					case op == "Load" && w.now() < back.Load():
						return engine.ErrUnavailable
					}
					return nil
				})
				w.crash(8 * time.Second)
				time.Sleep(12 * time.Minute)
				got := dues(w.of("a"))
				equal(t, "dues", got[:min(2, len(got))], []int64{from + 10_000, from + 10_000})
			})
		})
	}
}

// What waits for a busy task goes first when that ends, also before a due that
// has come and finds no worker until then; and a change of schedule in that
// moment leaves the timer able to go on.
func TestOverlapQueueInOrder(t *testing.T) {
	const s = time.Second
	for _, change := range []bool{false, true} {
		t.Run(fmt.Sprint("change ", change), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.config.MaxCalls, w.config.MaxCallsPerTarget = 16, 2
				w.start()
				from := w.now()
				w.replies("a", slow(25*s), ok)
				w.replies("b", slow(30*s)) // takes the other worker from 25 s on
				w.replies("c", slow(10*s)) // takes a's at 35 s
				id := w.make(timer("a", every(10*s), overlap(engine.OverlapQueue), timeout(time.Minute)))
				w.make(timer("b", delay(25*s), timeout(time.Minute)))
				if change {
					w.make(timer("c", delay(32*s), timeout(time.Minute), func(d *engine.Definition) { d.Priority = 9 }))
				}
				time.Sleep(37 * s)
				want := []string{"10s succeeded", "20s succeeded", "30s succeeded", "40s succeeded", "50s succeeded", "1m0s succeeded"}
				order := []int64{10, 20, 30, 40, 50, 60}
				if change {
					if err := w.reschedule(id, every(15*s)); err != nil {
						t.Fatal(err)
					}
					want = []string{"10s succeeded", "20s cancelled replaced", "30s cancelled replaced", "45s succeeded", "1m0s succeeded"}
					order = []int64{10, 45, 60}
				}
				time.Sleep(27 * s)
				w.settle()
				equal(t, "verdicts", w.verdicts(id, from), want)
				var got []int64
				for _, c := range w.of("a") {
					got = append(got, (c.key.Due-from)/1000)
				}
				equal(t, "calls", got, order)
			})
		})
	}
}

// Dues that were held by a change that failed go on in their order.
func TestOverlapQueueAfterAFailedChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var fails atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Apply" && fails.CompareAndSwap(true, false) {
				time.Sleep(20 * time.Second)
				return engine.ErrUnavailable
			}
			return nil
		})
		w.config.MaxCalls = 1
		w.start()
		from := w.now()
		w.replies("a", slow(time.Second))
		id := w.make(timer("a", every(5*time.Second), overlap(engine.OverlapQueue)))
		time.Sleep(6 * time.Second)
		fails.Store(true)
		if err := w.reschedule(id, every(time.Hour)); err == nil {
			t.Error("the change was made")
		}
		time.Sleep(10 * time.Second)
		var got []int64
		for _, c := range w.of("a") {
			got = append(got, (c.key.Due-from)/1000)
		}
		equal(t, "calls", got, []int64{5, 10, 15, 20, 25, 30, 35})
	})
}

// Tasks that wait for another of their timer (overlap: queue) are called when the timer
// is changed to allow.
func TestParkedThenAllowed(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		d := timer("a", every(time.Second), overlap(engine.OverlapQueue), timeout(10*time.Second))
		w.behave("a", func(*call) reply { return slow(1500 * time.Millisecond) })
		w.make(d)
		time.Sleep(20 * time.Second)
		d.Overlap = engine.OverlapAllow
		if _, _, err := w.Put(t.Context(), d, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5500 * time.Millisecond) // not at the instant of a due
		s, err := w.Stats(t.Context())
		if err != nil || s.Overdue > 0 {
			t.Errorf("%d tasks wait, the oldest for %v (%v)", s.Overdue, s.OldestOverdue, err)
		}
	})
}

// A due that was told to be skipped, as its timer was busy, is not called after the
// clock was set back behind it and a kill.
func TestSkippedThenStepBackAndKill(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		time.Sleep(250 * time.Millisecond)
		from := w.now()
		w.behave("a", func(c *call) reply {
			if c.key.Due == from+30_000 && !c.redelivered {
				return slow(time.Minute)
			}
			return ok
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		tasks := w.Subscribers().Subscribe(ctx, engine.TaskFilter{}, nil)
		w.make(timer("a", every(30*time.Second), overlap(engine.OverlapSkip), timeout(2*time.Minute)))
		<-tasks.Ready()
		x := told(t, tasks)[0]
		stop()
		if x.Status != engine.Skipped {
			t.Fatalf("the first that ended is %+v", x)
		}
		time.Sleep(20 * time.Millisecond)
		w.step(-10 * time.Second)
		time.Sleep(5 * time.Second)
		w.crash(time.Second)
		time.Sleep(2 * time.Minute)
		w.settle()
		for _, due := range dues(w.of("a")) {
			if due == x.Key.Due {
				t.Errorf("%s was told to be skipped, and was called", stamp(due))
			}
		}
	})
}

// A task that waits for its due again, as the clock was set back, has no turn: those
// that are past and wait for theirs are called.
func TestQueueAfterAStepBack(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(c *call) reply {
			if c.key.Due == from+10_000 {
				return slow(35 * time.Second) // 20 to 40 s wait for it
			}
			return ok
		})
		id := w.make(timer("a", every(10*time.Second), overlap(engine.OverlapQueue), timeout(time.Minute)))
		time.Sleep(43 * time.Second)
		w.step(-20 * time.Second) // to 23 s: 30 and 40 are to come
		k, err := w.RunNow(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3500 * time.Millisecond) // the call ends at 25 s
		equal(t, "dues", dues(w.of("a")), []int64{from + 10_000, from + 20_000, k.Due})
		time.Sleep(30 * time.Second)
		equal(t, "dues", dues(w.of("a")), []int64{from + 10_000, from + 20_000, k.Due, from + 30_000, from + 40_000, from + 50_000})
		w.once("a")
	})
}

// So has one that may have been sent before a crash.
func TestQueueAfterACrashAndAStepBack(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(c *call) reply {
			switch {
			case c.key.Due != from+10_000:
				return ok
			case c.redelivered:
				return slow(12 * time.Second)
			}
			return slow(time.Minute)
		})
		id := w.make(timer("a", every(10*time.Second), overlap(engine.OverlapQueue), timeout(time.Minute)))
		time.Sleep(35 * time.Second)
		w.crash(time.Second) // 20 and 30 s waited for 10, and wait again
		time.Sleep(9 * time.Second)
		w.step(-20 * time.Second) // to 25 s: 30 and 40 are to come
		k, err := w.RunNow(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second) // the call of 10 ends at 28 s
		equal(t, "dues", dues(w.of("a")), []int64{from + 10_000, from + 10_000, from + 20_000, k.Due})
		time.Sleep(22 * time.Second)
		equal(t, "dues", dues(w.of("a"))[4:], []int64{from + 30_000, from + 40_000, from + 50_000})
	})
}

// Nor is its timer busy after a start at which the clock is behind its due.
func TestQueueAfterAStepBackAndACrash(t *testing.T) {
	for _, stored := range []bool{false, true} { // the row in owed says that it was begun; or the journal alone
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				w.replies("a", slow(time.Minute), ok)
				id := w.make(timer("a", every(10*time.Second), overlap(engine.OverlapQueue), timeout(time.Minute)))
				time.Sleep(12 * time.Second)
				if stored {
					time.Sleep(6 * time.Second)
					w.step(-6 * time.Second)
				}
				w.step(-7 * time.Second)
				w.crash(time.Second) // at 6 s
				k, err := w.RunNow(t.Context(), id, 0)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				equal(t, "dues", dues(w.of("a")), []int64{from + 10_000, k.Due})
				time.Sleep(15 * time.Second)
				equal(t, "dues", dues(w.of("a"))[2:], []int64{from + 10_000, from + 20_000})
			})
		})
	}
}

// The watermark of a shard lies before a stored range of a timer whose dues are called in order: the dues between the two
// are called first, few or many.
func TestQueueBeforeAStoredRange(t *testing.T) {
	for n := 2; n <= 6; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start()
				w.replies("queue", slow(5*time.Minute), ok)
				id := w.make(timer("queue", every(4*time.Second), overlap(engine.OverlapQueue), timeout(10*time.Minute), misfire(engine.MisfireAll, time.Hour)))
				time.Sleep(time.Second)
				w.before.set(func(op string, arg any) error {
					if op == "Settle" {
						return engine.ErrUnavailable
					}
					return nil
				})
				time.Sleep(30 * time.Second)
				cs := w.of("queue")
				if len(cs) == 0 {
					t.Fatal("no call")
				}
				first := cs[0].key.Due
				v, err := w.Timer(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				w.kill()
				w.before.set(func(string, any) error { return nil })
				from := first + int64(n+1)*4000
				o := engine.Owed{Key: engine.Key{Timer: id, Due: from}, To: from + 4000, Generation: v.Generation, NotBefore: from, Lane: v.Timer.Lane()}
				if err := w.cold.Settle(t.Context(), &engine.Settlement{Owe: []engine.Owed{o}}); err != nil {
					t.Fatal(err)
				}
				w.replies("queue", ok)
				w.start()
				time.Sleep(20 * time.Second)
				calledInOrder(t, "queue", w.of("queue"), 8, 0)
			})
		})
	}
}
