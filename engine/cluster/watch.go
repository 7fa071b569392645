package cluster

import (
	"time"

	"xtimer/engine"
)

// Watch is how long one looker has seen each life not beat, by the looker's own clock.
//
// A life is silent when its beat did not change for Times.Silence. That counts only
// while the looker sees all of it: no two looks are further apart than Times.Gap, and the
// looker's own beats are acknowledged. Otherwise the looker was stopped, or the table is
// away, and nothing is known of the others: it watches anew. So an outage of the table
// makes no life silent.
//
// A Watch is for one goroutine.
type Watch struct {
	times Times
	own   string // the looker's node
	last  time.Duration
	seen  map[string]sight
}

// sight is since when a pulse is seen.
type sight struct {
	pulse engine.Pulse
	since time.Duration
}

// Seen is a look, and for how long the looker has seen the other lives not beat.
type Seen struct {
	engine.Membership
	sights map[string]sight
	boot   func() time.Duration
	from   time.Duration // when the look began
}

// oldest is how old a look may be that tells the time of the table.
const oldest = 2 * time.Second

// Time is between which instants (Unix ms) the clock of the table is now, whatever the clocks of
// the nodes are and if their rates differ by half; false: the look is too old.
func (s *Seen) Time() (earliest, latest int64, ok bool) {
	age := s.boot() - s.from
	return s.Now, s.Now + (age + age/2).Milliseconds() + 1, age <= oldest
}

// unbeaten is how long a node has not beaten, as far as the looker knows: 0 for the looker's
// own.
func (s *Seen) unbeaten(node string) time.Duration {
	if x, ok := s.sights[node]; ok {
		return max(s.boot()-x.since, 0)
	}
	return 0
}

// NewWatch returns the watch of a node.
func NewWatch(own string, times Times) *Watch { return &Watch{times: times, own: own} }

// See notes what a look has read. now is an instant after the answer: a life whose beat was
// read beat before now, and its silence counts from now. fresh reports whether the looker's
// own lease is fresh; a look without a fresh lease forgets all that was seen before.
// See returns the pulses of the lives that may be buried, in the order of the nodes.
func (w *Watch) See(now time.Duration, fresh bool, nodes []engine.Node) (silent []engine.Pulse) {
	was := w.seen
	if now-w.last > w.times.Gap {
		was = nil
	}
	w.last, w.seen = now, make(map[string]sight, len(nodes))
	if !fresh {
		return nil
	}
	for i := range nodes {
		p := nodes[i].Pulse()
		if p.Life == 0 || p.Node == w.own {
			continue
		}
		s := sight{p, now}
		if before, seen := was[p.Node]; seen && before.pulse == p { // another beat, also a lower one, is a sign of life
			s.since = before.since
		}
		w.seen[p.Node] = s
		if now-s.since >= w.times.Silence {
			silent = append(silent, p)
		}
	}
	return silent
}
