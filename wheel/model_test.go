package wheel

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestModel runs a wheel and a plain list of dues side by side, on the clock of a
// bubble: what is due fires exactly once, at its millisecond and not before, and
// Low, Len and Earliest say what the list says.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any // rapid's, which it must catch itself, on its own goroutine, to shrink it
		synctest.Test(t, func(*testing.T) {
			defer func() { failure = recover() }()
			runModel(rt)
		})
		if fmt.Sprintf("%T", failure) == "rapid.invalidData" {
			panic(failure) // on a line of its own: rapid tells failures by their line
		}
		if failure != nil {
			panic(failure)
		}
	})
}

type model struct {
	t       *rapid.T
	w       *Wheel[int]
	mu      sync.Mutex
	waiting map[int]int64 // id → due
	handles map[int]Handle
	fired   map[int]bool
	last    int64 // highest due fired
	crowd   int64 // the last due that was the earliest and had a full batch
	before  int64 // due of the last batch behind it, or the crowd
	spare   int   // values that may come before its next turn
	added   int
	lateAdd bool // an id was added behind last, so the next batches may go back
}

func runModel(rt *rapid.T) {
	m := &model{t: rt, waiting: map[int]int64{}, handles: map[int]Handle{}, fired: map[int]bool{}, last: minDue}
	time.Sleep(time.Duration(rapid.Int64Range(0, 1e6).Draw(rt, "phase")) * time.Microsecond)
	m.w = New(Config{}, m.fire)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if rapid.Bool().Draw(rt, "add before Run") {
		m.add(rt)
	}
	wg.Go(func() {
		if err := m.w.Run(ctx); err != nil {
			rt.Errorf("Run: %v", err)
		}
	})
	defer func() { cancel(); wg.Wait() }()
	m.advance(rt)
	rt.Repeat(map[string]func(*rapid.T){
		"add":     m.add,
		"remove":  m.remove,
		"advance": m.advance,
		"":        m.check,
	})
}

func (m *model) add(rt *rapid.T) {
	now := time.Now().UnixMilli()
	distance := rapid.OneOf(
		rapid.Int64Range(-2, 12),          // around the hand's last stretch
		rapid.Int64Range(0, 200),          // a few drawers
		rapid.Int64Range(3900, 4300),      // around the first turn of the clockwork
		rapid.Int64Range(-100_000, 1<<26), // up to 18 hours: the third turn, and hops
		rapid.SampledFrom([]int64{-1 << 62, -now - 1, 0, 300 * 365 * 86_400_000, 1<<62 - 1}),
	)
	due := now + distance.Draw(rt, "due in")
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 1500}).Draw(rt, "how many") {
		m.mu.Lock()
		id := m.added
		m.added++
		bounded := min(max(due, minDue), maxDue)
		m.waiting[id] = bounded
		m.lateAdd = m.lateAdd || bounded <= m.last
		m.handles[id] = m.w.Add(due, id)
		m.mu.Unlock()
	}
}

func (m *model) remove(rt *rapid.T) {
	if m.added == 0 {
		rt.Skip("nothing added")
	}
	id := rapid.IntRange(0, m.added-1).Draw(rt, "id")
	m.mu.Lock()
	defer m.mu.Unlock()
	_, want := m.waiting[id]
	if got := m.w.Remove(m.handles[id]); got != want {
		m.t.Fatalf("Remove(%d) = %v, want %v", id, got, want)
	}
	delete(m.waiting, id)
}

func (m *model) advance(rt *rapid.T) {
	// Not in whole milliseconds, so that the hand is found in the midst of a tick.
	us := rapid.OneOf(rapid.Int64Range(1, 20_000), rapid.Int64Range(1, 5_000_000), rapid.Int64Range(1, 3600e6)).Draw(rt, "µs")
	time.Sleep(time.Duration(us) * time.Microsecond)
	synctest.Wait()
}

