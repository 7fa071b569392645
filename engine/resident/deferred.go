package resident

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
)

// Deferred are one-shots of lanes with gates (Lanes) which let fewer calls through than come due:
// an id and a due each (16 bytes), where a timer in memory takes 1 KB.
//
//	load, create ──► the wheel, while fewer than HeldMost of the lane are there or wait
//	     └── else ─► Deferred ── there is room 2 s before the due ──► the wheel
//	                        └── else, at the due ──► a row, which refill brings (LateTimer.alone)
//
// The watermark waits for them.
type Deferred struct {
	mu      sync.Mutex
	seconds map[int64]*deferredSecond // by the second in which they are due
	open    []*deferredSecond         // which DeferredTurns goes through; only its goroutine changes them
	more    chan struct{}
}

// deferredSecond has those of a second that were added until the second was opened. Then the
// list of each lane is in order of due.
type deferredSecond struct {
	pin   *Pin
	lanes map[*Lane][]deferredDue
	marks map[*Lane]*fair.Mark[*Task] // at the first due of each lane
}

type deferredDue struct {
	id  engine.TimerID
	due int64
}

func newDeferred() Deferred {
	return Deferred{seconds: map[int64]*deferredSecond{}, more: make(chan struct{}, 1)}
}

// More tells that there is one, where there was none.
func (d *Deferred) More() <-chan struct{} { return d.more }

const second = int64(1000)

// defers reports whether a one-shot does not come into memory before its due, because
// enough others of its lane are there. The mu of its shard is held.
func (m *Memory) defers(t *engine.Timer, p *plan.Plan, after int64) bool {
	if !p.OneShot() {
		return false
	}
	l := m.Lanes.of(t)
	if !l.isGated() {
		return false
	}
	due, ok := p.Next(after)
	if !ok || due >= m.Horizon.Load() || due <= m.now() {
		return false
	}
	if l.roomAhead() > 0 {
		return false
	}
	d, at := &m.Deferred, due/second
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.seconds[at]
	if s == nil {
		s = &deferredSecond{m.Pins.Pin(at*second - 1), map[*Lane][]deferredDue{}, map[*Lane]*fair.Mark[*Task]{}}
		d.seconds[at] = s
	}
	if s.marks[l] == nil {
		s.marks[l] = m.Queue.Mark(m.Lanes.queueOf(t), at*second)
	}
	s.lanes[l] = append(s.lanes[l], deferredDue{t.ID, due})
	select {
	case d.more <- struct{}{}:
	default:
	}
	return true
}

// coming appends those that are due in [from, end), until there are more than most.
func (d *Deferred) coming(es []engine.Entry, from, end int64, most int) []engine.Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := from / second; at*second < end; at++ {
		es = d.seconds[at].coming(es, from, end, most)
	}
	for _, s := range d.open {
		es = s.coming(es, from, end, most)
	}
	return es
}

// coming is that of a second; nil has none.
func (s *deferredSecond) coming(es []engine.Entry, from, end int64, most int) []engine.Entry {
	if s == nil {
		return es
	}
	for _, ds := range s.lanes {
		for _, x := range ds {
			if len(es) > most {
				return es
			}
			if x.due >= from && x.due < end {
				es = append(es, engine.Entry{ID: x.id, Due: x.due})
			}
		}
	}
	return es
}

// Overdue tells how many dues of each lane have come, and the first of them.
func (d *Deferred) Overdue(now int64, tell func(l engine.Lane, dues, oldest int64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.open {
		for l, ds := range s.lanes {
			n, _ := slices.BinarySearchFunc(ds, now+1, func(x deferredDue, at int64) int { return cmp.Compare(x.due, at) })
			if n > 0 {
				tell(l.ID, int64(n), ds[0].due)
			}
		}
	}
}

// roomAhead is how many more one-shots of the lane may lie in the wheel.
func (l *Lane) roomAhead() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.spilled.Load():
		return 0
	case !l.isGated(): // any more
		return math.MaxInt
	}
	return l.all.HeldMost - int(l.resident.Load()) - int(l.ahead.Load())
}

// addFull leaves a one-shot whose due is past to a decision, which makes it a row, when the
// lane has gates and enough in memory. mu is held.
func (m *Memory) addFull(lv *Timer, after int64) bool {
	if !lv.plan.OneShot() || !lv.queueLane().IsGated() {
		return false
	}
	due, ok := lv.plan.Next(after)
	if !ok || due > m.now() || m.fellBehind(lv, due) || !lv.inMemory().isFull(lv.def.ID.Shard()) {
		return lv.late
	}
	m.addLate(lv, LateTimer{due: due, at: due, alone: true})
	return true
}

// countAhead counts a one-shot in the wheel whose lane has gates. mu is held.
func (lv *Timer) countAhead() {
	if lv.plan.OneShot() && lv.queueLane().IsGated() {
		lv.ahead = lv.inMemory()
		lv.ahead.ahead.Add(1)
	}
}

// leaveWheel notes that no due of a timer lies in the wheel. mu is held.
func (lv *Timer) leaveWheel() {
	lv.next = 0
	if lv.ahead != nil {
		lv.ahead.ahead.Add(-1)
		lv.ahead = nil
	}
}

// DeferredTurns goes through what is deferred. It is not for several goroutines at once.
type DeferredTurns struct {
	m *Memory
	// from and of are where the last were taken.
	from *deferredSecond
	of   *Lane
	// seconds are the open seconds of each lane, the first one first. Round has the lanes, and Take goes on
	// with the lane at index next.
	seconds map[*Lane][]*deferredSecond
	round   []*Lane
	next    int
}

