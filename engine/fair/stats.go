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

// piece is how many lanes or targets are described while the queue is locked: whoever is to
// make a call waits meanwhile, and there may be a million lanes.
const piece = 256

// Stats describes at most n of the limited targets.
func (q *Queue[T]) Stats(n int) Stats {
	q.mu.Lock()
	s := Stats{
		Places: q.places, InFlight: q.calls, Silent: q.pools[silent].calls,
		Waiting: q.waiting, Limited: len(q.limited),
	}
	q.mu.Unlock()
	if n <= 0 {
		return s
	}
	// From the last one down: one that leaves the list has the last one take its place, which
	// may come twice then and is not missed.
	var all []TargetStats
	for end := s.Limited; end > 0; end -= piece {
		all = q.describeLimited(all, end-piece, end)
	}
	slices.SortFunc(all, func(a, b TargetStats) int { return b.Waiting - a.Waiting })
	seen := map[string]bool{}
	for _, t := range all {
		if len(s.Targets) < n && !seen[t.Target] {
			seen[t.Target] = true
			s.Targets = append(s.Targets, t)
		}
	}
	return s
}

// describeLimited appends how the limited targets of some places stand, as far as there are any.
func (q *Queue[T]) describeLimited(ts []TargetStats, from, end int) []TargetStats {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.limited)
	for _, t := range q.limited[min(max(from, 0), n):min(end, n)] {
		ts = append(ts, TargetStats{t.name, t.most, t.calls, t.waiting, t.answers(now)})
	}
	return ts
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
	switch is := len(t.lanes) > 0 && (t.parked != nil || t.most < min(startLimit, q.perTarget)); {
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

// Lanes describes the lanes of the apps that are selected. Each is described as it stands when
// its turn comes; those that are made meanwhile may be missing.
func (q *Queue[T]) Lanes(selected func(app string) bool) (ls []LaneStats) {
	q.mu.Lock()
	all := q.listed // never changed but at its end
	q.mu.Unlock()
	var mine []*Lane[T]
	for _, l := range all {
		if selected(l.name.app) {
			mine = append(mine, l)
		}
	}
	ls = make([]LaneStats, 0, len(mine))
	for part := range slices.Chunk(mine, piece) {
		ls = q.describe(ls, part)
	}
	return ls
}

// describe appends how lanes stand.
func (q *Queue[T]) describe(ls []LaneStats, lanes []*Lane[T]) []LaneStats {
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range lanes {
		if !l.dead.Load() {
			ls = append(ls, LaneStats{l.name.app, l.calls, l.waiting, l.target.name, l.name.flow, l.target.most, l.target.answers(now)})
		}
	}
	return ls
}
