package scheduler_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// Every nominal due is called exactly once, on time, over hour changes: what the
// original lost up to half of (its items 1, 2 and 7).
func TestEachDueOnceOverHourChanges(t *testing.T) {
	t.Parallel()
	const s, m, h = int64(1000), int64(60_000), int64(3_600_000)
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		type expected struct {
			name string
			id   engine.TimerID
			dues func(to int64) []int64
		}
		var all []expected
		add := func(d engine.Definition, dues func(to int64) []int64) {
			all = append(all, expected{d.Name, w.make(d), dues})
		}
		steps := func(step, phase int64) func(int64) []int64 {
			return func(to int64) []int64 { return grid(from, to, step, phase) }
		}
		both := func(a, b func(int64) []int64) func(int64) []int64 {
			return func(to int64) []int64 { return merged(a(to), b(to)) }
		}
		add(timer("minute", cron("0 * * * * *")), steps(m, 0))
		add(timer("half", cron("30 * * * * *")), steps(m, 30*s))
		add(timer("second", cron("* * * * * *")), steps(s, 0))
		add(timer("ten", cron("0 3/10 * * * *")), steps(10*m, 3*m))
		add(timer("five", cron("0 5,35 * * * *")), both(steps(h, 5*m), steps(h, 35*m)))
		add(timer("hour", cron("0 0 * * * *")), steps(h, 0))
		add(timer("seven", cron("*/7 * * * * *")), func(to int64) (ds []int64) {
			for k := range int64(9) {
				ds = merged(ds, grid(from, to, m, k*7*s))
			}
			return ds
		})
		add(timer("every", every(7*time.Minute+250*time.Millisecond)), steps(7*m+250, from))
		for _, d := range []time.Duration{0, time.Millisecond, 29 * time.Second, 30 * time.Second, 119 * time.Second, time.Hour + 30*time.Second, time.Hour + 4*time.Minute} {
			once := func(int64) []int64 { return []int64{from + d.Milliseconds()} }
			add(timer("delay-"+d.String(), delay(d)), once)
			add(timer("at-"+d.String(), at(from+d.Milliseconds())), once)
		}
		time.Sleep(time.Hour + 5*time.Minute + 250*time.Millisecond) // no due falls on the instants looked at
		to := w.now()
		w.settle()
		for _, d := range all {
			w.Delete(t.Context(), d.id, 0)
		}
		w.settle()
		for _, x := range all {
			want := x.dues(to + 5000)
			w.exact(x.name, x.id, want, 0)
		}
		if n := w.metric("xtimer_fired_early_total"); n != 0 {
			t.Errorf("%v fires were early", n)
		}
		if n := w.metric("xtimer_audit_violations_total"); n != 0 {
			t.Errorf("the auditor found %v violations", n)
		}
	})
}

// A timer that is faster than everything around it loses nothing and is never early.
func TestEvery100ms(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		id := w.make(timer("fast", every(100*time.Millisecond)))
		time.Sleep(5*time.Minute + 50*time.Millisecond)
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.exact("fast", id, grid(from, to, 100, from), 0)
	})
}

// merged merges two sorted lists.
func merged(a, b []int64) []int64 {
	out := make([]int64, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		if len(b) == 0 || len(a) > 0 && a[0] <= b[0] {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

// Created at any time, in any of the windows, while a slow migrator loads.
func TestCreatedInAnyWindow(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.before.set(func(op string, _ any) error {
			if op == "Due" || op == "Owed" || op == "OwedIn" || op == "Load" {
				time.Sleep(time.Second)
			}
			return nil
		})
		w.config.Window = 15 * time.Minute
		w.start()
		want := map[string]int64{}
		ids := map[string]engine.TimerID{}
		for i := range 200 {
			name := fmt.Sprint(i)
			d := time.Duration(i%31) * 5 * time.Second
			if i%7 == 0 {
				d = time.Duration(i) * 8 * time.Second
			}
			want[name] = w.now() + d.Milliseconds()
			ids[name] = w.make(timer(name, at(want[name])))
			time.Sleep(time.Duration(i*37%1900) * time.Millisecond)
		}
		time.Sleep(30 * time.Minute)
		w.settle()
		for name, due := range want {
			w.exact(name, ids[name], []int64{due}, 0)
		}
	})
}

// A warm tier that is away, refuses what is added or loses it costs no fire.
func TestWarmTierFaults(t *testing.T) {
	away := errors.New("the warm tier is away")
	for _, x := range []struct {
		name  string
		fault func(w *world, op string, since time.Duration) error
	}{
		{"away", func(_ *world, _ string, since time.Duration) error {
			if since > 4*time.Minute && since < 8*time.Minute {
				return away
			}
			return nil
		}},
		{"away for ever", func(*world, string, time.Duration) error { return away }},
		{"a bucket with a gap", func(_ *world, op string, _ time.Duration) error {
			if op == "Load" {
				return engine.ErrGap
			}
			return nil
		}},
		{"adds fail", func(_ *world, op string, since time.Duration) error {
			if op == "Add" && since > time.Second && since < 5*time.Minute {
				return away
			}
			return nil
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				began := time.Now()
				w.warmFault.set(func(op string) error { return x.fault(w, op, time.Since(began)) })
				w.start()
				from := w.now()
				minute := w.make(timer("minute", every(time.Minute)))
				seven := w.make(timer("seven", every(7*time.Minute)))
				time.Sleep(2 * time.Second)
				once := w.make(timer("once", at(from+6*60_000+10)))
				far := w.make(timer("far", at(from+13*60_000)))
				time.Sleep(15 * time.Minute)
				to := w.now()
				w.settle()
				w.exact("minute", minute, grid(from, to, 60_000, from), 0)
				w.exact("seven", seven, grid(from, to, 7*60_000, from), 0)
				w.exact("once", once, []int64{from + 6*60_000 + 10}, 0)
				w.exact("far", far, []int64{from + 13*60_000}, 0)
			})
		})
	}
}

// An entry that could not be added is found in the cold tier, also when that is
// away for a moment just then.
func TestWarmAddAndColdDueFail(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var addFails, dueFails atomic.Bool
		w.warmFault.set(func(op string) error {
			if op == "Add" && addFails.Load() {
				return errors.New("the warm tier is away")
			}
			return nil
		})
		w.before.set(func(op string, _ any) error {
			if op == "Due" && dueFails.CompareAndSwap(true, false) {
				return errors.New("the cold tier is away")
			}
			return nil
		})
		w.start()
		time.Sleep(5 * time.Second)
		addFails.Store(true)
		due := w.now() + 10*60_000
		id := w.make(timer("a", at(due)))
		addFails.Store(false)
		for range 11 { // whichever minute is loaded next
			time.Sleep(50 * time.Second)
			dueFails.Store(true)
			time.Sleep(10 * time.Second)
		}
		w.settle()
		w.exact("a", id, []int64{due}, 0)
	})
}

// The auditor puts back what the warm tier has lost, and counts it.
func TestAuditorRepairs(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		due := w.now() + 12*60_000
		id := w.make(timer("a", at(due)))
		time.Sleep(time.Minute)
		w.mu.Lock()
		w.lost[id] = true
		w.mu.Unlock()
		time.Sleep(6 * time.Minute)
		w.mu.Lock()
		lost := w.lost[id]
		w.mu.Unlock()
		if n := w.metric("xtimer_audit_violations_total"); n != 1 || lost {
			t.Errorf("%v violations counted, want 1; still lost: %v", n, lost)
		}
		time.Sleep(6 * time.Minute)
		w.settle()
		w.exact("a", id, []int64{due}, 0)
	})
}
