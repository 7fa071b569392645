package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/wheel"
)

// placed is a memory whose tasks keep their places of a flow key.
type placed struct {
	*Memory
	def   *engine.Timer
	begun chan int64 // the due of each task that is handed out; minus it, if the task is not called
}

func newPlaced(places int) *placed {
	now, x := int64(100_000), &placed{begun: make(chan int64, 10)}
	clock := func() time.Time { return time.UnixMilli(now) }
	x.Memory = New(Config{
		Owned: engine.AllShards, Journal: &silent{}, Now: clock, MaxWaiting: 1000, Bodies: 1 << 20,
		Queue: fair.New(fair.Config[*Task]{Places: 4, PerApp: 4, PerTarget: 4, Run: func(tk *Task) fair.Result {
			due := tk.Key.Due
			if a, _, _ := x.Begin(tk, now, &Body{}); a == nil {
				due = -due
			}
			x.begun <- due
			return fair.Result{}
		}}),
		Wheel:      wheel.New(wheel.Config{Now: clock}, func(int64, []Item) {}),
		MemoryFull: func(int64) bool { return false }, DiskCritical: func() bool { return false }, Ended: func(*engine.Task) {},
	})
	x.Queue.SetRule(flow.Name{Kind: flow.OfFlow, App: "app", Key: "k"}, &flow.Rule{Started: true, Limit: &flow.Limit{Concurrency: places, HoldTask: true}})
	x.def = everySecond()
	x.def.App, x.def.Flow, x.def.Overlap = "app", engine.Flow("k"), engine.OverlapAllow
	return x
}

// add takes a row into memory, for the caller to push; begun: the row says that a call of the task has begun.
func (x *placed) add(t *testing.T, due int64, begun bool) *Task {
	t.Helper()
	sh := x.lock(1)
	defer sh.mu.Unlock()
	tk, err := x.addRow(sh, x.def, engine.Owed{Key: engine.Key{Timer: 1, Due: due}, Generation: 1, NotBefore: due, Begun: begun, Lane: x.def.Lane()}, nil, x.now())
	if err != nil || tk == nil {
		t.Fatal(tk, err)
	}
	return tk
}

// leave takes a task out of memory.
func (x *placed) leave(tk *Task) {
	sh := x.lock(1)
	defer sh.mu.Unlock()
	x.forget(sh, tk)
}

// next is what is handed out next.
func (x *placed) next(t *testing.T, want int64) {
	t.Helper()
	select {
	case due := <-x.begun:
		if due != want {
			t.Errorf("%d is handed out, want %d; negative: not called", due, want)
		}
	case <-time.After(10 * time.Second):
		waiting, flying := x.Queue.Load()
		t.Fatalf("%d is not handed out: %d wait, %d are in flight", want, waiting, flying)
	}
}

// A task may leave memory after the lock of its shard is given up and before it is pushed into
// the queue. The queue hands it out all the same; it keeps no place of its flow key.
func TestPlaceOfATaskThatLeftBeforeItsPush(t *testing.T) {
	x := newPlaced(1)
	defer x.Queue.Close()
	former := x.add(t, 2000, false)
	x.leave(former)
	x.Enqueue([]*Task{former})
	x.next(t, -2000)
	x.Enqueue([]*Task{x.add(t, 3000, false)})
	x.next(t, 3000)
}

// A task that keeps its place leaves memory, and is pushed between the two steps by which it leaves the queue. It is
// not handed out, and the others of its lane are.
func TestPlaceOfATaskThatLeavesDuringItsPush(t *testing.T) {
	x := newPlaced(2)
	defer x.Queue.Close()
	x.Queue.Halt()
	x.Enqueue([]*Task{x.add(t, 3000, false)})
	former := x.add(t, 2000, true)
	if !former.turn.Keeps() {
		t.Fatal("the task keeps no place")
	}
	sh := x.lock(1)
	x.takeOut(sh, former) // detach in two steps
	x.Enqueue([]*Task{former})
	x.Queue.Leave(&former.turn)
	former.move(Gone)
	sh.mu.Unlock()
	x.Queue.Resume()
	x.next(t, 3000)
	if waiting, _ := x.Queue.Load(); waiting != 0 {
		t.Errorf("%d wait", waiting)
	}
}
