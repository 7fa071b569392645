package fair

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// call is an item of a test: made while it is not released.
type call struct {
	Item[*call]
	app, to string
	done    chan Result
	began   time.Time
}

// hand is a queue whose calls last until they are released by hand.
type hand struct {
	*Queue[*call]
	mu   sync.Mutex // guards made
	made []*call    // since the last look
}

func byHand(t *testing.T, places, perTarget, perApp int, f func(q *hand)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		q := &hand{}
		q.Queue = New(Config[*call]{Places: places, PerTarget: perTarget, PerApp: perApp, Run: func(c *call) Result {
			q.mu.Lock()
			c.began = time.Now()
			q.made = append(q.made, c)
			q.mu.Unlock()
			return <-c.done
		}})
		f(q)
		q.Close()
		for _, c := range q.look() {
			c.end()
		}
		q.Wait()
	})
}

func (q *hand) call(app, to string, priority uint8, ready int64) *call {
	c := &call{app: app, to: to, done: make(chan Result, 1)}
	c.Item = Item[*call]{Value: c, Lane: q.Lane(app, to, ""), Priority: priority, Ready: ready}
	return c
}

func (q *hand) push(cs ...*call) {
	items := make([]*Item[*call], len(cs))
	for i, c := range cs {
		items[i] = &c.Item
	}
	q.Push(items...)
}

// look is the calls that began since the last look.
func (q *hand) look() []*call {
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	made := q.made
	q.made = nil
	return made
}

func (c *call) end() { c.done <- Result{Ended: Answered, Took: time.Millisecond} }

// trust has each target answer once.
func (q *hand) trust(app string, targets ...string) {
	for _, to := range targets {
		q.push(q.call(app, to, 5, 0))
		for _, c := range q.look() {
			c.end()
		}
	}
	synctest.Wait()
}

func count(cs []*call, app, to string) (n int) {
	for _, c := range cs {
		if (app == "" || c.app == app) && (to == "" || c.to == to) {
			n++
		}
	}
	return n
}

func endAll(cs []*call) {
	for _, c := range cs {
		c.end()
	}
}

// No target and no app gets more than its share, and what is left goes to others.
func TestCaps(t *testing.T) {
	byHand(t, 100, 3, 8, func(q *hand) {
		q.trust("a", "x", "y", "z")
		var cs []*call
		for range 20 {
			cs = append(cs, q.call("a", "x", 5, 0), q.call("a", "y", 5, 0), q.call("a", "z", 5, 0), q.call("b", "x", 5, 0))
		}
		q.push(cs...)
		got := q.look()
		x, a := count(got, "", "x"), count(got, "a", "")
		if x != 3 || a > 8 || count(got, "", "y") != 3 || count(got, "", "z") != 3 {
			t.Errorf("to x %d, of a %d", x, a)
		}
		q.push(q.call("b", "v", 5, 0))
		more := q.look()
		if len(more) != 1 {
			t.Errorf("an app and a target with room to spare: %d began", len(more))
		}
		total := len(got)
		for got = append(got, more...); len(got) > 0; got = q.look() {
			endAll(got)
			total += len(got)
		}
		if total-len(cs) != 10 { // those of the first look were counted twice
			t.Errorf("%d of %d ran", total-9, len(cs)+1)
		}
	})
}

// Apps take turns, however many items each has.
func TestTurns(t *testing.T) {
	byHand(t, 1, 1, 1, func(q *hand) {
		var cs []*call
		for range 50 {
			cs = append(cs, q.call("noisy", "x", 9, 0))
		}
		for range 3 {
			cs = append(cs, q.call("quiet", "y", 0, 100))
		}
		q.push(cs...)
		var order []string
		for got := q.look(); len(got) > 0; got = q.look() {
			order = append(order, got[0].app)
			endAll(got)
		}
		if len(order) != 53 || slices.Index(order, "quiet") > 2 || slices.Index(order[6:], "quiet") >= 0 {
			t.Errorf("order: %v", order)
		}
	})
}

