package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queueRun is a queue whose tasks run until they are let go.
type queueRun struct {
	*queue
	started chan *task
	mu      sync.Mutex // guards release
	release map[*task]chan struct{}
}

func inQueue(t *testing.T, workers, perTarget, perApp int, f func(q *queueRun)) {
	synctest.Test(t, func(*testing.T) {
		q := &queueRun{started: make(chan *task, 1000), release: map[*task]chan struct{}{}}
		q.queue = newQueue(workers, perTarget, perApp, time.Now, func(x *task) time.Duration {
			q.started <- x
			q.mu.Lock()
			let := q.release[x]
			q.mu.Unlock()
			<-let
			return 0
		})
		f(q)
		q.close()
		for _, c := range q.release {
			select {
			case <-c:
			default:
				close(c)
			}
		}
		q.wg.Wait()
	})
}

func (q *queueRun) task(app, target string, priority uint8, ready int64) *task {
	x := &task{lane: q.lane(app, target), priority: priority, ready: ready}
	x.App, x.Name = app, target
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release[x] = make(chan struct{})
	return x
}

// now are the tasks that have started since the last look.
func (q *queueRun) now() (xs []*task) {
	synctest.Wait()
	for {
		select {
		case x := <-q.started:
			xs = append(xs, x)
		default:
			return xs
		}
	}
}

func count(xs []*task, app, target string) (n int) {
	for _, x := range xs {
		if x.App == app && x.Name == target {
			n++
		}
	}
	return n
}

// No target and no app gets more than its share, and what is left goes to others.
func TestQueueCaps(t *testing.T) {
	inQueue(t, 10, 3, 5, func(q *queueRun) {
		var xs []*task
		for range 20 {
			xs = append(xs, q.task("a", "x", 5, 0), q.task("a", "y", 5, 0), q.task("b", "x", 5, 0))
		}
		q.push(xs)
		got := q.now()
		x, y := count(got, "a", "x")+count(got, "b", "x"), count(got, "a", "y")
		if x != 3 || y > 3 || count(got, "a", "x")+y > 5 {
			t.Errorf("to x %d, to y %d, of a %d", x, y, count(got, "a", "x")+y)
		}
		q.push([]*task{q.task("b", "z", 5, 0)})
		if n := len(q.now()); n != 1 {
			t.Errorf("an app and a target with room to spare: %d started", n)
		}
		total := len(got) + 1
		for len(got) > 0 {
			for _, x := range got {
				close(q.release[x])
			}
			got = q.now()
			total += len(got)
		}
		if total != 61 {
			t.Errorf("%d of 61 ran", total)
		}
	})
}

// Apps take turns, however many tasks each has.
func TestQueueTurns(t *testing.T) {
	inQueue(t, 1, 1, 1, func(q *queueRun) {
		var xs []*task
		for range 50 {
			xs = append(xs, q.task("noisy", "x", 9, 0))
		}
		for range 3 {
			xs = append(xs, q.task("quiet", "y", 0, 100))
		}
		q.push(xs)
		var order []string
		for got := q.now(); len(got) > 0; got = q.now() {
			order = append(order, got[0].App)
			close(q.release[got[0]])
		}
		if i := slices.Index(order, "quiet"); len(order) != 53 || i > 2 || count2(order[:8], "quiet") != 3 {
			t.Errorf("order: %v", order[:10])
		}
	})
}

func count2(xs []string, x string) (n int) {
	for _, y := range xs {
		if x == y {
			n++
		}
	}
	return n
}

// The urgent go first, by priority; but waiting makes urgent.
func TestQueuePriority(t *testing.T) {
	inQueue(t, 1, 1, 1, func(q *queueRun) {
		first := q.task("a", "x", 5, 0)
		q.push([]*task{first})
		q.now()
		q.push([]*task{
			q.task("a", "x", 0, 4_000), q.task("a", "x", 5, 9_999), q.task("a", "x", 5, 10_000),
			q.task("a", "x", 0, 10_000), q.task("a", "y", 9, 10_001), q.task("a", "z", 9, 14_500),
		})
		close(q.release[first])
		var order []string
		for got := q.now(); len(got) > 0; got = q.now() {
			order = append(order, fmt.Sprint(got[0].priority, "@", got[0].ready))
			close(q.release[got[0]])
		}
		want := []string{"9@10001", "0@4000", "5@9999", "5@10000", "9@14500", "0@10000"}
		if !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
	})
}

// A place at a target that one app cannot take, being at its own cap, goes to another.
func TestQueueTargetIsNotKeptByACappedApp(t *testing.T) {
	inQueue(t, 10, 1, 1, func(q *queueRun) {
		other := q.task("c", "x", 5, 0)
		q.push([]*task{other})
		busy := q.task("a", "y", 5, 0)
		q.push([]*task{busy})
		q.now()
		waits, free := q.task("a", "x", 5, 0), q.task("b", "x", 5, 0)
		q.push([]*task{waits, free})
		if n := len(q.now()); n != 0 {
			t.Fatalf("%d started", n)
		}
		close(q.release[other])
		if got := q.now(); len(got) != 1 || got[0] != free {
			t.Errorf("x and b are free, but b's task waits for a's call to y")
		}
	})
}

// Lanes are forgotten when there are too many, and a timer that points to a
// forgotten one finds another.
func TestQueuePrune(t *testing.T) {
	inQueue(t, 4, 2, 2, func(q *queueRun) {
		kept := q.task("kept", "x", 5, 0)
		old := q.task("old", "y", 5, 0)
		q.push([]*task{kept})
		q.now()
		for i := range 1 << 14 {
			q.lane(fmt.Sprint(i), "t")
		}
		q.queue.mu.Lock()
		lanes, dead := len(q.lanes), old.lane.dead
		q.queue.mu.Unlock()
		if lanes > 10 || !dead || kept.lane.dead {
			t.Errorf("%d lanes; old is dead: %v, kept is dead: %v", lanes, dead, kept.lane.dead)
		}
		q.push([]*task{old})
		if got := q.now(); len(got) != 1 || old.lane.dead {
			t.Errorf("%d started", len(got))
		}
		close(q.release[kept])
		q.now()
		if w, f := q.load(); w != 0 || f != 1 {
			t.Errorf("%d wait, %d run", w, f)
		}
	})
}

// Closing keeps what waits from starting.
func TestQueueClose(t *testing.T) {
	inQueue(t, 2, 2, 2, func(q *queueRun) {
		a, b, c := q.task("a", "x", 5, 0), q.task("a", "x", 5, 0), q.task("a", "x", 5, 0)
		q.push([]*task{a, b, c})
		q.now()
		q.close()
		close(q.release[a])
		close(q.release[b])
		if n := len(q.now()); n != 0 {
			t.Errorf("%d started after the end", n)
		}
		q.wg.Wait()
	})
}
