package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine/flow"
)

var inLine = flow.Rule{Limit: &flow.Limit{Concurrency: 1, HoldTask: true}}

// lineModel drives the lanes of one key with an order, to a target each: what comes due in a lane
// is in its queue, or, behind a row, a row that is read later.
type lineModel struct {
	*rapid.T
	q       *Queue[int]
	lanes   []*Lane[int]
	rows    [][]*Item[int]
	marks   []*Mark[int]
	paused  []bool
	waiting []*Item[int]
	runs    []run[int]
	begun   []*Item[int] // of runs
	kept    []*Item[int] // whose calls have ended, and which wait for another
	ordered bool
	known   int64
	due     int64
	values  map[int]*Item[int]
}

func newLineModel(t *rapid.T) *lineModel {
	m := &lineModel{T: t, q: New(Config[int]{Places: 100, PerApp: 100, PerTarget: rapid.SampledFrom([]int{1, 100}).Draw(t, "per target")}), known: None, due: 1000, values: map[int]*Item[int]{}, ordered: true}
	m.q.closed, m.q.armed = true, 1 // no worker takes an item, no timer fires
	m.q.SetRule(flowName("a", "k"), &inLine)
	for i := range 4 {
		l := m.q.Lane("a", fmt.Sprintf("http://t%d:1", i), "k")
		m.lanes, m.rows, m.marks, m.paused = append(m.lanes, l), append(m.rows, nil), append(m.marks, m.q.Mark(l, None)), append(m.paused, false)
	}
	return m
}

func (m *lineModel) lane() int { return rapid.IntRange(0, len(m.lanes)-1).Draw(m.T, "lane") }

func (m *lineModel) come() {
	i := m.lane()
	m.due += int64(rapid.IntRange(0, 3).Draw(m.T, "later"))
	it := &Item[int]{Value: len(m.values), Lane: m.lanes[i], Priority: uint8(rapid.IntRange(0, 9).Draw(m.T, "priority")), Ready: m.due + 77, Due: m.due}
	m.values[it.Value] = it
	if len(m.rows[i]) > 0 || rapid.IntRange(0, 3).Draw(m.T, "spills") == 0 {
		m.rows[i] = append(m.rows[i], it)
		m.mark(i)
		return
	}
	m.push(it)
}

func (m *lineModel) push(it *Item[int]) {
	m.waiting = append(m.waiting, it)
	m.q.Push(it)
}

func (m *lineModel) mark(i int) {
	at := int64(None)
	if len(m.rows[i]) > 0 {
		at = m.rows[i][0].Due
	}
	m.q.Move(m.marks[i], at)
}

// other has an item come that names no key, for the target of a lane.
func (m *lineModel) other() {
	it := &Item[int]{Value: len(m.values), Lane: m.q.Lane("a", m.lanes[m.lane()].target.name, ""), Priority: 5}
	m.values[it.Value] = it
	m.push(it)
}

// read reads some rows.
func (m *lineModel) read() {
	i := m.lane()
	n := min(len(m.rows[i]), rapid.IntRange(1, 5).Draw(m.T, "n"))
	for _, it := range m.rows[i][:n] {
		m.push(it)
	}
	m.rows[i] = m.rows[i][n:]
	m.mark(i)
}

// old has a row come that is due before those that are there.
func (m *lineModel) old() {
	i := m.lane()
	it := &Item[int]{Value: len(m.values), Lane: m.lanes[i], Priority: 5, Due: m.due - int64(rapid.IntRange(0, 100).Draw(m.T, "age"))}
	m.values[it.Value] = it
	m.rows[i] = append(m.rows[i], it)
	slices.SortStableFunc(m.rows[i], func(a, b *Item[int]) int { return int(a.Due - b.Due) })
	m.mark(i)
}

// end ends a call; its task is over, or is to be tried again.
func (m *lineModel) end() {
	if len(m.runs) == 0 {
		return
	}
	r, it := m.runs[0], m.begun[0]
	m.runs, m.begun = m.runs[1:], m.begun[1:]
	m.q.release(r, Result{Ended: Answered, Took: time.Millisecond}, m.q.now())
	if it.Keeps() && rapid.Bool().Draw(m.T, "again") {
		it.Again(it.Value, it.Lane, m.due, it.Priority)
		it.Due = m.due
		m.kept = append(m.kept, it)
	} else {
		m.q.Leave(it)
	}
}

func (m *lineModel) again() {
	for _, it := range m.kept {
		m.push(it)
	}
	m.kept = nil
}

func (m *lineModel) remove() {
	if n := len(m.waiting); n > 0 {
		i := rapid.IntRange(0, n-1).Draw(m.T, "item")
		m.q.Remove(m.waiting[i])
		m.q.Leave(m.waiting[i])
		m.waiting = slices.Delete(m.waiting, i, i+1)
	}
}

func (m *lineModel) pause() {
	i := m.lane()
	rule := &flow.Rule{Paused: flow.Never}
	if m.paused[i] = !m.paused[i]; !m.paused[i] {
		rule = nil
	}
	m.q.SetRule(flow.Name{Kind: flow.OfTarget, Key: m.lanes[i].target.key}, rule)
}

