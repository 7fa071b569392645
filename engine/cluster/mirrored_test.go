package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// counted is a journal that only counts.
type counted struct {
	engine.Journal
	next engine.Position
}

func (j *counted) Finish([]byte) engine.Position {
	j.next++
	return j.next - 1
}

func (j *counted) Forget(engine.Position, *engine.Watermarks) error { return nil }

func (j *counted) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// glass is a mirror that may fail, or take its time.
type glass struct {
	*memory.Mirror
	mu      sync.Mutex // guards all below
	err     error
	lost    error // it does what it is told, and says this
	slow    time.Duration
	appends int
}

func (g *glass) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	g.mu.Lock()
	g.appends++
	slow, err, lost := g.slow, g.err, g.lost
	g.mu.Unlock()
	if slow > 0 {
		time.Sleep(slow)
	}
	if err != nil {
		return false, err
	}
	whole, err = g.Mirror.Append(ctx, life, groups, first, last)
	return whole, errors.Join(err, lost)
}

// be changes how it behaves, and returns how often Append was called.
func (g *glass) be(err, lost error, slow time.Duration) (appends int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.lost, g.slow = err, lost, slow
	return g.appends
}

// dues are the tasks in the mirror of life 7.
func (g *glass) dues(t *testing.T) (dues []int64) {
	t.Helper()
	err := g.Read(context.Background(), 7, func(b []byte) error {
		task, err := engine.DecodeTask(b)
		if err == nil {
			dues = append(dues, task.Key.Due)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dues
}

// reflect runs a journal with a mirror in a bubble.
func reflect(t *testing.T, script func(t *testing.T, m *Mirrored, g *glass, finish func(dues ...int64))) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{Mirror: memory.NewMirror()}
		m := NewMirrored(&counted{}, g, 7, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		defer func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}()
		script(t, m, g, func(dues ...int64) {
			for _, due := range dues {
				m.Finish(engine.EncodeTask(&engine.Task{Key: engine.Key{Timer: 1, Due: due}, Status: engine.Succeeded}))
			}
		})
	})
}

func (g *glass) want(t *testing.T, dues ...int64) {
	t.Helper()
	synctest.Wait()
	if got := g.dues(t); !slices.Equal(got, dues) {
		t.Errorf("the mirror has %d, want %d", got, dues)
	}
}

// What is finished is in the mirror 20 ms later, in one group, and goes when it is
// forgotten; while nothing happens nothing is done.
func TestFinishedIsMirrored(t *testing.T) {
	reflect(t, func(t *testing.T, m *Mirrored, g *glass, finish func(...int64)) {
		time.Sleep(time.Hour + time.Millisecond) // not at the instant of a look
		if n := g.be(nil, nil, 0); n > 0 {
			t.Errorf("%d appends of nothing", n)
		}
		finish(1, 2)
		time.Sleep(15 * time.Millisecond)
		finish(3)
		if lag := m.Lag(); lag != 15*time.Millisecond {
			t.Errorf("it lags %v", lag)
		}
		g.want(t)
		time.Sleep(5 * time.Millisecond)
		g.want(t, 1, 2, 3)
		finish(4)
		time.Sleep(20 * time.Millisecond)
		g.want(t, 1, 2, 3, 4)
		if n := g.be(nil, nil, 0); n != 2 || m.Lag() != 0 {
			t.Errorf("%d appends, it lags %v", n, m.Lag())
		}
		for _, f := range []struct {
			upTo engine.Position
			left []int64
		}{{2, []int64{1, 2, 3, 4}}, {3, []int64{4}}, {4, nil}} {
			if err := m.Forget(f.upTo, nil); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			g.want(t, f.left...)
		}
		finish(5)
		if err := m.Forget(5, nil); err != nil { // before it is copied
			t.Fatal(err)
		}
		finish(6)
		time.Sleep(copyEvery)
		g.want(t, 5, 6)
		if n := g.be(nil, nil, 0); n != 5 {
			t.Errorf("%d appends", n)
		}
	})
}

// A mirror has no bodies of responses, and all else of a record.
func TestMirrorHasNoResponses(t *testing.T) {
	reflect(t, func(t *testing.T, m *Mirrored, g *glass, _ func(...int64)) {
		task := engine.Task{
			Key: engine.Key{Timer: 9, Due: 5}, App: "app", Status: engine.Dead, Reason: engine.ReasonAttempts,
			Attempts: []engine.Attempt{{N: 1, Code: 500, ErrorClass: "status", Response: []byte("no")}, {N: 2, Code: 503, ErrorClass: "status", Response: []byte("neither")}},
		}
		m.Finish(engine.EncodeTask(&task))
		time.Sleep(time.Second)
		task.Attempts[0].Response, task.Attempts[1].Response = nil, nil
		var got []byte
		if err := g.Read(t.Context(), 7, func(b []byte) error { got = b; return nil }); err != nil || !bytes.Equal(got, engine.EncodeTask(&task)) {
			t.Errorf("the mirror has %q, %v", got, err)
		}
	})
}

