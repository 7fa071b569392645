package resident

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/wheel"

	"pgregory.net/rapid"
)

// model drives a Memory by hand, and keeps what a cold tier would have.
type model struct {
	*rapid.T
	m   *Memory
	now int64

	timers   []*engine.Timer // as they stand
	rows     map[engine.Key]engine.Owed
	records  map[engine.Key]engine.TaskStatus
	ok       map[engine.Key]int // calls that succeeded
	attempts []*Attempt
	frozen   int                // 1 + the place of the timer that is frozen; 0: none
	settle   *engine.Settlement // under way
	caps     []Captured
	intents  map[*Attempt]*Intent // of at_most_once attempts; nil: it may be made
	beside   *engine.Settlement   // of intents, under way
	taken    []*Intent
}

// silent is a journal that notes nothing.
type silent struct {
	engine.Journal
	next engine.Position
}

func (j *silent) Begin(engine.Begun) engine.Position { j.next++; return j.next - 1 }
func (j *silent) Finish([]byte) engine.Position      { j.next++; return j.next - 1 }

func newModel(t *rapid.T) *model {
	x := &model{
		T: t, now: 1_000_000,
		rows: map[engine.Key]engine.Owed{}, records: map[engine.Key]engine.TaskStatus{}, ok: map[engine.Key]int{}, intents: map[*Attempt]*Intent{},
	}
	now := func() time.Time { return time.UnixMilli(x.now) }
	x.m = New(Config{
		Owned: engine.AllShards, IsNode: true,
		Journal: &silent{}, Now: now, MaxWaiting: rapid.SampledFrom([]int{3, 1000}).Draw(t, "most waiting"), Bodies: 1 << 20,
		Queue:        fair.New(fair.Config[*Task]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(*Task) fair.Result { return fair.Result{} }}),
		Wheel:        wheel.New(wheel.Config{Now: now}, func(int64, []Item) {}),
		MemoryFull:   func(int64) bool { return false },
		DiskCritical: func() bool { return false },
		Ended:        func(*engine.Task) {},
	})
	x.m.Horizon.Store(math.MaxInt64)
	for i, overlap := range []engine.Overlap{engine.OverlapAllow, engine.OverlapSkip, engine.OverlapQueue} {
		def := &engine.Timer{Definition: engine.NewDefinition(), ID: engine.TimerID(1 + i), Version: 1, Generation: 1, ValidFrom: x.now, Anchor: x.now}
		def.App, def.Name, def.Callback.URL, def.Overlap = "a", "t", "http://127.0.0.1:9/", overlap
		def.Schedule.Every = time.Duration(1+i) * time.Second
		def.Delivery = rapid.SampledFrom([]engine.Delivery{engine.AtLeastOnce, engine.AtMostOnce}).Draw(t, "delivery")
		x.m.shardOf(def.ID).watermark = x.now
		x.timers = append(x.timers, def)
		x.m.Add(def, x.plan(def), nil, nil)
	}
	return x
}

func (x *model) plan(t *engine.Timer) *plan.Plan {
	p, err := plan.Of(t)
	if err != nil {
		x.Fatal(err)
	}
	return &p
}

// tasks are those in memory that f selects, in order.
func (x *model) tasks(f func(*Task) bool) (ts []*Task) {
	x.m.EachTask(func(t *Task) {
		if f(t) {
			ts = append(ts, t)
		}
	})
	slices.SortFunc(ts, func(a, b *Task) int { return a.Key.Compare(b.Key) })
	return ts
}

func (x *model) Advance(t *rapid.T) { x.now += rapid.Int64Range(1, 2500).Draw(t, "ms") }

// Fire hands over one due that has come, or one retry.
func (x *model) Fire(t *rapid.T) {
	type item struct {
		at int64
		Item
	}
	var items []item
	for _, def := range x.timers {
		if lv := x.m.shardOf(def.ID).timers[def.ID]; lv != nil && lv.next != 0 && lv.next <= x.now {
			items = append(items, item{lv.next, Item{id: def.ID}})
		}
	}
	for _, tk := range x.tasks(func(tk *Task) bool { return tk.state == Retrying && tk.NotBefore <= x.now }) {
		items = append(items, item{tk.NotBefore, Item{id: tk.Key.Timer, due: tk.Key.Due}})
	}
	if len(items) == 0 {
		t.Skip("nothing is due")
	}
	it := rapid.SampledFrom(items).Draw(t, "item")
	x.m.Fire(it.at, []Item{it.Item})
}

