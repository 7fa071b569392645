package fair

import "time"

// The lane of a backlog begins slowly beside calls that begin on time at its target: with
// backlogStart calls in flight, and as many more after each backlogStep, up to half of the places
// of the target. If it began with half of the places, its first calls would take the processors
// all at once, and the calls that are on time would wait. When two nodes had taken over 320 calls
// of 20 ms each from a dead one, the calls in flight doubled with each step at first: the nodes' own
// calls of the 100 ms with the most overdue calls were 4.4 ms late at p99. Now they are 3 ms late.
const (
	backlogStart = 4
	backlogStep  = 60 * time.Millisecond
)

// slowStart is how far the lane of a backlog has come.
type slowStart struct {
	began time.Duration // when its calls began, after a second without any
	ended time.Duration // when the last one ended
	waits bool          // the lane is in target.starting
}

// leavesRoom reports whether the lane of a backlog leaves the free places of its target to other
// lanes, of which one has begun a call there within the last second.
func (l *Lane[T]) leavesRoom(now time.Duration) bool {
	if !l.name.backlog || now-l.target.onTime >= time.Second {
		return false
	}
	steps := int((now - l.start.began) / backlogStep)
	return l.calls >= max(min(backlogStart*(1+steps), l.target.most/2), 1)
}

// begin notes that a call of the lane begins.
func (s *slowStart) begin(calls int, now time.Duration) {
	if calls == 0 && now-s.ended >= time.Second {
		s.began = now
	}
}

// starts notes that a lane waits because it leaves room.
func (t *target[T]) starts(l *Lane[T]) {
	l.start.waits = true
	t.starting = append(t.starting, l)
}

// onTimeNow notes that a call that is on time begins at a target. One lane that leaves room is looked
// at again, for it may have more calls by now. mu is held.
func (q *Queue[T]) onTimeNow(t *target[T], now time.Duration) {
	t.onTime = now
	if len(t.starting) == 0 {
		return
	}
	l := t.starting[0]
	t.starting[0] = nil
	t.starting = t.starting[1:]
	l.start.waits = false
	q.place(l, now)
}
