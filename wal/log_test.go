package wal

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// What was synced is replayed after a clean end, in order; so is the rest,
// which Run commits when it ends.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		j := start(t, quiet(fs))
		if n := j.Next(); n != 0 {
			t.Fatalf("a new journal begins at %d", n)
		}
		j.Begin(sample)
		j.sync(j.Finish([]byte("one")))
		j.Finish([]byte("two"))
		j.Begin(engine.Begun{Key: engine.Key{Timer: 1, Due: 5}})
		if j.Len() != 4 {
			t.Fatalf("len %d", j.Len())
		}
		j.end()

		j = start(t, quiet(fs))
		defer j.end()
		r := j.replay()
		if string(r.order) != "\x01\x02\x02\x01" || r.begun[0] != sample || string(r.finished[0]) != "one" || string(r.finished[1]) != "two" {
			t.Fatalf("replayed %+v", r)
		}
		if j.Len() != 4 || j.Next() != 4 {
			t.Fatalf("len %d, next %d", j.Len(), j.Next())
		}
	})
}

// Positions go on over restarts, whatever was forgotten.
func TestPositionsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		var want engine.Position
		for round := range 6 {
			j := start(t, quiet(fs))
			for range 5 {
				if p := j.Finish(nth(uint64(want))); p != want {
					t.Fatalf("round %d: position %d, want %d", round, p, want)
				}
				want++
			}
			if round%2 == 0 {
				j.sync(want - 1)
				if err := j.Forget(want, nil); err != nil {
					t.Fatal(err)
				}
				if round == 2 {
					time.Sleep(time.Second)
					if j.Len() != 0 {
						t.Fatalf("%d records are not forgotten", j.Len())
					}
				}
			}
			j.end()
		}
	})
}

// Forget drops whole groups that lie before the position, and nothing else.
func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		j := start(t, quiet(fs))
		for n := range uint64(9) {
			// Begins linger, so that the groups are 0-2, 3-5 and 6-8 for certain.
			if n%3 < 2 {
				j.Begin(sample)
				continue
			}
			j.Finish(nth(n))
			j.sync(engine.Position(n))
		}
		for _, c := range []struct{ forget, len int }{{0, 9}, {2, 9}, {3, 6}, {5, 6}, {1, 6}, {7, 3}, {99, 0}} {
			if err := j.Forget(engine.Position(c.forget), nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			if n := j.Len(); n != int64(c.len) {
				t.Errorf("after Forget(%d): %d records are left, want %d", c.forget, n, c.len)
			}
		}
		j.Finish(nth(9))
		j.end()
		j = start(t, quiet(fs))
		defer j.end()
		r := j.replay()
		if next, err := r.inOrder(9); err != nil || next != 10 {
			t.Fatalf("replayed up to %d: %v", next, err)
		}
	})
}

// Forget of what is not durable yet takes effect once it is.
func TestForgetAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := start(t, quiet(vfs.NewMem()))
		defer j.end()
		j.Finish(nth(0))
		if err := j.Forget(1, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if j.Len() != 0 {
			t.Fatalf("%d records are left", j.Len())
		}
	})
}

// A waiter gets the disk at once; results wait for the spacing at most, Begins
// linger, and an idle journal does nothing.
func TestWhenItCommits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := start(t, quiet(vfs.NewMem()))
		defer j.end()
		idle := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		idle(time.Hour)
		base := j.commits()
		took := func(what string, want time.Duration, pos engine.Position) {
			t.Helper()
			at := time.Now()
			for j.durable.Load() <= uint64(pos) {
				idle(100 * time.Microsecond)
			}
			if d := time.Since(at); d > want || d < want-time.Millisecond {
				t.Errorf("%s was durable after %s, want %s", what, d, want)
			}
		}
		took("a lone result", 100*time.Microsecond, j.Finish(nth(0)))
		took("a second one", 10*time.Millisecond, j.Finish(nth(1)))
		idle(time.Second)
		took("a lone Begin", 20*time.Millisecond, j.Begin(sample))
		at := time.Now()
		j.Finish(nth(2))
		j.sync(j.Begin(sample))
		if d := time.Since(at); d != 0 {
			t.Errorf("Sync took %s", d)
		}
		idle(time.Second)
		p := j.Begin(sample)
		idle(time.Millisecond) // the committer sleeps until the Begin has lingered
		j.sync(p)
		if d := time.Since(at); d != time.Second+time.Millisecond {
			t.Errorf("Sync of a lingering Begin took %s", d-time.Second-time.Millisecond)
		}
		idle(time.Hour)
		if n := j.commits() - base; n != 5 {
			t.Errorf("%d commits, want 5", n)
		}
	})
}

