package scheduler_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Of one-shots that wait for one key not more than a bound come into memory before their due;
// the rest is called in its turn, once, also across a crash; and not if it was deleted.
func TestOneShotsOfASlowKeyStayOutOfMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(400)})
		w.boundGated()
		w.start()
		due := w.now() + 100_000 // after the minute that is loaded, and the next
		const n = gated + gated/20
		var ids []engine.TimerID
		target := func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }
		for i := range n {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due+int64(i%7)), flows("k"), target)))
		}
		time.Sleep(95 * time.Second)
		for i := range 500 { // their minute is loaded
			w.make(timer(fmt.Sprint("late", i), at(due), flows("k"), target))
		}
		if m := w.metric("xtimer_wheel_tasks"); m > gated+gated/100 || m < gated-gated/10 {
			t.Errorf("%v lie in the wheel", m)
		}
		if c, err := w.Coming(t.Context(), due, "app", 1); err != nil || c.Seconds[due/1000%60] != n+500 {
			t.Errorf("%d are said to be due, %v", c.Seconds[due/1000%60], err)
		}
		deleted := 0
		for i := 0; i < n; i += 100 {
			if _, err := w.Delete(t.Context(), ids[i], 0); err != nil {
				t.Fatal(err)
			}
			deleted++
		}
		time.Sleep(8 * time.Second)
		if r := w.Resident(); r > gated {
			t.Errorf("%d tasks are in memory", r)
		}
		w.crash(time.Second)
		time.Sleep(60 * time.Second)
		w.settle()
		if r := w.Resident(); r != 0 {
			t.Errorf("%d tasks are left", r)
		}
		called := map[engine.TimerID]int{}
		w.mu.Lock()
		for _, c := range w.calls {
			if called[c.key.Timer]++; c.at < c.key.Due {
				t.Errorf("%s was called early", c.key)
			}
		}
		w.mu.Unlock()
		if want := n + 500 - deleted; len(called) != want {
			t.Errorf("%d were called, want %d", len(called), want)
		}
		for i := 0; i < n; i += 100 {
			if called[ids[i]] > 0 {
				t.Errorf("a timer was called that was deleted")
			}
		}
	})
}

// What is deferred comes into the wheel as room is made there, and is on time then.
func TestDeferredOneShotsAreOnTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(1_000_000)})
		w.boundGated()
		w.start()
		due := w.now() + 100_000
		const n = gated + gated/5
		for i := range n { // 500 a second
			w.make(timer(fmt.Sprint(i), at(due+int64(i)*2), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(120 * time.Second)
		w.settle()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.calls) != n {
			t.Errorf("%d calls", len(w.calls))
		}
		for _, c := range w.calls {
			if c.at-c.key.Due > 2 {
				t.Fatalf("%s was called %d ms late", c.key, c.at-c.key.Due)
			}
		}
	})
}

// The watermark does not pass what is deferred and could not be read at its due: a crash then
// loses none of it.
func TestDeferredOneShotsSurviveACrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(1_000_000)})
		w.boundGated()
		away := w.outage("Load")
		w.start()
		due := w.now() + 100_000
		const n = gated + 300
		for i := range n {
			w.make(timer(fmt.Sprint(i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(90 * time.Second)
		away.Store(true)
		time.Sleep(30 * time.Second)
		if c := w.made(); c >= n || c == 0 {
			t.Fatalf("%d calls, although not all could be read", c)
		}
		away.Store(false)
		w.crash(time.Second)
		time.Sleep(30 * time.Second)
		called := map[engine.TimerID]bool{}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, c := range w.calls {
			called[c.key.Timer] = true
		}
		if len(called) != n {
			t.Errorf("%d were called, want %d", len(called), n)
		}
	})
}

// One-shots of a slow key whose due has come are overdue at once, and leave the processor to others
// while they become rows.
func TestDeferredOneShotsHaveTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(1)})
		var busy atomic.Int64
		w.before.set(func(op string, arg any) error {
			if ids, ok := arg.([]engine.TimerID); ok && op == "Load" && len(ids) > 30 {
				time.Sleep(50 * time.Millisecond)
				busy.Add(50)
			}
			return nil
		})
		w.boundGated()
		w.start()
		due := w.now() + 100_000
		const n, most = 3500, gated
		const turn = 100 // so many may be on their way to their rows, where nobody counts them
		for i := range n {
			w.make(timer(fmt.Sprint(i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(time.Duration(due-w.now()) * time.Millisecond)
		const seconds = 2
		before := busy.Load()
		for range seconds {
			time.Sleep(time.Second)
			if err := w.CountOverdue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if m := w.metric("xtimer_tasks_overdue"); m < n-turn {
				t.Errorf("%v are overdue, of %d", m, n)
			}
		}
		if took := busy.Load() - before; took == 0 || took > seconds*1000/3 {
			t.Errorf("loads took %d ms in %d s", took, seconds)
		}
		time.Sleep(10 * time.Second)
		if rows := w.metric("xtimer_tasks_overdue"); rows < n-most/100-turn {
			t.Errorf("%v are overdue, of %d", rows, n)
		}
		if err := w.CountOverdue(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The key tells of those that are not in memory, except those on their way to their rows.
		if s, oldest, ok := w.Gate(keyK); !ok || s.Waiting < n-n/10 || s.Waiting > n || oldest != due || s.Every != time.Second {
			t.Errorf("%+v, the oldest since %d, want %d", s, oldest, due)
		}
	})
}

// Whatever holds a lane: no more one-shots of it than a bound are in memory, before their due and after
// it. When the pause ends, each is called once, in the order of the dues.
func TestOneShotsOfAPauseStayOutOfMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip()
	}
	for name, held := range map[string]flow.Name{"app": appApp, "target": {Kind: flow.OfTarget, Key: flow.TargetOf("http://127.0.0.1:1")}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) { pauseOneShots(t, w, held) })
		})
	}
}

