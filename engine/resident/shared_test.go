package resident

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// sharing is a memory in which the first three dues of a range of a timer share a row.
type sharing struct {
	*Memory
	now   int64
	timer *engine.Timer
	row   engine.Key
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	x := &sharing{now: 100_000}
	cfg := quietConfig(&x.now)
	cfg.DiskCritical = func() bool { return true } // records of dues that share a row are stored all the same
	x.Memory = New(cfg)
	x.timer = &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
	x.timer.Schedule.Every, x.timer.Callback.URL = time.Second, "http://127.0.0.1:9/"
	x.shardOf(1).watermark = x.now
	x.row = engine.Key{Timer: 1, Due: 1999}
	var rows []engine.Owed
	for due := int64(2000); due <= 4000; due += 1000 {
		rows = append(rows, engine.Owed{Key: engine.Key{Timer: 1, Due: due}, Generation: 1, NotBefore: due, Lane: x.timer.Lane()})
	}
	if err := x.AddUnfolded(x.timer, x.row, rows); err != nil {
		t.Fatal(err)
	}
	if !x.IsTurning(x.row) {
		t.Fatal("refill would unfold the row again")
	}
	return x
}

func (x *sharing) task(due int64) *Task {
	return x.shardOf(1).tasks.find(engine.Key{Timer: 1, Due: due})
}

// call begins a call, and sends its first byte.
func (x *sharing) call(t *testing.T, due int64) *Attempt {
	t.Helper()
	x.task(due).QueuedAt = x.now * 1000
	a, _, _ := x.Begin(x.task(due), x.now, &Body{})
	if a == nil || !a.Enter() {
		t.Fatalf("the call of %d does not begin", due)
	}
	a.Leave(true)
	return a
}

// succeed ends a task.
func (x *sharing) succeed(t *testing.T, due int64) {
	t.Helper()
	x.call(t, due)
	sh := x.lock(1)
	defer sh.mu.Unlock()
	x.conclude(sh, x.task(due), engine.Succeeded, "", x.now)
}

// settle captures what there is to settle, and stores it if ok.
func (x *sharing) settle(ok bool) (records, rows []int64, paid []engine.Key) {
	x.BeginSettle()
	var s engine.Settlement
	c := x.Capture(engine.TimerID(1).Shard(), x.now, x.now, false, false, &s)
	if ok {
		x.Release(&c, 0)
	} else {
		x.GiveBack(&c)
	}
	x.EndSettle()
	for i := range s.Tasks {
		if s.Tasks[i].Status.Final() {
			records = append(records, s.Tasks[i].Key.Due)
		}
	}
	for i := range s.Owe {
		rows = append(rows, s.Owe[i].Key.Due)
	}
	slices.Sort(rows)
	return records, rows, s.Pay
}

func (x *sharing) want(t *testing.T, when string, ok bool, records, rows []int64, paid ...engine.Key) {
	t.Helper()
	gotRecords, gotRows, gotPaid := x.settle(ok)
	if !slices.Equal(gotRecords, records) || !slices.Equal(gotRows, rows) || !slices.Equal(gotPaid, paid) {
		t.Errorf("%s: records of %d, rows of %d, and %v removed; want %d, %d and %v", when, gotRecords, gotRows, gotPaid, records, rows, paid)
	}
}

// A row that several dues share goes with the record of the last of them. None has a row of its own.
func TestSharedRow(t *testing.T) {
	x := newSharing(t)
	x.want(t, "all wait", true, nil, nil)
	x.succeed(t, 3000)
	x.call(t, 2000)
	x.want(t, "one is over, one in a call", true, []int64{3000}, nil)
	sh := x.lock(1)
	x.conclude(sh, x.task(2000), engine.Succeeded, "", x.now)
	sh.mu.Unlock()
	x.succeed(t, 4000)
	x.want(t, "the last two are over, and the settle fails", false, []int64{2000, 4000}, nil, x.row)
	x.want(t, "it is tried again", true, []int64{2000, 4000}, nil, x.row)
	if x.IsTurning(x.row) {
		t.Error("the row is in memory still")
	}
	x.want(t, "all is settled", true, nil, nil)
}

