package fair

import "slices"

// Stats is how a queue stands.
type Stats struct {
	Places   int // that there may be in all
	InFlight int // calls that have one
	Silent   int // of them, to targets that did not answer when the calls began
	Waiting  int // items in lanes
	Limited  int // targets that make items wait, or were lowered by timeouts
	// Targets are the limited ones in which most items wait.
	Targets []TargetStats
}

// TargetStats is how a target stands.
type TargetStats struct {
	Target    string
	Limit     int // of calls in flight
	InFlight  int
	Waiting   int
	Answering bool
}

// Stats describes at most n of the limited targets.
func (q *Queue[T]) Stats(n int) Stats {
	now := q.now()
	q.mu.Lock()
	s := Stats{
		Places: q.places, InFlight: q.calls, Silent: q.pools[silent].calls,
		Waiting: q.waiting, Limited: len(q.limited),
	}
	for _, t := range q.limited[:len(q.limited)*min(n, 1)] {
		s.Targets = append(s.Targets, TargetStats{t.name, t.most, t.calls, t.waiting, t.answers(now)})
	}
	q.mu.Unlock()
	slices.SortFunc(s.Targets, func(a, b TargetStats) int { return b.Waiting - a.Waiting })
	s.Targets = s.Targets[:min(n, len(s.Targets))]
	return s
}

// Load is how many items wait and how many calls are in flight.
func (q *Queue[T]) Load() (waiting, inFlight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting, q.calls
}

// list keeps a target in limited while it belongs there: one that was forgotten, and has
// no lanes any more, does not. mu is held.
func (q *Queue[T]) list(t *target[T]) {
	last := len(q.limited)
	switch is := len(t.lanes) > 0 && (t.parked != nil || t.most < min(startLimit, q.cfg.PerTarget)); {
	case is && t.limited < 0:
		t.limited = last
		q.limited = append(q.limited, t)
	case !is && t.limited >= 0:
		last--
		q.limited[t.limited] = q.limited[last]
		q.limited[t.limited].limited = t.limited
		q.limited[last] = nil
		q.limited = q.limited[:last]
		t.limited = -1
	}
}

// LaneStats is how the work of an app for a target stands.
type LaneStats struct {
	App       string
	InFlight  int // calls of the app
	Waiting   int // items of the app
	Target    string
	Flow      string
	Limit     int // of calls in flight to the target, of all apps
	Answering bool
}

// Lanes describes the lanes of the apps that are selected.
func (q *Queue[T]) Lanes(selected func(app string) bool) (ls []LaneStats) {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lanes {
		if selected(l.app.name) {
			ls = append(ls, LaneStats{l.app.name, l.calls, l.waiting, l.target.name, l.name.flow, l.target.most, l.target.answers(now)})
		}
	}
	return ls
}
