package scheduler_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// gaps are the times between calls, in ms.
func gaps(cs []call) (ms []int64) {
	for i := 1; i < len(cs); i++ {
		ms = append(ms, cs[i].at-cs[i-1].ended)
	}
	return ms
}

func TestRetry(t *testing.T) {
	plain := func(r engine.Retry) func(*engine.Definition) {
		return func(d *engine.Definition) { d.Retry = r }
	}
	const s, m = time.Second, time.Minute
	for _, x := range []struct {
		name    string
		retry   engine.Retry
		replies []reply
		gaps    []int64
		want    string
	}{
		{"backoff", engine.Retry{MaxAttempts: 5, Backoff: s, Multiplier: 4, MaxBackoff: 20 * s, MaxAge: 24 * time.Hour}, []reply{fail, timedOut, fail, fail, ok}, []int64{1000, 4000, 16000, 20000}, "succeeded"},
		{"dead by attempts", engine.Retry{MaxAttempts: 3, Backoff: s, Multiplier: 1, MaxBackoff: s, MaxAge: 24 * time.Hour}, []reply{fail}, []int64{1000, 1000}, "dead max_attempts"},
		{"dead by age", engine.Retry{MaxAttempts: 100, Backoff: 10 * s, Multiplier: 1, MaxBackoff: 10 * s, MaxAge: 30 * s}, []reply{fail}, []int64{10_000, 10_000, 10_000}, "dead max_age"},
		{"rejected is final", engine.Retry{MaxAttempts: 5, Backoff: s, Multiplier: 1, MaxBackoff: s, MaxAge: 24 * time.Hour}, []reply{fail, reject, ok}, []int64{1000}, "failed rejected"},
		{"a panic is one attempt", engine.Retry{MaxAttempts: 5, Backoff: s, Multiplier: 1, MaxBackoff: s, MaxAge: 24 * time.Hour}, []reply{{panic: true}, ok}, nil, "succeeded"},
		{"retry after", engine.Retry{MaxAttempts: 5, Backoff: s, Multiplier: 1, MaxBackoff: m, MaxAge: 24 * time.Hour}, []reply{{class: engine.ClassRetry, code: 429, retry: 30 * s}, {class: engine.ClassRetry, code: 503, retry: time.Hour}, {class: engine.ClassRetry, code: 503, retry: time.Millisecond}, ok}, []int64{30_000, 60_000, 1000}, "succeeded"},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				w.replies("a", x.replies...)
				id := w.make(timer("a", delay(s), plain(x.retry)))
				time.Sleep(2 * m)
				cs := w.of("a")
				if x.gaps != nil {
					equal(t, "waits", gaps(cs), x.gaps)
				}
				for i, c := range cs {
					if c.attempt != i+1 {
						t.Errorf("call %d is attempt %d", i+1, c.attempt)
					}
				}
				equal(t, "verdicts", w.verdicts(id, w.starts[0]), []string{"1s " + x.want})
				r := w.records(id)[0]
				if len(r.Attempts) != len(cs) {
					t.Errorf("the record has %d attempts, want %d", len(r.Attempts), len(cs))
				}
				if last := cs[len(cs)-1].ended; r.Ended != last { // it does not wait for an attempt that is not made
					t.Errorf("the task ended %d ms after its last attempt", r.Ended-last)
				}
			})
		})
	}
}

// Jitter spreads a wait by ± its share, not beyond max_backoff, and differently
// for each task; a crash does not change it.
func TestRetryJitter(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		r := engine.Retry{MaxAttempts: 2, Backoff: 100 * time.Second, Multiplier: 1, MaxBackoff: 110 * time.Second, Jitter: 0.2, MaxAge: time.Hour}
		for i := range 60 {
			name := fmt.Sprint(i)
			w.replies(name, fail, ok)
			w.make(timer(name, delay(time.Second), func(d *engine.Definition) { d.Retry = r }))
		}
		time.Sleep(30 * time.Second)
		w.crash(time.Second)
		time.Sleep(5 * time.Minute)
		seen := map[int64]bool{}
		low, high := int64(1e9), int64(0)
		for i := range 60 {
			cs := w.of(fmt.Sprint(i))
			if len(cs) != 2 {
				t.Fatalf("%d calls, want 2", len(cs))
			}
			g := gaps(cs)[0]
			seen[g], low, high = true, min(low, g), max(high, g)
		}
		if low < 80_000 || low > 85_000 || high > 110_000 || high < 108_000 || len(seen) < 40 {
			t.Errorf("waits from %d to %d ms, %d different ones", low, high, len(seen))
		}
	})
}

