package scheduler_test

import (
	"fmt"
	"math/rand"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/limit"
)

// pauseApp pauses the app without an end, and resumeIt ends a pause.
func (w *world) pauseIt(t *testing.T, k engine.ObjectKey) {
	t.Helper()
	w.change(t, k, func(x *limit.Object) { x.PausedUntil = engine.MaxDue })
}

func (w *world) resumeIt(t *testing.T, k engine.ObjectKey, backlog string) {
	t.Helper()
	w.change(t, k, func(x *limit.Object) { x.Resume(backlog, w.now()) })
}

func (w *world) change(t *testing.T, k engine.ObjectKey, f func(x *limit.Object)) {
	t.Helper()
	x, err := limit.Read(w.Objects().Get(k))
	if err != nil {
		t.Fatal(err)
	}
	f(&x)
	if _, _, err := w.Objects().Put(t.Context(), k, x.Body(), nil); err != nil {
		t.Fatal(err)
	}
}

// A pause until an instant ends by the clock as it was set last: on a machine that was suspended, on one whose clock was
// ahead.
func TestAPauseEndsByTheClockThatWasSet(t *testing.T) {
	for step, lasts := range map[time.Duration]time.Duration{5 * time.Hour: 0, 40 * time.Minute: 20 * time.Minute, -time.Hour: 2 * time.Hour} {
		begin(t, func(t *testing.T, w *world) {
			w.change(t, limit.FlowKey("app", "k"), func(x *limit.Object) { x.PausedUntil = w.now() + time.Hour.Milliseconds() })
			w.make(timer("a", at(w.now()+1000), flows("k")))
			time.Sleep(10 * time.Second)
			w.step(step)
			time.Sleep(max(lasts-time.Minute, 0))
			if n := len(w.of("a")); n != 0 && lasts > 0 {
				t.Errorf("after a step of %v: %d calls a minute before the pause ends", step, n)
			}
			time.Sleep(2 * time.Minute)
			if n := len(w.of("a")); n != 1 {
				t.Errorf("after a step of %v: %d calls a minute after the end of the pause", step, n)
			}
		})
	}
}

// told is what the records of a timer say of its dues in [from, to]: each must have one.
func (w *world) told(t *testing.T, id engine.TimerID, dues []int64) (called []int64, records int) {
	t.Helper()
	of := map[int64]int{}
	for _, r := range w.records(id) {
		if r.Key.Due > dues[len(dues)-1] {
			continue
		}
		records++
		n := int64(0)
		for _, due := range dues {
			if r.Key.Due <= due && due <= max(r.Key.Due, r.DueLast) {
				of[due]++
				n++
			}
		}
		switch {
		case r.Status == engine.Succeeded:
			called = append(called, r.Key.Due)
		case r.Status != engine.Skipped || r.Reason != engine.ReasonPaused || max(r.Count, 1) != n:
			t.Errorf("timer %s: %v %q of %d dues from %s, which are %d", id, r.Status, r.Reason, r.Count, stamp(r.Key.Due), n)
		}
	}
	for _, due := range dues {
		if of[due] != 1 {
			t.Fatalf("timer %s: due %s has %d records", id, stamp(due), of[due])
		}
	}
	slices.Sort(called)
	return called, records
}

// What a pause held, in each of the places where it may be: in memory, in rows, and in a
// range, for each overlap. A crash comes a while after the resume; -1: none does.
func TestResumeWithABacklog(t *testing.T) {
	for _, policy := range []string{engine.BacklogCall, engine.BacklogLatest, engine.BacklogSkip} {
		for crash, pause := range map[time.Duration]int64{-1: 300, 0: 20, 2 * time.Millisecond: 20, 12 * time.Millisecond: 300, 600 * time.Millisecond: 300} {
			t.Run(fmt.Sprintf("%s after %d s, crash %v", policy, pause, crash), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) { resumeWith(t, w, policy, pause*1000, crash) })
			})
		}
	}
}