func pauseOneShots(t *testing.T, w *world, held flow.Name) {
	const n, every, inFlight = gated + gated/5, 5, 20
	w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = inFlight, inFlight, inFlight
	w.boundGated()
	w.start()
	w.SetRule(held, &pause)
	due := w.now() + 100_000 // after the minute that is loaded, and the next
	for i := range n {
		name := fmt.Sprint(i)
		w.replies(name, slow(5*time.Millisecond))
		w.make(timer(name, at(due+int64(i)*every), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
	}
	time.Sleep(95 * time.Second)
	if m := w.metric("xtimer_wheel_tasks"); m > gated+gated/100 || m < gated-gated/10 {
		t.Errorf("%v lie in the wheel", m)
	}
	time.Sleep(14 * time.Second)
	coming := int64(0)
	c, err := w.Coming(t.Context(), due, "app", 1)
	for _, n := range c.Seconds {
		coming += n
	}
	if left := (due + n*every - w.now()) / every; err != nil || coming < left-10 || coming > left+10 {
		t.Errorf("%d are said to be due, of %d; %v", coming, left, err)
	}
	time.Sleep(5 * time.Second)
	if m := w.Resident(); m > gated {
		t.Errorf("%d tasks are in memory", m)
	}
	w.SetRule(held, nil)
	time.Sleep(10 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	called, latest := map[engine.TimerID]int{}, int64(0)
	for _, c := range w.calls {
		called[c.key.Timer]++
		if c.key.Due < latest-2*inFlight*every {
			t.Fatalf("the due %d ms before another is called after it", latest-c.key.Due)
		}
		latest = max(latest, c.key.Due)
	}
	if len(called) != n || len(w.calls) != n {
		t.Errorf("%d calls of %d one-shots, want %d", len(w.calls), len(called), n)
	}
}

// While the one-shots of a paused key become rows, those of another app whose key lets 1,000 a second through are on time,
// although they come due in later seconds.
func TestDeferredOneShotsOfAPauseDelayNoOthers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: pause, {Kind: flow.OfFlow, App: "other", Key: "b"}: perSecond(1000)})
		w.boundGated()
		w.tierTakes()
		w.start()
		due := w.deferPaused(10_000)
		const n = 2 * gated // 500 a second, from one second after the others
		for i := range n {
			w.make(timer(fmt.Sprint("b", i), at(due+1000+int64(i)*2), flows("b"), ofOther))
		}
		time.Sleep(time.Duration(due-w.now())*time.Millisecond + 30*time.Second)
		if late, called := w.latest(); called != n || late > 1000 {
			t.Errorf("%d of %d calls, at most %d ms late", called, n, late)
		}
	})
}

// tierTakes has each read of definitions take 2 ms, and each settle 5 ms.
func (w *world) tierTakes() {
	w.before.set(func(op string, _ any) error {
		switch op {
		case "Load":
			time.Sleep(2 * time.Millisecond)
		case "Settle":
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
}

// deferPaused makes one-shots of the key k, with one due in the minute after the one that is loaded.
func (w *world) deferPaused(n int) (due int64) {
	due = w.now()/1000*1000 + 100_000
	for i := range n {
		w.make(timer(fmt.Sprint("a", i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
	}
	return due
}

// ofOther makes a timer one of another app, for another target.
func ofOther(d *engine.Definition) { d.App, d.Callback.URL = "other", "http://127.0.0.2:1/x" }

// latest is by how much a call was late at most, and how many calls there were.
func (w *world) latest() (late int64, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		late = max(late, c.at-c.key.Due)
	}
	return late, len(w.calls)
}

// The key lets a million a second through, and the tier takes 20 ms for a read: what was deferred at one
// instant is called soon after it, as the lane has room.
func TestDeferredOneShotsOfAFastKey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: perSecond(1_000_000)})
		w.boundGated()
		w.before.set(func(op string, _ any) error {
			if op == "Load" {
				time.Sleep(20 * time.Millisecond)
			}
			return nil
		})
		w.start()
		due := w.now()/1000*1000 + 100_000
		const n = 4 * gated
		for i := range n {
			w.make(timer(fmt.Sprint("a", i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(time.Duration(due-w.now())*time.Millisecond + 60*time.Second)
		late, called := int64(0), 0
		w.mu.Lock()
		for _, c := range w.calls {
			late, called = max(late, c.at-c.key.Due), called+1
		}
		w.mu.Unlock()
		if called != n || late > 1500 {
			t.Errorf("%d of %d calls, at most %d ms late", called, n, late)
		}
	})
}