// When one of the dues is to be tried again, each that is not over gets a row of its own, in place of
// the shared one.
func TestSharedRowIsParted(t *testing.T) {
	x := newSharing(t)
	x.succeed(t, 2000)
	x.call(t, 3000)
	sh := x.lock(1)
	x.later(sh, x.task(3000), x.now+5000)
	sh.mu.Unlock()
	x.want(t, "one is to be tried again, and the settle fails", false, []int64{2000}, []int64{3000, 4000}, x.row)
	x.want(t, "it is tried again", true, []int64{2000}, []int64{3000, 4000}, x.row)
	x.succeed(t, 4000)
	x.want(t, "another is over", true, []int64{4000}, nil, engine.Key{Timer: 1, Due: 4000})
}

// A call that lasts does not keep the journal from forgetting: its task gets a row.
func TestSharedRowOfALongCall(t *testing.T) {
	x := newSharing(t)
	x.call(t, 3000)
	x.want(t, "a call", true, nil, nil)
	x.now += settleWait + 1
	x.want(t, "it lasts", true, nil, nil)
	x.want(t, "the next settle", true, nil, []int64{2000, 3000, 4000}, x.row)
}

// A shard that is ceded leaves a row for each.
func TestSharedRowOfACededShard(t *testing.T) {
	x := newSharing(t)
	x.succeed(t, 2000)
	x.Cede(engine.SetOf(engine.TimerID(1).Shard()))
	var s engine.Settlement
	c, ok := x.CaptureLast(engine.TimerID(1).Shard(), x.now, x.now, false, &s)
	if !ok || len(s.Owe) != 2 || len(s.Tasks) != 1 || !slices.Equal(s.Pay, []engine.Key{x.row}) {
		t.Errorf("%v: %+v", ok, s)
	}
	x.Release(&c, 0)
}

// A change cancels those that are not in a call, with a record each, and leaves a row of the other.
func TestSharedRowOfAChangedTimer(t *testing.T) {
	x := newSharing(t)
	x.call(t, 2000)
	if err := x.Freeze(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	ch := &engine.Change{}
	p := x.shardOf(1).timers[1].plan
	if n, _ := x.Cancel(ch, &policy.Ending{Former: x.timer, Reason: engine.ReasonDeleted, At: x.now, UpTo: x.now}, &p); n != 1 || len(ch.Tasks) != 2 || len(ch.Owe) != 1 || ch.Owe[0].Key.Due != 2000 {
		t.Errorf("%d in a call; records %d, rows %+v", n, len(ch.Tasks), ch.Owe)
	}
	x.Replace(x.timer, nil, engine.ReasonDeleted, x.now)
	x.want(t, "the next settle", true, nil, []int64{2000}, x.row)
}

// A change that makes a new range, or another row with the key of a shared row, waits until the shared
// row is gone.
func TestAwaitParted(t *testing.T) {
	for name, await := range map[string]func(context.Context, *sharing) error{
		"range": func(ctx context.Context, x *sharing) error { return x.AwaitParted(ctx, 1) },
		"row":   func(ctx context.Context, x *sharing) error { return x.AwaitSettled(ctx, x.row) },
	} {
		t.Run(name, func(t *testing.T) {
			x, done := newSharing(t), make(chan error, 1)
			go func() { done <- await(t.Context(), x) }()
			var rows []int64
			for len(rows) == 0 && len(done) == 0 { // until the goroutine has looked
				_, rows, _ = x.settle(true)
				runtime.Gosched()
			}
			if !slices.Equal(rows, []int64{2000, 3000, 4000}) {
				t.Fatalf("it did not wait: rows of %d", rows)
			}
			if err := <-done; err != nil || x.IsTurning(x.row) {
				t.Errorf("%v; the row is there: %v", err, x.IsTurning(x.row))
			}
		})
	}
}