// Many writers at once: every position is given once, and what each synced is
// there.
func TestStress(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, quiet(fs))
	const writers, each = 16, 300
	var seen [writers * each]bool
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				p := j.Finish(nth(uint64(w*each + i)))
				mu.Lock()
				if seen[p] {
					t.Errorf("position %d was given twice", p)
				}
				seen[p] = true
				mu.Unlock()
				switch i % 10 {
				case 3:
					j.sync(p)
				case 5:
					_, _ = j.Unsynced()
				case 7:
					_ = j.Len() + int64(j.Next())
				}
			}
		})
	}
	wg.Wait()
	j.end()
	j = start(t, quiet(fs))
	defer j.end()
	if r := j.replay(); len(r.finished) != writers*each {
		t.Fatalf("%d records", len(r.finished))
	}
}

// The steady path allocates nothing.
func TestAllocs(t *testing.T) {
	l := New(quiet(vfs.NewMem()))
	l.pending.maxGroup = 1 << 20
	task := make([]byte, 200)
	round := func() {
		for range 100 {
			l.Begin(sample)
			l.Finish(task)
		}
		l.pending.release(l.pending.take(make([]*group, 0, 8), 1<<20))
	}
	round()
	// One is the slice above. What else allocates in this process counts, too: the
	// least of some tries is ours.
	least := math.Inf(1)
	for range 20 {
		least = min(least, testing.AllocsPerRun(20, round))
	}
	if least > 1 {
		t.Errorf("%v allocations for 200 records", least)
	}
}

// After its end a journal says so; it does not hang and does not panic.
func TestAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := start(t, quiet(vfs.NewMem()))
		j.Finish(nth(0))
		j.stop()
		if err := <-j.ran; err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(t.Context(), 0); err != nil {
			t.Errorf("what was committed at the end: %v", err)
		}
		if err := j.Sync(t.Context(), j.Finish(nth(1))); !errors.Is(err, ErrEnded) {
			t.Errorf("Sync after the end: %v", err)
		}
		if err := j.Forget(1, nil); !errors.Is(err, ErrEnded) {
			t.Errorf("Forget after the end: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
	})
}

// A journal that was closed, before it ran or after, is opened again with all
// that it has, and goes on: a start whose other parts were away tries again.
func TestReopen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := start(t, quiet(vfs.NewMem()))
		j.sync(j.Finish(nth(0)))
		j.Finish(nth(1))
		for round := range uint64(3) {
			j.end()
			j.Finish(nth(99)) // not kept: it came after the end
			if err := errors.Join(j.Open(t.Context()), j.Close(), j.Open(t.Context())); err != nil {
				t.Fatal(err)
			}
			r := j.replay()
			if next, err := r.inOrder(0); err != nil || next != 2+round {
				t.Fatalf("round %d: replayed up to %d: %v", round, next, err)
			}
			j.run()
			if p := j.Finish(nth(2 + round)); p != engine.Position(2+round) {
				t.Fatalf("position %d", p)
			}
			j.sync(engine.Position(2 + round))
		}
		j.end()
	})
}

// Sync gives up when its context ends, and refuses what nobody will write.
func TestSyncGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(quiet(vfs.NewMem()))
		if err := l.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Sync(ctx, l.Finish(nth(0))); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if err := l.Sync(ctx, 1); err == nil || !strings.Contains(err.Error(), "BUG") {
			t.Errorf("%v", err)
		}
		if n, age := l.Unsynced(); n != 1 || age != time.Second {
			t.Errorf("%d unsynced for %s", n, age)
		}
	})
}

// Records larger than a group, and more of them than a commit takes, arrive whole.
func TestLargeRecords(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, quiet(fs))
	sizes := []int{0, 1, 63 << 10, 64 << 10, 65 << 10, 300 << 10, 1 << 20, 5}
	for _, n := range sizes {
		j.Finish(make([]byte, n))
	}
	j.end()
	j = start(t, quiet(fs))
	defer j.end()
	for i, b := range j.replay().finished {
		if len(b) != sizes[i] {
			t.Errorf("record %d has %d bytes, want %d", i, len(b), sizes[i])
		}
	}
}
