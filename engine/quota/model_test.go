package quota

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"pgregory.net/rapid"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/object"
	"xtimer/engine/resident"
)

const app = "a"

// store has the timers of an app, and the clock and the shards of a node.
type store struct {
	mu     sync.Mutex
	timers []*engine.Timer // by id; nil: there is none
	clock  int64           // Unix ms
	owned  engine.Set
	now    *engine.Set // owned, as it was asked for last
}

// book is a Book of a process that has just started.
func (s *store) book() *Book {
	return New(Config{
		Set: object.New(nil, time.Now, slog.Default()), Queue: fair.New(fair.Config[*resident.Task]{}), Metrics: metrics.NewSet(), Log: slog.Default(),
		Now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return time.UnixMilli(s.clock)
		},
		Owned: func() *engine.Set {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.now == nil || *s.now != s.owned {
				s.now = new(engine.Set)
				*s.now = s.owned
			}
			return s.now
		},
		Timers: s.list,
	})
}

func (s *store) list(_ context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := len(after) // a cursor of so many bytes
	to := min(from+limit, len(s.timers))
	for _, t := range s.timers[from:to] {
		if t != nil && t.App == f.App {
			ts = append(ts, t)
		}
	}
	if to < len(s.timers) {
		next = string(make([]byte, to))
	}
	return ts, next, nil
}

// has counts what the app has in the shards of the node. Mu is held.
func (s *store) has() (sum Size) {
	for _, t := range s.timers {
		if t != nil && s.owned.Has(t.ID.Shard()) {
			sum = sum.plus(s.size(t))
		}
	}
	return sum
}

// size is what a timer counts for.
func (s *store) size(t *engine.Timer) Size {
	if t == nil || t.Status == engine.Finished || t.Status == engine.Enabled && t.LastDue != 0 && t.LastDue/minute < s.clock/minute {
		return Size{}
	}
	return Size{1, int64(len(t.Callback.Body))}
}

func limit(b *Book, l Limits, started bool) {
	if l == (Limits{}) {
		b.put(app, nil, started)
		return
	}
	b.put(app, &engine.Object{ObjectKey: Key(app), Body: l.Body()}, started)
}

// model makes changes of the timers of an app, some at once, and holds what the quota allows and what
// it counts against a count of all timers.
type model struct {
	*rapid.T
	store
	b      *Book
	limits Limits
	open   []change // under way
}

type change struct {
	i     int // of the timer
	now   *engine.Timer
	under *Changes
	room  Room
	takes Size
}

// timer draws what becomes of timer i; nil: it is deleted.
func (m *model) timer(i int) *engine.Timer {
	t := &engine.Timer{ID: engine.TimerID(i), Definition: engine.Definition{App: app}, Status: engine.Enabled}
	t.Callback.Body = bytes.Repeat([]byte("x"), rapid.IntRange(0, 3).Draw(m.T, "bytes"))
	switch rapid.IntRange(0, 4).Draw(m.T, "what") {
	case 0:
		return nil
	case 1:
		t.Status = engine.Disabled
	case 2:
		t.LastDue = m.clock + rapid.Int64Range(-minute, 3*minute).Draw(m.T, "last due")
	}
	return t
}

func (m *model) begin(*rapid.T) {
	i := rapid.IntRange(0, len(m.timers)-1).Draw(m.T, "timer")
	if slices.ContainsFunc(m.open, func(c change) bool { return c.i == i }) || !m.owned.Has(engine.TimerID(i).Shard()) {
		m.Skip("one change of a timer at a time, and none of another node's")
	}
	c := change{i: i, now: m.timer(i)}
	was := m.timers[i]
	if was == nil && c.now == nil {
		m.Skip("there is nothing to delete")
	}
	ctx, cancel := context.WithCancel(m.Context())
	defer cancel()
	if len(m.open) > 0 {
		cancel() // it would wait for those that are under way
	}
	var err error
	if c.under, err = m.b.Begin(ctx, app); err != nil {
		if len(m.open) == 0 {
			m.Fatal(err)
		}
		return
	}
	if slices.ContainsFunc(m.open, func(c change) bool { return c.room.stock == nil }) && m.limited() {
		m.Fatal("the timers were counted beside a change that the count does not know of")
	}
	has, grows := m.has(), m.size(was).growth(m.size(c.now))
	for _, o := range m.open {
		has = has.plus(o.takes)
	}
	over := m.limits.Timers > 0 && grows.Timers > 0 && has.Timers+grows.Timers > int64(m.limits.Timers) ||
		m.limits.Bytes > 0 && grows.Bytes > 0 && has.Bytes+grows.Bytes > int64(m.limits.Bytes)
	if was != nil && c.now != nil && c.now.Status == engine.Disabled && len(c.now.Callback.Body) <= len(was.Callback.Body) {
		over = false
	}
	c.room, err = c.under.Take(was, c.now, nil)
	if (err != nil) != over {
		m.Fatalf("%v; the app has %+v, the change adds %+v, the quota is %+v", err, has, grows, m.limits)
	}
	if err != nil {
		c.under.End()
		return
	}
	if c.room.stock != nil {
		c.takes = grows
	}
	m.open = append(m.open, c)
}