// fire checks a batch when it comes. The bubble's clock stands still while it runs, so
// a due that is not the current millisecond is late, unless it was added late.
func (m *model) fire(due int64, batch []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now().UnixMilli()
	if due > now {
		m.t.Errorf("due %d fired at %d: early", due, now)
	}
	if len(batch) == 0 || len(batch) > batchLen {
		m.t.Errorf("a batch of %d", len(batch))
	}
	first, behind := int64(never), int64(never)
	for _, d := range m.waiting {
		first = min(first, d)
		if d > m.before {
			behind = min(behind, d)
		}
	}
	if first == m.crowd && behind > now {
		m.before = m.crowd
	}
	switch { // what is behind a crowd takes turns with it, else the earliest goes first
	case m.lateAdd:
	case due != first && (first != m.crowd || due != behind || m.spare <= 0):
		m.t.Errorf("due %d fired before %d; the last was %d, the crowd %d, to spare %d", due, first, m.before, m.crowd, m.spare)
	case due == first && first == m.crowd && behind <= now && m.spare > 0:
		m.t.Errorf("the crowd of %d had a turn after %d, and %d waited", due, m.before, behind)
	}
	switch {
	case due == first && due != m.crowd && len(batch) == batchLen:
		m.crowd, m.before, m.spare = due, due, batchLen
	case due == m.crowd:
		m.spare = batchLen
	default:
		m.before = max(m.before, due)
		m.spare -= len(batch)
	}
	m.last = max(m.last, due)
	if low := m.w.Low(); low != min(now, first-1) {
		m.t.Errorf("Low is %d while due %d is being fired at %d, want %d", low, due, now, min(now, first-1))
	}
	for _, id := range batch {
		want, ok := m.waiting[id]
		if !ok || m.fired[id] {
			m.t.Errorf("%d fired although it was removed or fired", id)
		}
		if want != due {
			m.t.Errorf("%d fired with due %d, want %d", id, due, want)
		}
		delete(m.waiting, id)
		m.fired[id] = true
	}
}

// check is when all is at rest: nothing due may wait, and the wheel must say what the list says.
func (m *model) check(*rapid.T) {
	synctest.Wait()
	now := time.Now().UnixMilli()
	m.mu.Lock()
	defer m.mu.Unlock()
	low, first := now, int64(never)
	for id, due := range m.waiting {
		if due <= now {
			m.t.Fatalf("%d was due at %d and waits at %d", id, due, now)
		}
		first = min(first, due)
	}
	m.lateAdd = false
	if first <= low {
		low = first - 1
	}
	if got := m.w.Low(); got != low {
		m.t.Fatalf("Low = %d, want %d (now %d)", got, low, now)
	}
	if got := m.w.Len(); got != len(m.waiting) {
		m.t.Fatalf("Len = %d, want %d", got, len(m.waiting))
	}
	got, ok := m.w.Earliest()
	if ok != (len(m.waiting) > 0) || ok && got != first {
		m.t.Fatalf("Earliest = %d, %v, want %d", got, ok, first)
	}
	if s := m.w.Stats(); s.Missed+s.Rebuilds+s.Steps > 0 {
		m.t.Fatalf("with a sound clockwork and an even clock: %+v", s)
	}
	m.w.checkInvariants(m.t.Fatalf)
}

// checkInvariants compares the wheel's parts with each other.
func (w *Wheel[V]) checkInvariants(fatalf func(string, ...any)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for key, d := range w.drawers {
		if d.key != key || (d.used == 0) != (d.place < 0) {
			fatalf("drawer %d: key %d, used %x, place %d", key, d.key, d.used, d.place)
		}
		if d.place >= 0 && w.order[d.place] != d {
			fatalf("drawer %d is not at its place", key)
		}
		for i := range drawerLen {
			if d.used&(1<<i) == 0 {
				continue
			}
			for slot := d.first[i]; ; {
				n := w.slab.at(slot)
				if n.due != key*drawerLen+int64(i) || n.seq == 0 {
					fatalf("slot %d has due %d, lies at %d", slot, n.due, key*drawerLen+int64(i))
				}
				if total++; w.slab.at(n.next).prev != slot || total > w.len {
					fatalf("slot %d: the ring is torn", slot)
				}
				if slot = n.next; slot == d.first[i] {
					break
				}
			}
		}
	}
	live, held := 0, 0
	for _, c := range w.slab.chunks {
		live += c.live
		if c.nodes != nil {
			held++
		}
	}
	if total != w.len || live != w.len || held != w.slab.held {
		fatalf("len %d, in rings %d, live %d; held %d of %d", w.len, total, live, w.slab.held, held)
	}
	for i, d := range w.order {
		if w.order[(max(i, 1)-1)/2].key > d.key {
			fatalf("the order is no heap at %d", i)
		}
	}
}
