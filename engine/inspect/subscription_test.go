package inspect

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
)

// shelf is a History in memory.
type shelf struct {
	tasks  map[engine.Key]*engine.Task
	memory map[engine.Key]bool // which of them are in memory still
	out    []int64
	since  int64
	slow   time.Duration // a page of history takes so long
	reads  int           // of one task
}

func (s *shelf) Task(_ context.Context, k engine.Key) (*engine.Task, error) {
	s.reads++
	if t := s.tasks[k]; t != nil {
		return t, nil
	}
	return nil, engine.ErrNotFound
}

func (s *shelf) EndedInMemory(give func(*engine.Task)) {
	for k := range s.memory {
		give(s.tasks[k])
	}
}

func (s *shelf) Stored(_ context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	time.Sleep(s.slow)
	for k, t := range s.tasks {
		if !s.memory[k] && f.Matches(t) && (before == engine.Key{} || k.Compare(before) < 0) {
			ts = append(ts, t)
		}
	}
	slices.SortFunc(ts, func(a, b *engine.Task) int { return b.Key.Compare(a.Key) })
	if len(ts) > limit {
		ts = ts[:limit]
		next = ts[limit-1].Key
	}
	return ts, next, nil
}

func (s *shelf) LeftOut(context.Context, int64, int64) ([]int64, error) { return s.out, nil }
func (s *shelf) Now() int64                                             { return time.Now().UnixMilli() }
func (s *shelf) KeptSince() int64                                       { return s.since }

// server is one life of a service whose history outlives it.
type server struct {
	*shelf
	*Subscribers
	ended int
}

func start(h *shelf) *server { return &server{shelf: h, Subscribers: NewSubscribers(h)} }

// end ends a task of an app now, that was due so long ago.
func (s *server) end(app string, ago time.Duration) *engine.Task {
	s.ended++
	now := time.Now().UnixMilli()
	t := &engine.Task{
		Key: engine.Key{Timer: engine.TimerID(len(s.tasks) + 1), Due: now - ago.Milliseconds()},
		App: app, Status: engine.Succeeded, Ended: now, Attempts: []engine.Attempt{{N: 1}, {N: 2}},
	}
	s.tasks[t.Key] = t
	s.Tell(t)
	return t
}

// reader is a client that is cut, and comes back.
type reader struct {
	t    *testing.T
	last *EventID
	seen map[engine.Key]int
	keys []engine.Key
	gaps []Gap
}

func (r *reader) subscribe(s *server, f engine.TaskFilter) (w *Subscription, cut func()) {
	ctx, cut := context.WithCancel(r.t.Context())
	w = s.Subscribe(ctx, f, r.last)
	at := w.Position()
	r.last = &at
	return w, cut
}

// read reads n events, or all there are.
func (r *reader) read(w *Subscription, n int) {
	r.t.Helper()
	for ; n != 0; n-- {
		e, ok, err := w.Next(r.t.Context())
		switch {
		case err != nil:
			r.t.Fatal(err)
		case !ok:
			at := w.Position()
			r.last = &at
			return
		case e.Task == nil:
			r.gaps = append(r.gaps, e.Gap)
		default:
			if e.ID != (EventID{e.Task.Ended, e.Task.Key}) || len(e.Task.Attempts) != 1 {
				r.t.Errorf("%v is the event of %+v", e.ID, e.Task)
			}
			r.last = &e.ID
			r.seen[e.Task.Key]++
			r.keys = append(r.keys, e.Task.Key)
		}
	}
}

func newShelf() *shelf {
	return &shelf{tasks: map[engine.Key]*engine.Task{}, memory: map[engine.Key]bool{}}
}

func newReader(t *testing.T) *reader { return &reader{t: t, seen: map[engine.Key]int{}} }