// turn takes a task out of the queue whose turn it is.
func (x *model) turn(t *rapid.T) *Task {
	ts := x.tasks(func(tk *Task) bool { return tk.state == Queued })
	if len(ts) == 0 {
		t.Skip("none is queued")
	}
	tk := ts[rapid.IntRange(0, len(ts)-1).Draw(t, "task")]
	x.m.Queue.Remove(&tk.turn)
	return tk
}

func (x *model) Begin(t *rapid.T) {
	tk := x.turn(t)
	hadTurn := tk.busy
	a, _, freed := x.m.Begin(tk, x.now, &Body{})
	if freed != nil {
		if freed.state != Queued {
			t.Fatalf("%s is freed, and %v", freed.Key, freed.state)
		}
		x.m.Enqueue([]*Task{freed})
	}
	if a == nil {
		return
	}
	if a.Timer.Delivery == engine.AtLeastOnce {
		x.attempts = append(x.attempts, a)
	} else if c := a.intend(); c != nil {
		x.attempts, x.intents[a] = append(x.attempts, a), c
	}
	if hadTurn || tk.timer.def.Overlap != engine.OverlapQueue {
		return
	}
	for _, other := range x.tasks(func(o *Task) bool { return o.timer == tk.timer && (o.state == Queued || o.state == Parked) }) {
		if other.Key.Due < tk.Key.Due {
			t.Fatalf("%s begins, and %s is %v", tk.Key, other.Key, other.state)
		}
	}
}

func (x *model) PutOff(t *rapid.T) {
	x.m.PutOff(x.turn(t), x.now+1000)
}

// attempt is one under way, its place among them.
func (x *model) attempt(t *rapid.T, f func(*Attempt) bool) (int, *Attempt) {
	var places []int
	x.answers()
	for i, a := range x.attempts {
		if x.intents[a] == nil && f(a) {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		t.Skip("no such attempt")
	}
	i := rapid.SampledFrom(places).Draw(t, "attempt")
	return i, x.attempts[i]
}

// answers hears what became of intents.
func (x *model) answers() {
	x.attempts = slices.DeleteFunc(x.attempts, func(a *Attempt) bool {
		c := x.intents[a]
		if c == nil {
			return false
		}
		select {
		case may := <-c.granted:
			delete(x.intents, a)
			return !may
		default:
			return false
		}
	})
}

// Take begins to store intents.
func (x *model) Take(t *rapid.T) {
	if x.beside != nil {
		t.Skip("some are being stored")
	}
	s := &engine.Settlement{}
	if x.taken = x.m.Intents.Take(s); len(x.taken) > 0 {
		x.beside = s
	}
}

// Stored ends it. One that failed may have been stored.
func (x *model) Stored(t *rapid.T) {
	if x.beside == nil {
		t.Skip("none are being stored")
	}
	fails := rapid.IntRange(0, 3).Draw(t, "fails")
	if fails != 1 {
		x.apply(x.beside)
	}
	x.m.Intents.Stored(x.taken, fails > 1)
	x.beside, x.taken = nil, nil
}

func (x *model) Enter(t *rapid.T) {
	i, a := x.attempt(t, func(a *Attempt) bool { return a.task.state != Writing && a.task.state != Sending })
	ok := a.Enter()
	if ok && (a.task.timer.frozen || a.task.Generation != x.timers[a.Key.Timer-1].Generation) {
		t.Fatalf("%s is sent while, or after, its timer is changed", a.Key)
	}
	if !ok {
		x.attempts = slices.Delete(x.attempts, i, i+1)
	}
}

func (x *model) Leave(t *rapid.T) {
	_, a := x.attempt(t, func(a *Attempt) bool { return a.task.state == Writing })
	a.Leave(rapid.Bool().Draw(t, "sent"))
}

func (x *model) End(t *rapid.T) {
	i, a := x.attempt(t, func(a *Attempt) bool { return a.task.state != Writing })
	x.attempts = slices.Delete(x.attempts, i, i+1)
	out := engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "refused"}
	if a.task.state == Sending {
		out = rapid.SampledFrom([]engine.Outcome{
			{Class: engine.ClassOK, Code: 200, Sent: time.UnixMilli(x.now)}, {Class: engine.ClassRetry, Code: 500, Sent: time.UnixMilli(x.now)},
		}).Draw(t, "outcome")
	}
	if out.Class == engine.ClassOK {
		if x.ok[a.Key]++; x.ok[a.Key] > 1 {
			t.Fatalf("%s has succeeded twice", a.Key)
		}
	}
	a.End(time.UnixMilli(x.now), out)
}

