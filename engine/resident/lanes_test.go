package resident

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
)

// A lane that has nothing in memory counts itself when it asks for its share: the second
// of two lanes gets half of what may wait, also while the first has taken all of it.
func TestShareOfASecondLane(t *testing.T) {
	lanes := newLanes(40, nil)
	first, second := lanes.Of(1), lanes.Of(2)
	for range 40 {
		first.enter()
	}
	if n := second.room(); n != 20 {
		t.Errorf("the second lane has room for %d, want 20", n)
	}
}

// A turn reads about as many rows as the one before has taken: of ranges only some are taken.
func TestPageOfATurn(t *testing.T) {
	m := &Memory{cfg: Config{Now: time.Now}, Lanes: newLanes(1<<20, fair.New(fair.Config[*Task]{}))}
	m.Lanes.resuming, m.Lanes.order.loaded = &m.Resuming, &m.Loaded
	l := m.Lanes.Of(1)
	l.Waits(engine.Place{})
	for _, x := range []struct{ want, taken int }{
		{refillPage, 62}, {62, 62}, {77, 62}, {62, 0}, {fewestRead, fewestRead}, {20, 20}, {25, 25},
	} {
		turn := m.BeginTurn(l)
		if turn.Rows != x.want || turn.Room != refillPage {
			t.Errorf("a turn reads %d rows for %d tasks, want %d for %d", turn.Rows, turn.Room, x.want, refillPage)
		}
		m.EndTurn(l, turn, make([]engine.Owed, turn.Rows), x.taken, 0)
	}
}

// A lane that was forgotten takes no task: a timer that points to it goes on in the lane that stands
// in its place, and both ways there lead to the same one. A lane with a task is not forgotten.
func TestForgottenLane(t *testing.T) {
	queue := fair.New(fair.Config[*Task]{})
	lanes := newLanes(1000, queue)
	def := &engine.Timer{}
	former := lanes.of(def)
	sh := &shard{backlogs: &Backlogs{}, timers: map[engine.TimerID]*Timer{}}
	lv := &Timer{def: def, lane: lanes.queueOf(def), laneMemory: former}
	prune := func() {
		lanes.mu.Lock()
		defer lanes.mu.Unlock()
		lanes.prune()
	}
	prune()
	if former.enter() {
		t.Error("a task has entered a forgotten lane")
	}
	task := sh.enlist(lv, engine.Key{Timer: 1, Due: 1}, engine.FromSchedule, noRow, 0)
	prune()
	if now := lanes.of(def); task.Lane != now || now == former || now.resident.Load() != 1 {
		t.Errorf("the task is in lane %p with %d tasks, the forgotten one is %p", task.Lane, now.resident.Load(), former)
	}
	if used, resident := lanes.used.Load(), lanes.Resident.Load(); used != 1 || resident != 1 {
		t.Errorf("%d lanes have %d tasks in memory, want 1 and 1", used, resident)
	}
}

// The stock of a lane grows while calls empty it, up to a quarter of what may wait in memory, and
// shrinks when it is full. That of a mute lane stays.
func TestStock(t *testing.T) {
	m := &Memory{cfg: Config{Now: time.Now}, Lanes: newLanes(100_000, fair.New(fair.Config[*Task]{}))}
	m.Lanes.resuming, m.Lanes.order.loaded = &m.Resuming, &m.Loaded
	l := m.Lanes.Of(1)
	l.Waits(engine.Place{})
	turn := func(made, called int) {
		x := m.BeginTurn(l)
		for range made - called {
			l.enter()
		}
		m.EndTurn(l, x, make([]engine.Owed, x.Rows), x.Rows, made)
	}
	for range 4 {
		turn(1000, 0)
	}
	if l.stock != leastStock {
		t.Errorf("mute: %d", l.stock)
	}
	for range 4_000 {
		l.leave()
	}
	for _, want := range []int{20_000, 25_000, 25_000} {
		if turn(2500, 2500); l.stock != want {
			t.Errorf("emptied by calls: %d, want %d", l.stock, want)
		}
	}
	turn(25_000, 0)
	if m.BeginTurn(l); l.stock != 12_500 {
		t.Errorf("full: %d", l.stock)
	}
}

// TestTurnBehindTheWatermark: a start finds the clock set back behind the watermark, and the tasks of a full lane wait
// for their dues again. A turn brings rows that are due by the clock as it is, and no others.
func TestTurnBehindTheWatermark(t *testing.T) {
	now := time.UnixMilli(10_000)
	m := &Memory{cfg: Config{Now: func() time.Time { return now }}, Lanes: newLanes(16, fair.New(fair.Config[*Task]{}))}
	m.Lanes.resuming, m.Lanes.order.loaded = &m.Resuming, &m.Loaded
	m.Resuming.Store(60_000)
	l := m.Lanes.Of(1)
	l.Waits(engine.Place{})
	l.queued.Store(m.Lanes.queueOf(&engine.Timer{})) // it keeps no order
	for range 32 {
		l.enter()
	}
	l.early.Store(32)
	for _, x := range []struct {
		watermark, upTo int64
		room            bool
	}{{9_000, 60_000, false}, {50_000, 10_001, true}, {20_000, 10_001, true}} {
		m.Mark(1, x.watermark, 10_000, true)
		if turn := m.BeginTurn(l); turn.Room > 0 != x.room || turn.UpTo != x.upTo {
			t.Errorf("watermark %d: a turn has room for %d, up to %d", x.watermark, turn.Room, turn.UpTo)
		}
	}
}