// A reader that is cut three times, also while the server restarts, has every task in the
// end, and without a restart each of them once, in order.
func TestCuts(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, r := start(newShelf()), newReader(t)
			w, cut := r.subscribe(s, engine.TaskFilter{})
			var want []engine.Key
			for i := range 1000 {
				if i%300 == 299 {
					r.read(w, 40)
					cut()
					if restarts {
						s = start(s.shelf)
					}
				}
				if i%300 == 50 && i > 300 {
					w, cut = r.subscribe(s, engine.TaskFilter{})
				}
				want = append(want, s.end("a", time.Duration(i%7)*time.Second).Key)
				time.Sleep(10 * time.Millisecond)
			}
			r.read(w, -1)
			cut()
			for _, k := range want {
				if n := r.seen[k]; n == 0 || n > 1 && !restarts {
					t.Errorf("%v was seen %d times", k, n)
				}
			}
			if !restarts && !slices.Equal(r.keys, want) {
				t.Error("they were not told in order")
			}
			if len(r.gaps) > 0 {
				t.Errorf("%v", r.gaps)
			}
			time.Sleep(linger + time.Second)
		})
	}
}

// What the log has lost is a gap for a reader that fell behind.
func TestFallenBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := start(newShelf()), newReader(t)
		w, cut := r.subscribe(s, engine.TaskFilter{})
		defer cut()
		const all = (maxChunks + 1) * chunkSize
		for range all + 1 {
			s.end("a", 0)
		}
		r.read(w, -1)
		if len(r.gaps) != 1 || r.gaps[0].Count != 2*chunkSize && r.gaps[0].Count != chunkSize || r.gaps[0].To <= r.gaps[0].From {
			t.Fatalf("%+v", r.gaps)
		}
		if n := len(r.keys) + int(r.gaps[0].Count); n != all+1 {
			t.Errorf("%d were told or told to be lost, of %d", n, all+1)
		}
	})
}

// After a restart history has what ended meanwhile; what it cannot have is a gap.
func TestGapsAfterARestart(t *testing.T) {
	second := time.Second.Milliseconds()
	for _, c := range []struct {
		name   string
		before func(s *server, now int64)
		want   []Gap // relative to now
		seen   int
	}{
		{"nothing is lost", func(*server, int64) {}, nil, 10},
		{"history is not kept for so long", func(s *server, now int64) { s.since = now - 5*second }, []Gap{{From: -12 * second, To: -5 * second}}, 10},
		{"minutes were left out", func(s *server, now int64) { s.out = []int64{now - 60*second, now} }, []Gap{{From: -60 * second, To: 60 * second}}, 10},
		{"history is too long", func(s *server, _ int64) { s.slow = replayTime/2 + 1 }, []Gap{{From: -12 * second, DueBefore: 1}}, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newShelf()
				for i := range 3 * replayPage { // of before, and due before
					k := engine.Key{Timer: engine.TimerID(1_000_000 + i), Due: time.Now().UnixMilli() - 100*second - int64(i)}
					h.tasks[k] = &engine.Task{Key: k, Status: engine.Succeeded, Ended: k.Due}
				}
				s, r := start(h), newReader(t)
				_, cut := r.subscribe(s, engine.TaskFilter{})
				cut()
				s = start(h)
				for i := range 10 {
					time.Sleep(time.Second)
					k := s.end("a", 0).Key
					h.memory[k] = i%2 == 0
				}
				now := time.Now().UnixMilli()
				c.before(s, now)
				w, cut := r.subscribe(s, engine.TaskFilter{})
				defer cut()
				r.read(w, -1)
				for i := range r.gaps {
					g := &r.gaps[i]
					g.From, g.To = g.From-now, max(g.To-now, -60*second)
					if g.DueBefore > 0 {
						if g.DueBefore > now-90*second {
							t.Errorf("only what was due at %d or later was looked at", g.DueBefore-now)
						}
						g.DueBefore = 1
					}
				}
				if !slices.Equal(r.gaps, c.want) || len(r.seen) != c.seen {
					t.Errorf("%d tasks and %+v", len(r.seen), r.gaps)
				}
				for k, n := range r.seen {
					if n != 1 {
						t.Errorf("%v was told %d times", k, n)
					}
				}
			})
		})
	}
}

