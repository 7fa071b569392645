package resident

import (
	"testing"
	"time"

	"xtimer/engine"
)

// queued is a timer with overlap queue, and tasks of it that are due after 1, 2, … s.
type queued struct {
	*Memory
	now   int64
	shard *shard
	tasks map[int64]*Task
}

func queueOf(t *testing.T, n int64) *queued {
	t.Helper()
	q := &queued{now: 10_000, tasks: map[int64]*Task{}}
	q.Memory = New(quietConfig(&q.now))
	def := everySecond()
	def.Overlap = engine.OverlapQueue
	var lv *Timer
	q.shard, lv = joined(t, q.Memory, def)
	for due := int64(1000); due <= n*1000; due += 1000 {
		q.tasks[due] = q.shard.take(lv, due, q.now)
	}
	return q
}

func (q *queued) begin(due int64) *Attempt {
	a, _, _ := q.Begin(q.tasks[due], q.now, &Body{})
	return a
}

func (q *queued) end(a *Attempt) {
	a.Enter()
	a.Leave(true)
	a.End(time.UnixMilli(q.now), engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: time.UnixMilli(q.now)})
}

// Tasks that wait for each other are called in the order of their dues, in whatever order
// workers come with them.
func TestQueueGoesByDue(t *testing.T) {
	q := queueOf(t, 5)
	for _, due := range []int64{3000, 2000} {
		if q.begin(due) != nil {
			t.Errorf("%d begins before 1000", due)
		}
	}
	for due := int64(1000); due <= 5000; due += 1000 {
		a := q.begin(due)
		if a == nil {
			t.Fatalf("%d does not begin in its turn, it is %v", due, q.tasks[due].state)
		}
		if due == 1000 && q.begin(5000) != nil {
			t.Error("5000 begins beside 1000")
		}
		q.end(a)
	}
}

// A task that waits for its due again, after the clock was set back, gives its turn to the next one. When the clock is
// right, the first one goes first all the same, in whatever order workers come with the two.
func TestQueueGoesByDueAfterAStepBack(t *testing.T) {
	for _, order := range [][]int64{{1000, 2000}, {2000, 1000}} {
		q := queueOf(t, 2)
		a := q.begin(1000)
		if q.begin(2000) != nil {
			t.Error("2000 begins beside 1000")
		}
		q.now = 500
		if a.Enter() {
			t.Error("a call is made early")
		}
		q.now = 10_000
		q.shard.wake(q.tasks[1000].Key, q.now)
		for _, due := range order {
			if a := q.begin(due); a != nil {
				if due == 2000 && q.tasks[1000].state != Done {
					t.Errorf("order %v: 2000 begins before 1000", order)
				}
				q.end(a)
			}
		}
		for _, due := range []int64{1000, 2000} {
			if q.tasks[due].state == Done {
				continue
			}
			a := q.begin(due)
			if a == nil {
				t.Fatalf("order %v: %d does not begin in its turn, it is %v", order, due, q.tasks[due].state)
			}
			q.end(a)
		}
	}
}