func (m *model) end(*rapid.T) {
	if len(m.open) == 0 {
		m.Skip("no change is under way")
	}
	n := rapid.IntRange(0, len(m.open)-1).Draw(m.T, "change")
	c, made := m.open[n], rapid.Bool().Draw(m.T, "made")
	m.open = slices.Delete(m.open, n, n+1)
	if made {
		m.timers[c.i] = c.now
	}
	c.room.End(made)
	c.under.End()
}

// age has time pass.
func (m *model) age(*rapid.T) { m.clock += rapid.Int64Range(0, 2*minute).Draw(m.T, "ms") }

func (m *model) limit(*rapid.T) {
	m.limits = Limits{Timers: rapid.SampledFrom([]int{0, 0, 1, 3, 6}).Draw(m.T, "timers"), Bytes: rapid.SampledFrom([]int{0, 0, 1, 4, 8}).Draw(m.T, "quota of bytes"), InFlight: rapid.IntRange(0, 1).Draw(m.T, "in flight")}
	limit(m.b, m.limits, false)
}

func (m *model) limited() bool { return m.limits.Timers > 0 || m.limits.Bytes > 0 }

// endAll ends the changes that are under way, before the process or the shards of the node change.
func (m *model) endAll() {
	for len(m.open) > 0 {
		m.end(nil)
	}
}

func (m *model) restart(*rapid.T) {
	m.endAll()
	m.b = m.book()
	limit(m.b, m.limits, true)
}

func (m *model) move(*rapid.T) {
	m.endAll()
	m.owned = engine.Set{}
	for i := range m.timers {
		if rapid.IntRange(0, 3).Draw(m.T, "owned") > 0 {
			m.owned = m.owned.Union(engine.SetOf(engine.TimerID(i).Shard()))
		}
	}
}

// check compares the count of the book with the timers, when nothing is under way.
func (m *model) check(*rapid.T) {
	if len(m.open) > 0 {
		return
	}
	u := m.b.Use(m.Context(), app)
	if u.HasStock != m.limited() {
		m.Fatalf("%+v with %+v", u, m.limits)
	}
	if u.HasStock && u.Stock != m.has() {
		m.Fatalf("%+v are counted, the app has %+v", u.Stock, m.has())
	}
}

// Whatever is made, changed and deleted, in time or when the process starts anew or has other shards: a
// change is refused if, and only if, the app would have more than its quota, and the count is exact.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{T: t, store: store{timers: make([]*engine.Timer, 12), clock: 1_000 * minute, owned: engine.AllShards}}
		m.b = m.book()
		t.Repeat(map[string]func(*rapid.T){
			"begin": m.begin, "begin another": m.begin, "begin a third": m.begin, "end": m.end, "end another": m.end,
			"age": m.age, "limit": m.limit, "restart": m.restart, "move": m.move, "": m.check,
		})
	})
}

// Many create, replace and delete at once, while the count begins anew again and again: the app never has
// more timers than its quota allows, and the count is exact at the end.
func TestChangesRaceWithCounts(t *testing.T) {
	const most, workers, each = 20, 8, 10 // of 80 timers
	s := &store{timers: make([]*engine.Timer, workers*each), owned: engine.AllShards}
	b := s.book()
	limit(b, Limits{Timers: most}, true)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(w)))
			for range 300 {
				i := w*each + rnd.IntN(each) // a timer is changed by one at a time
				under, err := b.Begin(t.Context(), app)
				if err != nil {
					t.Error(err)
					return
				}
				s.mu.Lock()
				was := s.timers[i]
				s.mu.Unlock()
				now := &engine.Timer{ID: engine.TimerID(i), Definition: engine.Definition{App: app}, Status: engine.Enabled}
				if was != nil && rnd.IntN(2) == 0 {
					now = nil
				}
				if room, err := under.Take(was, now, nil); err == nil {
					made := rnd.IntN(4) > 0
					s.mu.Lock()
					if made {
						s.timers[i] = now
					}
					if n := s.has().Timers; n > most {
						t.Errorf("%d timers", n)
					}
					s.mu.Unlock()
					room.End(made)
				}
				under.End()
			}
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	for n := 0; ; n++ {
		select {
		case <-done:
			u := b.Use(t.Context(), app)
			if s.mu.Lock(); u.Stock != s.has() || n == 0 {
				t.Errorf("%+v are counted after %d counts, the app has %+v", u.Stock, n, s.has())
			}
			s.mu.Unlock()
			return
		default:
			b.all()[app].stock.recount()
			b.Use(t.Context(), app)
		}
	}
}
