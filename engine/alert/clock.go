package alert

import "time"

// clock is how the wall clock stood when the alerter looked last.
type clock struct {
	wall int64 // Unix ms
	at   time.Time
}

// leastBack is by how much the clock has to be set back to count as that.
const leastBack = 500 * time.Millisecond

// now is the wall clock, in Unix ms.
func (a *Alerter) now() int64 { return a.cfg.Now().UnixMilli() }

// readClock sees whether the clock was set back since it was read last. a.mu is held.
func (a *Alerter) readClock() {
	wall, at := a.now(), time.Now()
	if !a.clock.at.IsZero() {
		if back := a.clock.wall + at.Sub(a.clock.at).Milliseconds() - wall; back >= leastBack.Milliseconds() {
			a.setBack(a.clock.wall-back, back)
		}
	}
	a.clock = clock{wall, at}
}

// setBack takes account of a clock that was set back by so much (ms), and is to be called before
// what ended since is judged: what was judged must not lie after that. upTo is what the clock
// that is now would have shown at the last look. a.mu is held.
func (a *Alerter) setBack(upTo, by int64) {
	for _, at := range [...]*int64{&a.last, &a.lead.from, &a.lead.late, &a.lead.all} {
		*at = min(*at, upTo)
	}
	a.watch.setBack(upTo)
	for _, g := range a.judge.groups {
		for k := range g.recent {
			g.recent[k] -= by
		}
		for _, at := range [...]*int64{&g.since, &g.seen, &g.ended} {
			if *at != 0 {
				*at -= by
			}
		}
		if i := g.open; i != nil {
			i.Opened, i.Last, i.changed = min(i.Opened, upTo), min(i.Last, upTo), true
			if i.Next != 0 {
				i.Next -= by
			}
		}
	}
}