// The queue forgets the lane of a timer, in which nothing waits, and no limit is in force: nothing counts as held.
func TestALaneThatTheQueueForgotIsNotHeld(t *testing.T) {
	now := int64(100_000)
	m := New(quietConfig(&now))
	defer m.Queue.Close()
	m.Queue.Halt()
	def := everySecond()
	def.App, def.Overlap = "app", engine.OverlapSkip
	sh, lv := joined(t, m, def)
	former := lv.lane
	for i := 0; m.Queue.Living(former) == former; i++ {
		m.Queue.Lane("other", fmt.Sprint(i), "")
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if lv.inMemory().isGated() {
		t.Error("the lane in memory is gated")
	}
	for due := now; due < now+3000; due += 1000 {
		if tk := sh.take(lv, due, now); m.takesTurn(sh, tk, now) != tk || tk.busy || m.heldFor(tk) != 0 {
			t.Errorf("%d is %v, busy: %v, held for %d ms", due, tk.state, tk.busy, m.heldFor(tk))
		}
	}
}

// Of the tasks that wait for an instant, those count as early that no attempt has put off: others may be any number.
func TestEarlyTasksOfALane(t *testing.T) {
	x := newSharing(t)
	task := x.task(2000)
	for _, attempts := range []int{0, 1} {
		task.Attempts = make([]engine.Attempt, attempts)
		task.move(Retrying)
		if n := task.Lane.early.Load(); n != int64(1-attempts) {
			t.Errorf("after %d attempts, %d tasks are early", attempts, n)
		}
		task.move(Queued)
		if n := task.Lane.early.Load(); n != 0 {
			t.Errorf("after %d attempts, %d tasks that are queued are early", attempts, n)
		}
	}
}

// The clock is set back: a retry that waits for an instant ahead of the clock counts as early, whether it waited before or
// comes from a row; one that a backoff may have put off does not.
func TestRetriesAfterTheClockWasSetBack(t *testing.T) {
	x := newSharing(t)
	early := func(when string, want int64) {
		t.Helper()
		if n := x.task(2000).Lane.early.Load(); n != want {
			t.Errorf("%s: %d tasks are early, want %d", when, n, want)
		}
	}
	waits := x.now + x.timer.Retry.MaxBackoff.Milliseconds()
	task := x.task(2000)
	task.Attempts, task.NotBefore = make([]engine.Attempt, 1), waits
	x.later(x.shardOf(1), task, waits)
	x.SetBack()
	early("before", 0)
	x.now -= 60_000
	x.SetBack()
	early("set back", 1)
	x.SetBack()
	early("set back again", 1)
	parked := x.task(3000)
	parked.move(Parked)
	for _, n := range []int64{1, 2} {
		x.now = parked.Key.Due + 1 - n
		x.SetBack()
		early("one waits for its turn", n)
	}
	def := *x.timer
	def.ID = 1025
	o := engine.Owed{Key: engine.Key{Timer: def.ID, Due: 1000}, Generation: 1, NotBefore: waits, Lane: def.Lane(), Task: &task.Task}
	sh := x.lock(def.ID)
	defer sh.mu.Unlock()
	if _, err := x.addRow(sh, &def, o, nil, x.now); err != nil {
		t.Fatal(err)
	}
	early("a row", 3)
}

// A call whose end another node has told counts as early no more, once it has left.
func TestLearnedTaskIsNotEarly(t *testing.T) {
	now := int64(100_000)
	cfg := quietConfig(&now)
	cfg.IsNode = true
	m := New(cfg)
	defer m.Queue.Close()
	def := everySecond()
	o := engine.Owed{Key: engine.Key{Timer: 1, Due: 1000}, Generation: 1, Begun: true, NotBefore: now + 60_000, Lane: def.Lane()}
	read := m.Reads.Begin()
	defer read.End()
	if fate, ready, _, err := m.AddRow(&Row{Owed: o, Timer: def, Read: read, ByLane: true}, now); fate != RowKept || ready != nil || err != nil {
		t.Fatalf("the row: %v, %v, %v", fate, ready, err)
	}
	x := &engine.Task{Key: o.Key, Generation: 1, Since: 1000, Status: engine.Succeeded, Attempts: []engine.Attempt{{N: 1, Code: 200}}}
	if got := m.Learn(x); got != LearnedNow {
		t.Fatal(got)
	}
	if n := m.Lanes.Of(def.Lane()).early.Load(); n != 0 {
		t.Errorf("%d tasks count as early", n)
	}
}