// NewDeferredTurns makes one.
func NewDeferredTurns(m *Memory) *DeferredTurns {
	return &DeferredTurns{m: m, seconds: map[*Lane][]*deferredSecond{}}
}

// IsEmpty reports whether nothing is deferred.
func (ts *DeferredTurns) IsEmpty() bool {
	d := &ts.m.Deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) == 0 && len(d.seconds) == 0
}

const (
	// soon is how long (ms) before its due a one-shot comes into the wheel, if there is room.
	soon = 2 * second
	// Take looks at no more lanes than this for a lane with room: 100,000 lanes may be paused.
	looks = 1000
)

// Take takes those of one lane whose due has come, and those that come soon and that there is room
// for. The earliest second has the first turn, whatever room its lane has: Take takes so many as rows
// says, of a lane that may soon call them as many as most says. If rows is 0, and where no due has come, a
// lane that may soon call what it gets has the turn: such a lane does not wait for what a paused lane has in
// an earlier second. The caller calls Done when they are in memory.
func (ts *DeferredTurns) Take(now int64, most, rows int) []engine.Entry {
	d := &ts.m.Deferred
	ts.add(d.openSeconds(now + soon))
	d.mu.Lock()
	defer d.mu.Unlock()
	if rows > 0 {
		for _, s := range d.open {
			if s.pin.at >= now {
				break
			}
			for l, ds := range s.lanes {
				if ds[0].due <= now {
					if l.isHurried() { // the lane may soon call them
						rows = most
					}
					return ts.take(s, l, now, rows, l.roomAhead())
				}
			}
		}
	}
	for range min(len(ts.round), looks) {
		ts.next %= len(ts.round)
		l := ts.round[ts.next]
		ss := ts.seconds[l]
		if len(ss) == 0 {
			last := len(ts.round) - 1
			ts.round[ts.next], ts.round[last] = ts.round[last], nil
			ts.round = ts.round[:last]
			delete(ts.seconds, l)
			continue
		}
		ts.next++
		if room := l.roomAhead(); room > 0 || ss[0].lanes[l][0].due <= now && l.isHurried() {
			return ts.take(ss[0], l, now, most, room)
		}
	}
	return nil
}

// take takes those of a lane in a second. The mu of Deferred is held.
func (ts *DeferredTurns) take(s *deferredSecond, l *Lane, now int64, most, room int) (es []engine.Entry) {
	ts.from, ts.of = s, l
	ds := s.lanes[l]
	n := 0
	for ; n < min(len(ds), most) && (ds[n].due <= now || n < room); n++ {
		es = append(es, engine.Entry{ID: ds[n].id, Due: ds[n].due})
	}
	if s.lanes[l] = ds[n:]; n == len(ds) {
		delete(s.lanes, l)
		ss := ts.seconds[l]
		i := slices.Index(ss, s)
		ts.seconds[l] = slices.Delete(ss, i, i+1)
	}
	return es
}

// add adds the lanes of seconds that were opened.
func (ts *DeferredTurns) add(opened []*deferredSecond) {
	for _, s := range opened {
		for l := range s.lanes {
			ss, ok := ts.seconds[l]
			if !ok {
				ts.round = append(ts.round, l)
			}
			i, _ := slices.BinarySearchFunc(ss, s.pin.at+1, func(x *deferredSecond, at int64) int { return cmp.Compare(x.pin.at, at) })
			ts.seconds[l] = slices.Insert(ss, i, s)
		}
	}
}

// IsHurried reports whether the lane of which the last were taken may soon call those that are
// taken next: it has room in memory.
func (ts *DeferredTurns) IsHurried() bool { return ts.of.isHurried() }

func (l *Lane) isHurried() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.isGated() || l.resident.Load() < int64(l.all.HeldMost-refillPage) && l.room() > 0
}

// Done lets the watermark pass the seconds of which all are taken, and the order of a lane what was.
func (ts *DeferredTurns) Done() {
	d := &ts.m.Deferred
	d.mu.Lock()
	defer d.mu.Unlock()
	next := int64(fair.None)
	if ds := ts.from.lanes[ts.of]; len(ds) > 0 {
		next = ds[0].due
	}
	ts.m.Queue.Move(ts.from.marks[ts.of], next)
	d.open = slices.DeleteFunc(d.open, func(s *deferredSecond) bool {
		if len(s.lanes) > 0 {
			return false
		}
		ts.m.Pins.Release(s.pin)
		return true
	})
}

// openSeconds opens the seconds that begin before the instant, and sorts them: a copy, for a
// second may have a million, and whoever adds to another one does not wait meanwhile.
func (d *Deferred) openSeconds(before int64) (opened []*deferredSecond) {
	d.mu.Lock()
	for at, s := range d.seconds {
		if at*second < before {
			opened = append(opened, s)
			delete(d.seconds, at)
		}
	}
	d.open = append(d.open, opened...)
	slices.SortFunc(d.open, func(a, b *deferredSecond) int { return cmp.Compare(a.pin.at, b.pin.at) })
	d.mu.Unlock()
	for _, s := range opened {
		for l, ds := range s.lanes {
			sorted := slices.Clone(ds)
			slices.SortFunc(sorted, func(a, b deferredDue) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
			d.mu.Lock()
			s.lanes[l] = sorted
			d.mu.Unlock()
		}
	}
	return opened
}