// Freeze begins a change of a timer.
func (x *model) Freeze(t *rapid.T) {
	if x.frozen != 0 || x.settle != nil || len(x.tasks(func(tk *Task) bool { return tk.state == Writing || tk.intends })) > 0 {
		t.Skip("a change would wait")
	}
	x.frozen = rapid.IntRange(1, len(x.timers)).Draw(t, "timer")
	if err := x.m.Freeze(t.Context(), x.timers[x.frozen-1].ID); err != nil {
		t.Fatal(err)
	}
}

// Change makes a new generation of the timer, or fails to.
func (x *model) Change(t *rapid.T) {
	if x.frozen == 0 {
		t.Skip("none is frozen")
	}
	i := x.frozen - 1
	x.frozen = 0
	was := x.timers[i]
	read := x.m.Reads.Begin()
	defer read.End()
	c := &engine.Change{ID: was.ID, At: x.now}
	end := &policy.Ending{Former: was, Reason: engine.ReasonReplaced, At: x.now, UpTo: x.now}
	for k, o := range x.rows {
		if k.Timer == was.ID && !x.m.Had(k, read) {
			c.Pay, c.Tasks = append(c.Pay, k), append(c.Tasks, end.Cancelled(&o))
		}
	}
	x.m.Cancel(c, end, x.plan(was))
	if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		x.m.Thaw(was.ID)
		return
	}
	for _, r := range c.Tasks {
		for due := r.Key.Due; due <= max(r.Key.Due, r.DueLast); due += was.Schedule.Every.Milliseconds() {
			x.records[engine.Key{Timer: was.ID, Due: due}] = r.Status
		}
	}
	x.apply(&engine.Settlement{Pay: c.Pay, Owe: c.Owe})
	next := *was
	next.Version, next.Generation, next.ValidFrom, next.UpdatedAt = was.Version+1, was.Generation+1, x.now, x.now
	x.timers[i] = &next
	x.m.Replace(was, &next, engine.ReasonReplaced, x.now)
	x.m.NoteChanged(was.ID)
	x.m.Add(&next, x.plan(&next), nil, nil)
}

// Capture begins a settle.
func (x *model) Capture(t *rapid.T) {
	if x.settle != nil {
		t.Skip("one is under way")
	}
	cut := x.m.Pins.Lowest(x.now)
	for _, def := range x.timers {
		if lv := x.m.shardOf(def.ID).timers[def.ID]; lv != nil && lv.next != 0 {
			cut = min(cut, lv.next-1)
		}
	}
	x.settle, x.caps = &engine.Settlement{}, nil
	x.m.BeginSettle()
	last := rapid.Bool().Draw(t, "last")
	marks := last || rapid.Bool().Draw(t, "marks")
	for i := range engine.Shards {
		if c := x.m.Capture(i, cut, x.now, marks, last, x.settle); c.Lines > 0 {
			x.caps = append(x.caps, c)
		}
	}
}

// Settle ends it.
func (x *model) Settle(t *rapid.T) {
	if x.settle == nil {
		t.Skip("none is under way")
	}
	stored := rapid.IntRange(0, 3).Draw(t, "fails") > 0
	if stored {
		x.apply(x.settle)
	}
	for i := range x.caps {
		if stored {
			x.m.Release(&x.caps[i], 0)
		} else {
			x.m.GiveBack(&x.caps[i])
		}
	}
	x.m.EndSettle()
	x.settle = nil
}

func (x *model) apply(s *engine.Settlement) {
	for _, r := range s.Tasks {
		if r.Status.Final() {
			if was, ok := x.records[r.Key]; ok {
				x.Fatalf("%s has ended twice: %v, %v", r.Key, was, r.Status)
			}
			x.records[r.Key] = r.Status
		}
	}
	for _, k := range s.Pay {
		delete(x.rows, k)
	}
	for _, o := range s.Owe {
		x.rows[o.Key] = o
	}
}

// Resume brings a row into memory.
func (x *model) Resume(t *rapid.T) {
	read := x.m.Reads.Begin()
	defer read.End()
	ks := slices.SortedFunc(maps.Keys(x.rows), engine.Key.Compare)
	if len(ks) == 0 {
		t.Skip("there is none")
	}
	o := x.rows[rapid.SampledFrom(ks).Draw(t, "row")]
	def := x.timers[o.Key.Timer-1]
	fate, ready, _, err := x.m.AddRow(&Row{Owed: o, Timer: def, Read: read, ByLane: rapid.Bool().Draw(t, "by lane")}, x.now)
	if err != nil || fate == RowOutdated || fate == RowChanging || (fate == RowEnded || ready != nil) && (fate == RowEnded) != (o.Generation != def.Generation) {
		t.Fatalf("row %+v: %v, %v", o, fate, err)
	}
	if ready != nil {
		x.m.Enqueue([]*Task{ready})
	}
}

