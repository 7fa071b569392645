package resident

import (
	"testing"
	"testing/synctest"

	"xtimer/engine"
)

// intending is a node's memory with a timer of at_most_once calls each second.
type intending struct {
	*Memory
	now   int64
	timer *Timer
	shard int
}

func newIntending(t *testing.T) *intending {
	x := &intending{now: 10_000}
	cfg := quietConfig(&x.now)
	cfg.IsNode = true
	x.Memory = New(cfg)
	def := everySecond()
	def.Delivery = engine.AtMostOnce
	x.shard = def.ID.Shard()
	_, x.timer = joined(t, x.Memory, def)
	return x
}

func (x *intending) due(at int64) *Task { return x.shardOf(1).take(x.timer, at, x.now) }

func (x *intending) intend(t *Task) *Intent {
	a, _, _ := x.Begin(t, x.now, &Body{})
	return a.intend()
}

// capture begins a settle.
func (x *intending) capture() (Captured, *engine.Settlement) {
	s := &engine.Settlement{}
	cut := x.Pins.Lowest(x.now)
	x.BeginSettle()
	return x.Capture(x.shard, cut, x.now, true, true, s), s
}

func (c *Intent) answer() (may, ok bool) {
	select {
	case may = <-c.granted:
		return may, true
	default:
		return false, false
	}
}

// A settle does not name the task of a call that waits until it is stored that it begins, and
// the watermark does not pass the task. Once that is stored, the call may be made while the settle is
// under way, and the next one passes it.
func TestIntentBesideASettle(t *testing.T) {
	x := newIntending(t)
	c := x.intend(x.due(2000))
	before := x.due(1000)
	done, s := x.capture()
	if len(s.Owe) != 1 || s.Owe[0].Key != before.Key || len(s.Marks) != 1 || s.Marks[0].W != 1999 {
		t.Fatalf("a settle has the rows %v, and the marks %v", s.Owe, s.Marks)
	}
	row := &engine.Settlement{}
	x.Intents.Stored(x.Intents.Take(row), true)
	if may, ok := c.answer(); !may || !ok {
		t.Error("the call waits for a settle that has none of its tasks")
	}
	if len(row.Owe) != 1 || row.Owe[0].Key != c.Key || !row.Owe[0].Begun {
		t.Errorf("the rows %v are stored", row.Owe)
	}
	x.Release(&done, 0)
	x.EndSettle()
	if _, s = x.capture(); len(s.Owe) != 0 || len(s.Marks) != 1 || s.Marks[0].W != x.now {
		t.Errorf("the next settle has the rows %v, and the marks %v", s.Owe, s.Marks)
	}
}

// A call whose task a settle has named, as one that has not begun, waits until the settle is
// over: of two that write one row, the later one counts.
func TestIntentOfATaskThatIsBeingSettled(t *testing.T) {
	x := newIntending(t)
	task := x.due(2000)
	done, s := x.capture()
	if len(s.Owe) != 1 || s.Owe[0].Begun {
		t.Fatalf("the settle has the rows %v", s.Owe)
	}
	c := x.intend(task)
	if taken := x.Intents.Take(&engine.Settlement{}); len(taken) != 0 {
		t.Fatal("its row is stored beside the settle")
	}
	x.Release(&done, 0)
	<-x.Intents.Wait()
	x.EndSettle()
	select {
	case <-x.Intents.Wait():
	default:
		t.Fatal("nobody is told that the settle is over")
	}
	row := &engine.Settlement{}
	x.Intents.Stored(x.Intents.Take(row), true)
	if may, _ := c.answer(); !may || len(row.Owe) != 1 || !row.Owe[0].Begun {
		t.Errorf("the call may be made: %v, with the rows %v", may, row.Owe)
	}
}

// The row of a range stands until the row of its last due is stored, which waits for the intent.
func TestIntentOfTheLastDueOfARange(t *testing.T) {
	x := newIntending(t)
	o := engine.Owed{Key: engine.Key{Timer: 1, Due: 2000}, To: 3000}
	x.shardOf(1).watermark = 5000
	x.timer.turns(&o, nil)
	c := x.intend(x.due(3000))
	done, s := x.capture()
	if len(s.Pay) != 0 || len(s.Owe) != 0 {
		t.Errorf("before the intent is stored, a settle has the rows %v, and removes %v", s.Owe, s.Pay)
	}
	x.Release(&done, 0)
	x.EndSettle()
	row := &engine.Settlement{}
	x.Intents.Stored(x.Intents.Take(row), true)
	if may, _ := c.answer(); !may || len(row.Owe) != 1 {
		t.Fatalf("the call may be made: %v, with the rows %v", may, row.Owe)
	}
	if _, s := x.capture(); len(s.Pay) != 1 || s.Pay[0] != o.Key {
		t.Errorf("the next settle removes %v", s.Pay)
	}
}

// A change of a timer waits for what is being stored of its calls, and then none of them is
// made that waited for that.
func TestChangeWaitsForIntents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newIntending(t)
		c := x.intend(x.due(2000))
		taken := x.Intents.Take(&engine.Settlement{})
		frozen := make(chan error, 1)
		go func() { frozen <- x.Freeze(t.Context(), 1) }()
		synctest.Wait()
		if len(frozen) > 0 {
			t.Fatal("a change does not wait for a row that is being stored")
		}
		later := make(chan bool, 1)
		x.Intents.Stored(taken, false)
		x.Intents.Take(&engine.Settlement{}) // it is not tried again
		go func() { later <- <-c.granted }()
		if err := <-frozen; err != nil || <-later {
			t.Errorf("the change: %v; or the call is made after it", err)
		}
		if c.task.state != Frozen || c.task.row != rowStale {
			t.Errorf("the task is %v", c.task.state)
		}
	})
}

// A row that could not be stored is stored again. After Close nothing is, and the task waits
// for a turn.
func TestIntentThatIsNotStored(t *testing.T) {
	x := newIntending(t)
	c := x.intend(x.due(2000))
	for range 2 {
		taken := x.Intents.Take(&engine.Settlement{})
		if len(taken) != 1 {
			t.Fatalf("%d rows are to be stored", len(taken))
		}
		x.Intents.Stored(taken, false)
	}
	if _, ok := c.answer(); ok {
		t.Error("the call is answered")
	}
	x.Intents.Close()
	second := x.intend(x.due(3000))
	for _, c := range []*Intent{c, second} {
		if may, ok := c.answer(); may || !ok || c.task.state != Queued {
			t.Errorf("after Close the task is %v", c.task.state)
		}
	}
}

// A shard is not closed while a row of it is being stored.
func TestCedeWaitsForIntents(t *testing.T) {
	x := newIntending(t)
	c := x.intend(x.due(2000))
	taken := x.Intents.Take(&engine.Settlement{})
	x.Cede(engine.SetOf(x.shard))
	if _, ok := x.CaptureLast(x.shard, x.now, x.now, true, &engine.Settlement{}); ok {
		t.Error("the shard is closed")
	}
	x.Intents.Stored(taken, true)
	s := &engine.Settlement{}
	if _, ok := x.CaptureLast(x.shard, x.now, x.now, true, s); !ok || len(s.Owe) != 1 || s.Owe[0].Begun {
		t.Errorf("the shard is closed: %v, with the rows %v", ok, s.Owe)
	}
	if may, ok := c.answer(); may || !ok {
		t.Error("the call is made of a shard that is being given")
	}
}