// A retry that is hours away waits in the cold tier and comes at its time, over a crash.
func TestFarRetry(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", fail, ok)
		from := w.now()
		id := w.make(timer("a", delay(time.Second), retry(3, 12*time.Minute, 1)))
		time.Sleep(time.Minute)
		if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Enabled {
			t.Errorf("while its retry waits the timer is %v, %v", v.Status, err)
		}
		time.Sleep(5 * time.Minute)
		w.crash(time.Minute)
		time.Sleep(6 * time.Minute)
		equal(t, "waits", gaps(w.of("a")), []int64{720_000})
		equal(t, "verdicts", w.verdicts(id, from), []string{"1s succeeded"})
		if v, err := w.Timer(t.Context(), id); err != nil || v.Status != engine.Finished {
			t.Errorf("after it the timer is %v, %v", v.Status, err)
		}
	})
}

// While memory is full what waits for its next attempt leaves it, and comes within a
// few minutes, over a crash as well.
func TestRetryWhileMemoryIsFull(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		var full atomic.Bool
		w.config.MemoryFull = func(int64) bool { return full.Load() }
		w.crash(time.Second) // with it
		const n = 100
		for i := range n {
			w.replies(fmt.Sprint(i), fail, fail, ok)
			w.make(timer(fmt.Sprint(i), delay(time.Second), retry(5, time.Second, 1)))
		}
		full.Store(true)
		time.Sleep(20 * time.Second)
		if n := w.open(); n > 0 {
			t.Errorf("%d tasks wait in memory", n)
		}
		time.Sleep(4 * time.Minute)
		full.Store(false)
		w.crash(time.Second)
		time.Sleep(4 * time.Minute)
		instants := map[int64]bool{}
		for i := range n {
			waits := gaps(w.of(fmt.Sprint(i)))
			if len(waits) != 2 || waits[0] < 60_000 || waits[0] > 200_000 || waits[1] > 200_000 {
				t.Fatalf("waits of %v", waits)
			}
			instants[waits[0]] = true
		}
		if len(instants) < n/2 {
			t.Errorf("they come at %d instants", len(instants))
		}
	})
}

// What may fail at once has room: a kilobyte is kept for each timer in the wheel.
func TestMemoryForAttempts(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.config.MemoryFull = func(more int64) bool { return more >= 10<<10 }
		w.crash(time.Second) // with it
		for i := range 20 {
			err := w.Create(t.Context(), timer(fmt.Sprint(i), delay(30*time.Second)), nil).Err
			if full := errors.Is(err, engine.ErrMemoryFull); full != (i >= 10) {
				t.Fatalf("timer %d: %v", i, err)
			}
		}
		time.Sleep(time.Minute) // the wheel is empty
		w.make(timer("again", delay(30*time.Second)))
	})
}

// A dead task is made due again by hand: same key, attempts go on, limits count anew.
func TestRedrive(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", fail, fail, fail, fail, ok)
		from := w.now()
		id := w.make(timer("a", delay(time.Second), retry(2, time.Second, 1)))
		time.Sleep(10 * time.Second)
		k := engine.Key{Timer: id, Due: from + 1000}
		if err := w.Redrive(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if r := w.record(k); r.Status != engine.Dead || len(r.Attempts) != 4 || r.Origin != engine.FromRedrive {
			t.Errorf("after the first redrive: %+v", r)
		}
		w.crash(time.Second)
		if err := w.Redrive(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		w.crash(0)
		w.settle()
		var ns []int
		for _, c := range w.of("a") {
			if c.key != k {
				t.Errorf("a call for %s", c.key)
			}
			ns = append(ns, c.attempt)
		}
		if len(ns) < 5 || ns[4] != 5 {
			t.Errorf("attempts %v", ns)
		}
		if r := w.record(k); r.Status != engine.Succeeded {
			t.Errorf("in the end: %+v", r)
		}
		if err := w.Redrive(t.Context(), k); code(err) != "not_retryable" {
			t.Errorf("a redrive of a success: %v", err)
		}
	})
}
