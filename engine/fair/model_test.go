package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model drives a queue without workers, by a clock of its own, and holds each step
// against rules that are computed anew from what was pushed and what runs.
type model struct {
	*rapid.T
	q      *Queue[int]
	now    time.Duration
	items  []*Item[int] // all that wait, in the order in which they came
	runs   []run[int]
	pushed int
}

func (m *model) lane() *Lane[int] {
	return m.q.Lane(fmt.Sprint("app", rapid.IntRange(0, 3).Draw(m.T, "app")), fmt.Sprint("t", rapid.IntRange(0, 5).Draw(m.T, "target")), "")
}

func (m *model) push() {
	l := m.lane()
	for range rapid.IntRange(1, 30).Draw(m.T, "n") {
		m.pushed++
		it := &Item[int]{Value: m.pushed, Lane: l, Priority: uint8(rapid.IntRange(3, 6).Draw(m.T, "priority")), Ready: m.now.Milliseconds()}
		m.items = append(m.items, it)
		m.q.waiting++
		if l.push(it) {
			m.q.place(l, m.now)
		}
	}
}

func (m *model) remove() {
	if len(m.items) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.items)-1).Draw(m.T, "item")
	m.q.waiting--
	l := m.items[i].Lane
	l.remove(m.items[i])
	m.q.place(l, m.now)
	m.items = slices.Delete(m.items, i, i+1)
}

func (m *model) end() {
	for range min(len(m.runs), rapid.IntRange(1, 20).Draw(m.T, "n")) {
		i := rapid.IntRange(0, len(m.runs)-1).Draw(m.T, "run")
		ended := rapid.SampledFrom([]Ended{Answered, Answered, Answered, Unanswered, NotMade}).Draw(m.T, "ended")
		m.q.release(m.runs[i], Result{Ended: ended, Took: m.now - m.runs[i].began}, m.now)
		m.runs = slices.Delete(m.runs, i, i+1)
	}
}

func (m *model) pass() {
	m.now += time.Duration(rapid.IntRange(1, 3000).Draw(m.T, "ms")) * time.Millisecond
}

func (m *model) resize() { m.q.places = rapid.IntRange(1, 200).Draw(m.T, "places") }

// handOut takes all that may run, and checks each.
func (m *model) handOut() {
	for {
		m.settle()
		least, ok := m.least()
		r := m.q.pick(m.now)
		if r.lane == nil {
			if ok {
				m.Fatalf("nobody gets a place, but %v of cost %v might", least.name, m.cost(least))
			}
			return
		}
		m.checkItem(r)
		m.runs = append(m.runs, r)
		m.checkCounts()
	}
}

// checkItem: of its lane, no item of the priority came before it, and none of
// another ranks higher.
func (m *model) checkItem(r run[int]) {
	i := slices.IndexFunc(m.items, func(it *Item[int]) bool { return it.Value == r.value })
	it := m.items[i]
	for j, other := range m.items {
		mine, theirs := it.Ready-int64(it.Priority)*ageing, other.Ready-int64(other.Priority)*ageing
		if other.Lane == r.lane && j != i && (theirs < mine || theirs == mine && other.Priority == it.Priority && j < i) {
			m.Fatalf("item %d went before %d", it.Value, other.Value)
		}
	}
	m.items = slices.Delete(m.items, i, i+1)
}

func (m *model) in(f func(r run[int]) bool) (n int) {
	for _, r := range m.runs {
		if f(r) {
			n++
		}
	}
	return n
}

func (m *model) cost(l *Lane[int]) int {
	kind := l.kind(m.now)
	return m.in(func(r run[int]) bool { return r.pool == kind && r.lane.app == l.app }) +
		m.in(func(r run[int]) bool { return r.lane == l })
}

// least is a lane that may have a place by the rules.
func (m *model) least() (l *Lane[int], ok bool) {
	free := m.q.places - len(m.runs)
	for _, l := range m.q.lanes {
		waits := slices.ContainsFunc(m.items, func(it *Item[int]) bool { return it.Lane == l })
		room := m.q.cfg.PerApp - m.in(func(r run[int]) bool { return r.lane.app == l.app })
		if !waits || free <= 0 || room <= 0 || m.in(func(r run[int]) bool { return r.lane.target == l.target }) >= l.target.most {
			continue
		}
		cost, own := m.cost(l), m.in(func(r run[int]) bool { return r.lane == l })
		var fits bool
		switch l.kind(m.now) {
		case first:
			fits = cost < firstCost*free
		case answering:
			fits = cost < answeringCost*(free-m.q.places/kept) && own < answeringCost*(room-m.q.cfg.PerApp/kept)
		case silent:
			fits = cost+m.in(func(r run[int]) bool { return r.pool == silent }) < free && cost < room
		}
		if fits {
			return l, true
		}
	}
	return nil, false
}

func (m *model) checkCounts() {
	q := m.q
	if q.waiting != len(m.items) || q.calls != len(m.runs) {
		m.Fatalf("%d wait and %d run, not %d and %d", q.waiting, q.calls, len(m.items), len(m.runs))
	}
	for _, l := range q.lanes {
		if n := m.in(func(r run[int]) bool { return r.lane == l }); l.calls != n {
			m.Fatalf("%v: %d calls, not %d", l.name, l.calls, n)
		}
		if l.parked && !l.target.full() && !l.target.hungry {
			m.Fatalf("%v waits for a target with room", l.name)
		}
		if n := m.in(func(r run[int]) bool { return r.lane.target == l.target }); l.target.calls != n || n > q.cfg.PerTarget {
			m.Fatalf("%v: its target has %d calls, not %d", l.name, l.target.calls, n)
		}
		if n := m.in(func(r run[int]) bool { return r.lane.app == l.app }); l.app.calls != n || n > q.cfg.PerApp {
			m.Fatalf("%v: its app has %d calls, not %d", l.name, l.app.calls, n)
		}
	}
	limited := 0
	for _, t := range q.targets {
		if t.limited >= 0 {
			limited++
		}
		if waits := slices.ContainsFunc(t.lanes, func(l *Lane[int]) bool { return l.parked }); waits && t.limited < 0 {
			m.Fatalf("%s makes lanes wait, and is not listed", t.name)
		}
	}
	if limited != len(q.limited) {
		m.Fatalf("%d are limited, %d listed", limited, len(q.limited))
	}
}

// Whatever comes and ends in whatever order: no bound is passed, no lane waits that
// may have a place, items go in their order, and the counts are right.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{T: t}
		m.q = New(Config[int]{
			Places:    rapid.IntRange(1, 200).Draw(t, "places"),
			PerApp:    rapid.IntRange(1, 200).Draw(t, "perApp"),
			PerTarget: rapid.IntRange(1, 200).Draw(t, "perTarget"),
		})
		step := func(f func()) func(*rapid.T) {
			return func(t *rapid.T) {
				m.T = t
				f()
				m.checkCounts()
				m.handOut()
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": step(m.push), "push2": step(m.push), "end": step(m.end), "end2": step(m.end), "remove": step(m.remove),
			"pass": step(m.pass), "resize": step(m.resize),
		})
	})
}

// settle moves the lanes that stand in the pool of some time ago, as pick does with
// those it comes by.
func (m *model) settle() {
	for _, l := range m.q.lanes {
		if l.place >= 0 && l.pool != l.kind(m.now) {
			m.q.place(l, m.now)
		}
	}
}