func resumeWith(t *testing.T, w *world, policy string, pause int64, crash time.Duration) {
	w.config.MaxWaiting = 200
	w.start()
	from := w.now() - w.now()%60_000 + 60_000
	time.Sleep(time.Duration(from-w.now()-500) * time.Millisecond)
	app := limit.AppKey("app")
	w.pauseIt(t, app)
	var ids []engine.TimerID
	for i := range 8 {
		ids = append(ids, w.make(timer(fmt.Sprint("every", i), cron("*/2 * * * * *"), misfire(engine.MisfireAll, time.Hour))))
	}
	shot := w.make(timer("shot", at(from+10_000)))
	queued := w.make(timer("queue", cron("*/10 * * * * *"), overlap(engine.OverlapQueue), elsewhere("app", "http://127.0.0.2:1/x")))
	skipped := w.make(timer("skip", cron("*/10 * * * * *"), overlap(engine.OverlapSkip), elsewhere("app", "http://127.0.0.2:1/x")))
	time.Sleep(time.Duration(from+pause-w.now()+250) * time.Millisecond)
	if n := w.made(); n != 0 {
		t.Fatalf("%d calls of an app that is paused", n)
	}
	w.resumeIt(t, app, policy)
	if crash >= 0 {
		time.Sleep(crash)
		w.crash(0)
	}
	time.Sleep(3 * time.Second)
	want := func(dues []int64) []int64 {
		switch policy {
		case engine.BacklogLatest:
			return dues[len(dues)-1:]
		case engine.BacklogSkip:
			return nil
		}
		return dues
	}
	time.Sleep(20 * time.Second)
	w.settle()
	for i, id := range ids {
		dues := grid(from-1, from+pause, 2000, 0)
		called, _ := w.told(t, id, dues)
		equal(t, fmt.Sprint("every", i), called, want(dues))
	}
	called, _ := w.told(t, queued, grid(from-1, from+pause, 10_000, 0))
	equal(t, "queue", called, want(grid(from-1, from+pause, 10_000, 0)))
	r := w.record(engine.Key{Timer: shot, Due: from + 10_000})
	if r == nil || (r.Status == engine.Skipped) != (policy == engine.BacklogSkip) {
		t.Errorf("the one-shot: %+v", r)
	}
	n := 0
	for _, r := range w.records(skipped) {
		if r.Key.Due <= from+pause && r.Status == engine.Succeeded {
			n++
		}
	}
	if n != len(want([]int64{1})) {
		t.Errorf("of the timer with overlap skip %d dues were called", n)
	}
	for _, id := range ids { // what comes later is called
		if r := w.record(engine.Key{Timer: id, Due: from + pause + 2000}); crash < 0 && (r == nil || r.Status != engine.Succeeded) {
			t.Errorf("the next due: %+v", r)
		}
	}
}

// What a resume has said of dues that were held holds when its key is deleted at once, also after
// a crash: most of the dues are rows then.
func TestABacklogOutlivesItsKey(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 50
		w.start()
		from := w.now() - w.now()%60_000 + 60_000
		time.Sleep(time.Duration(from-w.now()-500) * time.Millisecond)
		k := limit.FlowKey("app", "k")
		w.pauseIt(t, k)
		var ids []engine.TimerID
		for i := range 8 {
			ids = append(ids, w.make(timer(fmt.Sprint("every", i), cron("*/2 * * * * *"), flows("k"), misfire(engine.MisfireAll, time.Hour))))
		}
		const held = 120_000
		time.Sleep(time.Duration(from+held-w.now()+250) * time.Millisecond)
		w.resumeIt(t, k, engine.BacklogLatest)
		found := func(o *engine.Object) error {
			if o == nil {
				return engine.ErrNotFound
			}
			return nil
		}
		if err := limit.Delete(t.Context(), w.Objects(), k, found, w.now()); err != nil {
			t.Fatal(err)
		}
		if err := limit.Delete(t.Context(), w.Objects(), k, found, w.now()); err != engine.ErrNotFound {
			t.Errorf("it is deleted twice: %v", err)
		}
		w.crash(0)
		time.Sleep(20 * time.Second)
		w.settle()
		for i, id := range ids {
			dues := grid(from-1, from+held, 2000, 0)
			called, _ := w.told(t, id, dues)
			equal(t, fmt.Sprint("every", i), called, dues[len(dues)-1:])
		}
	})
}

// A resume is shown until it has been decided about all that the pause held, and goes on after a crash.
func TestAResumeIsShown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 50
		w.start()
		k := limit.FlowKey("app", "k")
		shows := func(want string) {
			t.Helper()
			if got := w.Resuming(limit.NameOf(k)); got != want {
				t.Fatalf("%q is shown, not %q", got, want)
			}
		}
		w.pauseIt(t, k)
		var ids []engine.TimerID
		for i := range 8 {
			ids = append(ids, w.make(timer(fmt.Sprint("every", i), cron("*/2 * * * * *"), flows("k"), misfire(engine.MisfireAll, time.Hour))))
		}
		time.Sleep(2 * time.Minute)
		shows("")
		down := w.outage("Settle")
		down.Store(true)
		w.resumeIt(t, k, engine.BacklogSkip)
		until := w.now()
		for range 10 {
			time.Sleep(time.Second)
			shows(engine.BacklogSkip)
		}
		down.Store(false)
		w.crash(0)
		for n := 0; w.Resuming(limit.NameOf(k)) != ""; n++ {
			if time.Sleep(time.Second); n == 30 {
				t.Fatal("it does not go on")
			}
		}
		w.settle()
		for _, id := range ids {
			for _, r := range w.records(id) {
				if last := max(r.Key.Due, r.DueLast); last <= until && r.Status != engine.Skipped {
					t.Errorf("%+v", r)
				}
			}
		}
		shows("")
	})
}