func (m *lineModel) know() {
	m.known = rapid.SampledFrom([]int64{0, m.due, m.due + 5, None, None}).Draw(m.T, "known")
	m.q.SetKnown(m.known)
}

// change has the key keep order, or not any more.
func (m *lineModel) change() {
	rule := inLine
	if m.ordered = !m.ordered; !m.ordered {
		rule.Limit = &flow.Limit{Concurrency: 3, HoldTask: true}
	}
	m.q.SetRule(flowName("a", "k"), &rule)
}

// next is the item that has to go next, nil for none; sure is false where a target is paused and has no room:
// its rows may count or not, until it has.
func (m *lineModel) next() (next *Item[int], sure bool) {
	sure = true
	outside, places := m.known-1, len(m.kept)
	for _, it := range m.begun {
		if slices.Contains(m.lanes, it.Lane) {
			places++
		}
	}
	for i := range m.lanes {
		waits := slices.ContainsFunc(m.waiting, func(it *Item[int]) bool { return it.Lane == m.lanes[i] })
		if m.paused[i] && waits && m.lanes[i].target.full() {
			sure = false
		}
		if len(m.rows[i]) > 0 && !(m.paused[i] && waits) {
			outside = min(outside, m.rows[i][0].Due)
		}
	}
	for _, it := range m.waiting {
		if it.Keeps() {
			places++
		}
		switch i := slices.Index(m.lanes, it.Lane); {
		case i < 0 || m.paused[i]:
		case it.Keeps() && it.Lane.target.full():
		case it.Keeps():
			return it, true
		case it.Due > outside:
		case next == nil || it.turn() < next.turn():
			next = it
		}
	}
	if places > 0 {
		return nil, true
	}
	return next, sure
}

func (m *lineModel) handOut() {
	q := m.q
	for {
		for !q.wakes.empty() && time.Duration(q.wakes.entries[0].order) <= q.now() { // as look does
			g := q.wakes.entries[0].member
			q.wakes.drop(&g.wake)
			g.goesOn = false
			q.admit(g, q.now())
		}
		var want *Item[int]
		sure := false
		if m.ordered {
			want, sure = m.next()
		}
		var keepers []*Item[int]
		for _, it := range m.waiting {
			if it.Keeps() {
				keepers = append(keepers, it)
			}
		}
		q.closed = false
		r := q.pick(q.now())
		q.closed = true
		if r.lane == nil {
			if !q.wakes.empty() && time.Duration(q.wakes.entries[0].order) <= q.now() {
				continue
			}
			if sure && want != nil && !want.Lane.target.full() {
				m.Fatalf("nothing goes; %d, due at %d, is next", want.Value, want.Due)
			}
			return
		}
		it := m.values[r.value]
		if sure && slices.Contains(m.lanes, it.Lane) && !slices.Contains(keepers, it) && (want == nil || slices.Contains(keepers, want) || it.turn() != want.turn() && !(m.q.perTarget == 1 && it.Due == want.Due)) {
			m.Fatalf("%d goes, due at %d; next is %+v", it.Value, it.Due, want)
		}
		m.waiting = slices.DeleteFunc(m.waiting, func(x *Item[int]) bool { return x == it })
		m.runs, m.begun = append(m.runs, r), append(m.begun, it)
	}
}

// Whatever comes, is read, paused and tried again: the items of a key with an order are handed
// out in that order, none before an older row, and none waits that may go.
func TestOrderModel(t *testing.T) {
	for range 8 {
		rapid.Check(t, orderModel)
	}
}

func orderModel(t *rapid.T) {
	m := newLineModel(t)
	step := func(f func()) func(*rapid.T) {
		return func(t *rapid.T) {
			m.T = t
			f()
			m.handOut()
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"come": step(m.come), "come2": step(m.come), "come3": step(m.come), "read": step(m.read), "read2": step(m.read), "old": step(m.old), "other": step(m.other),
		"end": step(m.end), "end2": step(m.end), "again": step(m.again), "remove": step(m.remove), "pause": step(m.pause), "know": step(m.know),
		"change": step(m.change),
	})
	m.T = t
	if !m.ordered {
		m.change()
	}
	m.q.SetKnown(None)
	m.known = None
	for i := range m.lanes { // all of it goes in the end
		if m.paused[i] {
			m.q.SetRule(flow.Name{Kind: flow.OfTarget, Key: m.lanes[i].target.key}, nil)
			m.paused[i] = false
		}
		for _, it := range m.rows[i] {
			m.push(it)
		}
		m.rows[i] = nil
		m.mark(i)
	}
	for m.again(); len(m.waiting)+len(m.runs) > 0; m.again() {
		m.handOut()
		if len(m.runs) == 0 {
			t.Fatalf("%d items wait, and none goes", len(m.waiting))
		}
		m.q.release(m.runs[0], Result{Ended: Answered, Took: time.Millisecond}, m.q.now())
		m.q.Leave(m.begun[0])
		m.runs, m.begun = m.runs[1:], m.begun[1:]
	}
}