// The urgent go first, by priority; but waiting makes urgent.
func TestPriority(t *testing.T) {
	byHand(t, 1, 1, 1, func(q *hand) {
		first := q.call("a", "x", 5, 0)
		q.push(first)
		q.trust("a") // nothing more than a look
		got := q.look()
		q.push(
			q.call("a", "x", 0, 4_000), q.call("a", "x", 5, 9_999), q.call("a", "x", 5, 10_000),
			q.call("a", "x", 0, 10_000), q.call("a", "x", 9, 10_001), q.call("a", "x", 9, 14_500),
		)
		endAll(got)
		var order []string
		for got := q.look(); len(got) > 0; got = q.look() {
			order = append(order, fmt.Sprint(got[0].Priority, "@", got[0].Ready))
			endAll(got)
		}
		want := []string{"9@10001", "0@4000", "5@9999", "5@10000", "9@14500", "0@10000"}
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// Where the lanes of an app hold equally much, the urgent one goes first.
func TestPriorityOfLanes(t *testing.T) {
	byHand(t, 1, 1, 1, func(q *hand) {
		q.trust("a", "x", "y", "z")
		q.push(q.call("a", "x", 5, 0))
		got := q.look()
		q.push(q.call("a", "x", 5, 1_000), q.call("a", "y", 9, 1_000), q.call("a", "z", 0, -5_000))
		var order string
		for endAll(got); ; endAll(got) {
			if got = q.look(); len(got) == 0 {
				break
			}
			order += got[0].to
		}
		if order != "yzx" {
			t.Errorf("order %s, not yzx", order)
		}
	})
}

// A place at a target that one app cannot take, being at its own limit, goes to
// another, also when the other lanes of the target have been passed over.
func TestTargetIsNotKeptByACappedApp(t *testing.T) {
	byHand(t, 100, 1, 1, func(q *hand) {
		other := q.call("c", "x", 5, 0)
		busy := q.call("a", "y", 5, 0)
		q.push(other, busy)
		began := q.look()
		waits, free := q.call("a", "x", 5, 0), q.call("b", "x", 5, 0)
		q.push(waits, free)
		if n := len(q.look()); n != 0 {
			t.Fatalf("%d began", n)
		}
		other.end()
		got := q.look()
		if len(got) != 1 || got[0] != free {
			t.Errorf("x and b are free, but b's call waits for a's call to y")
		}
		busy.end()
		free.end()
		if got = q.look(); len(got) != 1 || got[0] != waits {
			t.Errorf("a and x are free: %d began", len(got))
		}
		endAll(got)
		_ = began
	})
}

// An item that is removed does not run, and the others keep their order.
func TestRemove(t *testing.T) {
	byHand(t, 1, 1, 1, func(q *hand) {
		var cs []*call
		for i := range 9 {
			cs = append(cs, q.call("a", "x", uint8(5-i%2), int64(i)))
		}
		q.push(cs...)
		got := q.look() // cs[0]
		for _, i := range []int{1, 2, 8} {
			if !q.Remove(&cs[i].Item) || q.Remove(&cs[i].Item) {
				t.Errorf("item %d was not removed once", i)
			}
		}
		if q.Remove(&cs[0].Item) {
			t.Error("an item that runs was removed")
		}
		if waiting, inFlight := q.Load(); waiting != 5 || inFlight != 1 {
			t.Errorf("%d wait, %d in flight", waiting, inFlight)
		}
		q.push(cs[2]) // again, at the end
		var order []int
		for endAll(got); ; endAll(got) {
			if got = q.look(); len(got) == 0 {
				break
			}
			order = append(order, slices.Index(cs, got[0]))
		}
		if want := []int{4, 6, 2, 3, 5, 7}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		x, y := q.call("a", "x", 5, 0), q.call("a", "y", 5, 0)
		q.push(x)
		got = q.look()
		q.push(y)
		q.Remove(&y.Item) // the last of its lane
		endAll(got)
		if n := len(q.look()); n != 0 {
			t.Errorf("%d ran", n)
		}
	})
}

// Lanes are forgotten when there are too many, and an item that has a forgotten one
// finds another.
func TestPrune(t *testing.T) {
	byHand(t, 40, 2, 20, func(q *hand) {
		kept := q.call("kept", "x", 5, 0)
		old := q.call("old", "y", 5, 0)
		q.push(kept)
		got := q.look()
		for i := range manyLanes {
			q.Lane(fmt.Sprint(i), "t", "")
		}
		q.Queue.mu.Lock()
		lanes, apps, targets, dead := len(q.lanes), len(q.apps), len(q.targets), old.Lane.dead.Load()
		q.Queue.mu.Unlock()
		if lanes > 10 || apps > 10 || targets > 10 || !dead || kept.Lane.dead.Load() {
			t.Errorf("%d lanes, %d apps, %d targets; old is dead: %v, kept is dead: %v", lanes, apps, targets, dead, kept.Lane.dead.Load())
		}
		q.push(old)
		more := q.look()
		if len(more) != 1 || old.Lane.dead.Load() {
			t.Errorf("%d began", len(more))
		}
		endAll(got)
		synctest.Wait()
		if w, f := q.Load(); w != 0 || f != 1 {
			t.Errorf("%d wait, %d in flight", w, f)
		}
		endAll(more)
	})
}

// Closing keeps what waits from starting.
func TestClose(t *testing.T) {
	byHand(t, 20, 2, 20, func(q *hand) {
		q.trust("a", "x")
		q.push(q.call("a", "x", 5, 0), q.call("a", "x", 5, 0), q.call("a", "x", 5, 0))
		got := q.look()
		q.Close()
		endAll(got)
		if n := len(q.look()); len(got) != 2 || n != 0 {
			t.Errorf("%d began, %d after the end", len(got), n)
		}
		q.Wait()
	})
}

// Fewer places than are in use: nobody begins until enough are given back. More again:
// those who wait begin at once.
func TestSetPlaces(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		targets := make([]string, 50)
		for i := range targets {
			targets[i] = fmt.Sprint(i)
		}
		q.trust("a", targets...)
		all := func() (cs []*call) {
			for _, to := range targets {
				cs = append(cs, q.call(to, to, 5, 0))
			}
			return cs
		}
		q.push(all()...)
		got := q.look()
		q.SetPlaces(20)
		q.push(all()...)
		if n := len(q.look()); len(got) != 50 || n != 0 {
			t.Fatalf("%d began, and %d while there were too many", len(got), n)
		}
		endAll(got[:40])
		more := q.look()
		if len(more) != 10 {
			t.Errorf("%d began with 10 in flight and 20 places", len(more))
		}
		q.SetPlaces(100)
		more = append(more, q.look()...)
		if len(more) != 50 {
			t.Errorf("%d began", len(more))
		}
		endAll(append(more, got[40:]...))
	})
}

// While the wheel is late nothing begins, for at most so long at a time.
func TestYield(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		begun := func(want int, when string) {
			t.Helper()
			got := q.look()
			if len(got) != want {
				t.Errorf("%s: %d began, want %d", when, len(got), want)
			}
			endAll(got)
		}
		begin := func(late bool) {
			q.Yield(late)
			q.push(q.call("a", "x", 5, 0))
		}
		time.Sleep(leastYielded)
		begin(true)
		begun(0, "late")
		q.Yield(false)
		begun(1, "not late any more")
		begin(true)
		begun(1, "late again at once")
		time.Sleep(leastYielded)
		begin(true)
		time.Sleep(mostYield - 1)
		q.Yield(true)
		begun(0, "late for long")
		time.Sleep(time.Nanosecond)
		q.Yield(true)
		begun(1, "late for longer")
		time.Sleep(leastYielded)
		begin(true)
		begun(0, "late for longer still")
		q.Yield(false)
		begun(1, "at the end")
	})
}