// A due that a pause held is no misfire, also if the server was killed before the due had a row,
// and while it was down: the pause in force says since when it holds.
func TestADueWithoutARowThatAPauseHeld(t *testing.T) {
	for _, k := range []engine.ObjectKey{limit.AppKey("app"), limit.AppKey(limit.EachApp), limit.FlowKey("app", "k")} {
		bubble(t, func(t *testing.T, w *world) {
			w.start()
			id := w.make(timer("cron", cron("*/2 * * * * *"), flows("k"), misfire(engine.MisfireSkip, time.Minute)))
			free := w.make(timer("free", cron("*/2 * * * * *"), elsewhere("other", "http://127.0.0.1:1/"), misfire(engine.MisfireSkip, time.Minute)))
			time.Sleep(20 * time.Second)
			from := w.now()
			w.change(t, k, func(x *limit.Object) { x.Pause(limit.Pause{}, from) })
			shot := w.make(timer("shot", at(from+3000), flows("k"), misfire(engine.MisfireSkip, time.Minute)))
			time.Sleep(5 * time.Second)
			w.crash(100 * time.Second)
			time.Sleep(5 * time.Second)
			w.crash(20 * time.Second) // what a start has decided is not judged again
			to := w.now()
			w.resumeIt(t, k, engine.BacklogCall)
			time.Sleep(20 * time.Second)
			w.settle()
			called, _ := w.told(t, id, grid(from, to, 2000, 0))
			called = slices.DeleteFunc(called, func(due int64) bool { return due <= from })
			equal(t, k.String(), called, grid(from, to, 2000, 0))
			if r := w.record(engine.Key{Timer: shot, Due: from + 3000}); r == nil || r.Status != engine.Succeeded {
				t.Errorf("the one-shot: %+v", r)
			}
			if k.App != limit.EachApp {
				if n := len(w.of("free")); n > 40 {
					t.Errorf("%d dues of timer %s are called, most of them misfires", n, free)
				}
			}
		})
	}
}

// Many timers with an order go on after a pause while reads of the cold tier take their time, and their dues come
// meanwhile. The decision about what they have left does not put off these dues.
func TestDuesThatComeDuringADecision(t *testing.T) {
	for _, o := range []engine.Overlap{engine.OverlapQueue, engine.OverlapSkip} {
		t.Run(o.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				const timers = 50
				w.start()
				app := limit.AppKey("app")
				w.pauseIt(t, app)
				for i := range timers {
					w.make(timer(fmt.Sprint("x-", i), every(200*time.Millisecond), overlap(o), to(1000+i)))
				}
				time.Sleep(5 * time.Second)
				w.resumeIt(t, app, engine.BacklogLatest)
				w.before.set(func(of string, _ any) error {
					if of == "Load" || of == "OwedIn" || of == "OwedPage" || of == "Settle" {
						time.Sleep(50 * time.Millisecond)
					}
					return nil
				})
				time.Sleep(30 * time.Second)
				from := w.now()
				time.Sleep(10 * time.Second)
				w.slowly("Load", 0)
				for i := range timers {
					late, n := int64(0), 0
					for _, c := range w.of(fmt.Sprint("x-", i)) {
						if c.at >= from {
							late, n = max(late, c.at-c.key.Due), n+1
						}
					}
					if n < 40 || late > 2000 {
						t.Errorf("x-%d: %d calls in 10 s, at most %d ms late", i, n, late)
					}
				}
			})
		})
	}
}