// A mirror that is away or slow holds nobody up, lags, and gets what is still of use when it
// is back, each task once.
func TestMirrorIsAway(t *testing.T) {
	for _, how := range []struct {
		name  string
		begin func(g *glass)
	}{
		{"refuses", func(g *glass) { g.be(engine.ErrUnavailable, nil, 0) }},
		{"answers get lost", func(g *glass) { g.be(nil, engine.ErrUnavailable, 0) }},
		{"slow", func(g *glass) { g.be(engine.ErrUnavailable, nil, time.Second) }},
	} {
		t.Run(how.name, func(t *testing.T) {
			reflect(t, func(t *testing.T, m *Mirrored, g *glass, finish func(...int64)) {
				finish(1)
				time.Sleep(time.Second)
				how.begin(g)
				began := time.Now()
				for due := int64(2); due < 300; due++ {
					finish(due)
					time.Sleep(100 * time.Millisecond)
				}
				if took := time.Since(began); took != 29_800*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if lag := m.Lag(); lag < 28*time.Second || lag > 30*time.Second {
					t.Errorf("it lags %v", lag)
				}
				if err := m.Forget(200, nil); err != nil {
					t.Fatal(err)
				}
				g.be(nil, nil, 0)
				time.Sleep(2 * time.Second)
				got := g.dues(t)
				if n := len(got); n < 99 || n > 110 || got[n-1] != 299 || !slices.IsSorted(got) || len(slices.Compact(got)) != n {
					t.Errorf("the mirror has %d", got)
				}
				if m.Lag() != 0 {
					t.Errorf("it lags %v", m.Lag())
				}
			})
		})
	}
}

// A mirror that has lost what was copied to it has all of it again within 1.5 s, whether anything is
// finished then or not. One that fails may have lost something as well.
func TestMirrorHasLost(t *testing.T) {
	reflect(t, func(t *testing.T, m *Mirrored, g *glass, finish func(...int64)) {
		lose := func() {
			if _, err := g.Mirror.Append(t.Context(), 7, nil, 1, 0); err != nil {
				t.Fatal(err)
			}
		}
		const more = time.Millisecond // than what is due at the same instant
		finish(1, 2)
		time.Sleep(copyEvery + more)
		finish(3)
		time.Sleep(copyEvery + more)
		g.want(t, 1, 2, 3)
		lose()
		time.Sleep(lookEvery + copyAgain + more)
		g.want(t, 1, 2, 3)
		lose()
		finish(4)
		time.Sleep(copyEvery + copyAgain + more)
		g.want(t, 1, 2, 3, 4)
		former := []engine.MirrorGroup{{N: 1}, {N: 2}, {N: 3}}
		if _, err := g.Mirror.Append(t.Context(), 7, former, 1, 3); err != nil { // as many as are to be there
			t.Fatal(err)
		}
		g.be(engine.ErrUnavailable, nil, 0)
		finish(5)
		time.Sleep(copyEvery + more)
		g.be(nil, nil, 0)
		time.Sleep(copyAgain)
		g.want(t, 1, 2, 3, 4, 5)
		if err := m.Forget(3, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(copyEvery + more)
		g.want(t, 4, 5)
		if _, err := g.Mirror.Append(t.Context(), 7, former, 1, 3); err != nil { // an older copy, with more groups than are to be there
			t.Fatal(err)
		}
		time.Sleep(lookEvery + copyAgain + more)
		g.want(t, 4, 5)
	})
}

// While nothing is settled the mirror keeps the newest groups, and no more than its bound.
func TestMirrorIsBounded(t *testing.T) {
	defer func(n int) { mirrorBytes = n }(mirrorBytes)
	size := len(engine.EncodeTask(&engine.Task{Key: engine.Key{Timer: 1, Due: 1000}, Status: engine.Succeeded}))
	mirrorBytes = 100 * size
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprint("away ", away), func(t *testing.T) {
			reflect(t, func(t *testing.T, m *Mirrored, g *glass, finish func(...int64)) {
				if away {
					g.be(engine.ErrUnavailable, nil, 0)
				}
				for due := range int64(1000) {
					finish(1000 + due)
					time.Sleep(10 * time.Millisecond)
				}
				g.be(nil, nil, 0)
				time.Sleep(time.Second)
				got := g.dues(t)
				if n := len(got); n < 50 || n > 100 || got[n-1] != 1999 || got[0] != 2000-int64(n) {
					t.Errorf("the mirror has %d", got)
				}
				m.mu.Lock()
				defer m.mu.Unlock()
				if m.bytes > mirrorBytes {
					t.Errorf("%d bytes wait, %d may", m.bytes, mirrorBytes)
				}
			})
		})
	}
}

// What was finished right before the end of a life is copied.
func TestMirrorAtTheEnd(t *testing.T) {
	var g *glass
	reflect(t, func(_ *testing.T, _ *Mirrored, of *glass, finish func(...int64)) {
		g = of
		finish(1)
	})
	if got := g.dues(t); !slices.Equal(got, []int64{1}) {
		t.Errorf("the mirror has %d", got)
	}
}