// Check holds what must be true after each step.
func (x *model) Check(t *rapid.T) {
	inMemory := map[engine.Key]*Task{}
	for i := range x.m.shards {
		sh := &x.m.shards[i]
		done := 0
		for _, tk := range sh.order {
			if tk.state == Gone {
				continue
			}
			if inMemory[tk.Key] != nil || sh.tasks.find(tk.Key) != tk {
				t.Fatalf("%s is in memory twice, or not found", tk.Key)
			}
			if inMemory[tk.Key] = tk; tk.state == Done {
				done++
			}
		}
		if len(sh.order)+len(sh.paid)+len(sh.removed)+len(sh.changed) > 0 && !sh.toSettle.Load() {
			t.Fatalf("shard %d has something to settle, and no settle will look at it", i)
		}
		if sh.done != done {
			t.Fatalf("%d tasks are done, and %d counted", done, sh.done)
		}
		for _, lv := range sh.timers {
			busy, parked := int32(0), int32(0)
			for tk := lv.newest; tk != nil; tk = tk.older {
				if older := tk.older; older == nil && lv.oldest != tk || older != nil && (older.newer != tk || older.Key.Due >= tk.Key.Due) {
					t.Fatalf("%s is not where it belongs in the list of its timer", tk.Key)
				}
				if tk.state == Parked {
					parked++
				}
				if tk.state >= Done {
					t.Fatalf("%s is %v, and in the list of its timer", tk.Key, tk.state)
				}
				if tk.busy {
					busy++
				}
			}
			if busy != lv.busy || parked != lv.parked {
				t.Fatalf("timer %d has %d busy and %d parked tasks, and counts %d and %d", lv.def.ID, busy, parked, lv.busy, lv.parked)
			}
			if lv.def.Overlap != engine.OverlapAllow && busy > 1 {
				t.Fatalf("timer %d has %d busy tasks", lv.def.ID, busy)
			}
		}
	}
	unfinished := 0
	for k, tk := range inMemory {
		if tk.state != Done {
			unfinished++
		}
		if _, ended := x.records[k]; ended && tk.state != Done {
			t.Fatalf("%s has ended, and is %v in memory", k, tk.state)
		}
		row, stored := x.rows[k]
		if tk.inCall() && tk.timer.def.Delivery == engine.AtMostOnce && !row.Begun {
			t.Fatalf("%s is called, and no row says that it has begun", k)
		}
		switch {
		case x.settle != nil, tk.intends:
		case stored && tk.row == noRow:
			t.Fatalf("%s has a row, and memory does not know", k)
		case !stored && tk.row == rowCurrent:
			t.Fatalf("%s has no row, and memory has one", k)
		}
	}
	if n := x.m.Lanes.Resident.Load(); n != int64(unfinished) {
		t.Fatalf("%d tasks wait, and %d are counted", unfinished, n)
	}
	for _, def := range x.timers {
		x.checkDues(t, def, inMemory)
	}
}

// checkDues: each due that has come is in one place at least, and not in memory alone once the
// watermark has passed it.
func (x *model) checkDues(t *rapid.T, def *engine.Timer, inMemory map[engine.Key]*Task) {
	p, w := x.plan(def), x.m.shardOf(def.ID).watermark
	lv := x.m.shardOf(def.ID).timers[def.ID]
	if lv != nil && (lv.behind || lv.late) {
		return // its dues lie in a range, or are being decided
	}
	for due, ok := p.Next(def.ValidFrom); ok && due <= x.now; due, ok = p.Next(due) {
		k := engine.Key{Timer: def.ID, Due: due}
		_, stored := x.rows[k]
		_, ended := x.records[k]
		if !stored && !ended && (due <= w || inMemory[k] == nil && (lv == nil || lv.next == 0 || due < lv.next)) {
			t.Fatalf("%s is lost, at the latest by a crash: the watermark is %d", k, w)
		}
	}
}

// TestModel: whatever happens to tasks, in whatever order, none is lost, none is called by
// a generation that is over, and all counts are right.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newModel(t)
		defer x.m.Queue.Close()
		t.Repeat(map[string]func(*rapid.T){
			"": x.Check, "advance": x.Advance, "fire": x.Fire, "fire again": x.Fire, "begin": x.Begin, "begin again": x.Begin, "put off": x.PutOff,
			"enter": x.Enter, "leave": x.Leave, "end": x.End, "freeze": x.Freeze, "change": x.Change, "capture": x.Capture, "settle": x.Settle, "resume": x.Resume,
			"take": x.Take, "stored": x.Stored, "take again": x.Take, "stored again": x.Stored,
		})
	})
}