// What a resume decides is stored in transactions of a bounded size, also where the watermark is behind: those of a
// minute in which the cold tier took no writes. A tier that refuses a larger one would keep its timers frozen.
func TestResumeAfterWritesWereRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 20
		w.start()
		app := limit.AppKey("app")
		w.pauseIt(t, app)
		for i := range 128 {
			w.make(timer(fmt.Sprint(i), every(100*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(30 * time.Second)
		var away atomic.Bool
		w.before.set(func(op string, arg any) error {
			if s, ok := arg.(*engine.Settlement); ok && (away.Load() || len(s.Owe)+len(s.Pay)+len(s.Tasks) > 40_000) {
				return engine.ErrUnavailable
			}
			return nil
		})
		away.Store(true)
		time.Sleep(60 * time.Second)
		away.Store(false)
		w.resumeIt(t, app, engine.BacklogSkip)
		time.Sleep(time.Minute)
		for i := range 128 {
			if len(w.of(fmt.Sprint(i))) == 0 {
				t.Fatalf("timer %d was not called since the resume", i)
			}
		}
	})
}

// The clock of one of two nodes is 400 ms behind, less than the tolerance. A resume at the other node, with skip or latest,
// calls nothing of what the pause held there.
func TestResumeWithClocksApart(t *testing.T) {
	for _, backlog := range []string{engine.BacklogSkip, engine.BacklogLatest} {
		t.Run(backlog, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				tellEachOther(ws)
				ws[1].step(-400 * time.Millisecond)
				startAll(ws)
				app := limit.AppKey("app")
				w.pauseIt(t, app)
				for i := range 20 {
					ws[i%2].make(timer(fmt.Sprint(i), every(100*time.Millisecond)))
				}
				time.Sleep(5 * time.Second)
				bad, total := 0, 0
				for round := range 6 { // the other node looks at each second
					time.Sleep(10*time.Second + time.Duration(round*170)*time.Millisecond)
					w.resumeIt(t, app, backlog)
					end := w.now()
					from := end - 10_000
					time.Sleep(5 * time.Second)
					n := 0
					for i := range 20 {
						per := 0
						for _, c := range ofAll(ws, fmt.Sprint(i)) {
							if c.key.Due <= end && c.key.Due > from && c.at > end-400 {
								per++
							}
						}
						if backlog == engine.BacklogLatest && per == 1 {
							per = 0
						}
						n += per
					}
					if total++; n > 0 {
						bad++
						t.Logf("round %d: %d dues that the pause held were called after the resume with %s", round, n, backlog)
					}
					w.pauseIt(t, app)
					time.Sleep(2 * time.Second)
				}
				if bad > 0 {
					t.Errorf("%d of %d resumes with %s", bad, total, backlog)
				}
			})
		})
	}
}

// A server dies before it has decided about what a pause held, and starts with a clock that is 3 s behind the resume.
func TestSkipThenAStartWithAClockBehind(t *testing.T) {
	const back = -3 * time.Second
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		app := limit.AppKey("app")
		w.pauseIt(t, app)
		w.make(timer("a", every(time.Second)))
		time.Sleep(2*time.Hour + 50*time.Millisecond)
		w.outage("Settle").Store(true)
		w.resumeIt(t, app, engine.BacklogSkip)
		end := w.now()
		time.Sleep(100 * time.Millisecond)
		w.crashes = append(w.crashes, w.now())
		w.kill()
		w.before.set(func(string, any) error { return nil })
		w.step(back)
		w.start()
		time.Sleep(-back + 20*time.Second)
		n := 0
		for _, c := range w.of("a") {
			if c.key.Due <= end {
				n++
			}
		}
		if n > 0 {
			t.Errorf("%d dues that the pause held were called after the resume with skip", n)
		}
	})
}

// The cold tier is away, then slow, while a resume skips what a pause held: each due has one record.
func TestSkippedOnceBesideASlowTier(t *testing.T) {
	for _, run := range []int{2, 4, 17, 24, 25, 41, 60} {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				var mu sync.Mutex
				r := rand.New(rand.NewSource(int64(run)))
				draw := func(n int) int {
					mu.Lock()
					defer mu.Unlock()
					return r.Intn(n)
				}
				w.config.MaxWaiting = []int{20, 50, 100, 200}[run%4]
				w.start()
				from := w.now() - w.now()%60_000 + 60_000
				time.Sleep(time.Duration(from-w.now()-500) * time.Millisecond)
				k := limit.AppKey("app")
				w.pauseIt(t, k)
				var ids []engine.TimerID
				for i := range 20 {
					ids = append(ids, w.make(timer(fmt.Sprint("t", i), cron("* * * * * *"), misfire(engine.MisfireAll, 24*time.Hour))))
				}
				time.Sleep(time.Duration(from+60_000+int64(draw(20_000))-w.now()) * time.Millisecond)
				w.before.set(func(op string, _ any) error {
					if op == "Settle" {
						time.Sleep(time.Duration(draw(400)) * time.Millisecond)
					}
					return nil
				})
				var away atomic.Bool
				inner := w.before.get()
				w.before.set(func(op string, arg any) error {
					if op == "Settle" && away.Load() {
						return engine.ErrUnavailable
					}
					return inner(op, arg)
				})
				away.Store(true)
				time.Sleep(time.Duration(5+draw(10)) * time.Second)
				away.Store(false)
				time.Sleep(time.Duration(draw(1500)) * time.Millisecond)
				w.resumeIt(t, k, engine.BacklogSkip)
				end := w.now()
				time.Sleep(60 * time.Second)
				w.settle()
				for _, id := range ids {
					w.told(t, id, grid(from-1, end, 1000, 0))
				}
			})
		})
	}
}