// A task whose record is gone is a gap, one that was called again since is told when it
// has ended again, and an event of the future tells that the clock was set back.
func TestReplayedFromTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := start(newShelf()), newReader(t)
		_, cut := r.subscribe(s, engine.TaskFilter{})
		defer cut()
		first := *r.last
		gone, again, other := s.end("a", 0), s.end("a", 0), s.end("b", 0)
		for range recentTasks {
			time.Sleep(time.Millisecond)
			s.end("b", 0)
		}
		delete(s.tasks, gone.Key)
		redriven := *again
		redriven.Ended = time.Now().UnixMilli()
		s.tasks[again.Key] = &redriven
		s.Tell(&redriven)

		_, cut = r.subscribe(s, engine.TaskFilter{App: "a"})
		r.last = &first
		cut()
		w, cut := r.subscribe(s, engine.TaskFilter{App: "a"})
		defer cut()
		s.reads = 0
		r.read(w, -1)
		if len(r.gaps) != 1 || r.gaps[0] != (Gap{From: gone.Ended, To: gone.Ended + 1, Count: 1}) {
			t.Errorf("%+v", r.gaps)
		}
		if len(r.keys) != 1 || r.seen[again.Key] != 1 {
			t.Errorf("%v were told", r.seen)
		}
		if s.reads != 2 {
			t.Errorf("%d tasks were read; those of another app need not be", s.reads)
		}
		if s.end("b", 0); w.Position().Key == other.Key {
			t.Error("a reader of one app has a key of another")
		}
		r.read(w, -1)
		if p := w.Position(); p.Key != (engine.Key{}) {
			t.Errorf("a reader of app a is at %v", p)
		}

		now := time.Now().UnixMilli()
		s.since = now - 86_400_000
		r.last, r.gaps = &EventID{Ended: now + 3_600_000}, nil
		w, cut = r.subscribe(s, engine.TaskFilter{})
		defer cut()
		r.read(w, -1)
		if want := []Gap{{From: s.since, To: now + 3_600_000}}; !slices.Equal(r.gaps, want) {
			t.Errorf("%+v", r.gaps)
		}
	})
}

// A reader whose last event was told before the clock was set back has what ended since,
// while the log tells; else it hears of a gap that what ended since is in.
func TestClockSetBackBetween(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, r := start(newShelf()), newReader(t)
			_, cut := r.subscribe(s, engine.TaskFilter{})
			ahead := *s.end("a", 0)
			ahead.Key.Timer, ahead.Ended = 1000, ahead.Ended+3_600_000
			s.tasks[ahead.Key] = &ahead
			s.Tell(&ahead)
			r.last = &EventID{ahead.Ended, ahead.Key}
			cut()
			since := s.end("a", 0)
			if restarts {
				s = start(s.shelf)
			}
			time.Sleep(10 * time.Second)
			w, cut := r.subscribe(s, engine.TaskFilter{})
			defer cut()
			r.read(w, -1)
			missed := len(r.gaps) == 1 && r.gaps[0].From <= since.Ended && since.Ended < r.gaps[0].To
			if told := r.seen[since.Key] == 1; told == restarts || missed != restarts {
				t.Errorf("restarts %v: %v were told, and %+v", restarts, r.keys, r.gaps)
			}
		})
	}
}

// With nobody there the log goes, some minutes later, and a task that ends allocates nothing.
func TestNobodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := start(newShelf()), newReader(t)
		ended := s.end("a", 0)
		cost := func() float64 { return testing.AllocsPerRun(100, func() { s.Tell(ended) }) }
		if n := cost(); n != 0 {
			t.Errorf("it costs %v allocations", n)
		}
		_, cut := r.subscribe(s, engine.TaskFilter{})
		if cost() == 0 {
			t.Error("somebody watches, and nothing is told")
		}
		cut()
		time.Sleep(linger + time.Second)
		synctest.Wait()
		if n := cost(); n != 0 || s.log.chunks != nil {
			t.Errorf("when all have gone it costs %v allocations", n)
		}
	})
}

func TestEventID(t *testing.T) {
	for _, id := range []EventID{{}, {Ended: 1}, {1763658000250, engine.Key{Timer: 7, Due: 1763658000000}}} {
		if got, ok := ParseEventID(string(id.Append(nil))); !ok || got != id {
			t.Errorf("%v became %v", id, got)
		}
	}
	for _, s := range []string{"", "x", "-", "-1", "1-", "1-7", "1-7_0", "1_2", "99999999999999999999"} {
		if id, ok := ParseEventID(s); ok {
			t.Errorf("%q is %v", s, id)
		}
	}
}
