package scheduler

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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

// A target that takes its time gets as many calls in flight as are allowed. One
// that is slow only because so many are in flight, as on a machine at its limit,
// does not keep them.
func TestQueueLimit(t *testing.T) {
	const most = 256
	synctest.Test(t, func(t *testing.T) {
		var calls, flying atomic.Int64
		var q *queue
		limits := map[int64]int{} // by how many calls were made; guarded by q.mu
		q = newQueue(1024, most, 1024, time.Now, func(*task) time.Duration {
			n, c := flying.Add(1), calls.Add(1)
			if c%10_000 == 0 { // as it begins: only those before it have been judged
				q.mu.Lock()
				limits[c] = q.targets["target"].limit
				q.mu.Unlock()
			}
			took := 50 * time.Millisecond
			if c > 10_000 { // 34,000 calls a second, shared by all that fly
				took = time.Duration(n) * time.Second / 34_000
			}
			time.Sleep(took)
			flying.Add(-1)
			return took
		})
		ts := make([]*task, 60_000)
		for i := range ts {
			ts[i] = &task{lane: q.lane("app", "target")}
		}
		q.push(ts)
		time.Sleep(time.Minute)
		q.close()
		q.wg.Wait()
		if limits[10_000] != most {
			t.Errorf("a slow target has a limit of %d", limits[10_000])
		}
		if limits[50_000] > fewCalls+5 {
			t.Errorf("a target that is slow for their number alone has a limit of %d", limits[50_000])
		}
	})
}

// A fifo that never runs empty gives its tasks in order and does not grow.
func TestFifoThatNeverEmpties(t *testing.T) {
	var f fifo
	in, out := int64(0), int64(0)
	for range 100_000 {
		for in < out+10 {
			f.push(&task{ready: in})
			in++
		}
		if x := f.pop(); x.ready != out {
			t.Fatalf("%d came, not %d", x.ready, out)
		}
		out++
	}
	if cap(f.ts) > 64 {
		t.Errorf("room for %d tasks, of which 10 were there", cap(f.ts))
	}
}
