package cluster

import (
	"sync"
	"time"
)

// answers is how long the beats of a life took of late until they were acknowledged, or were
// given up. The slowest counts for one to two spans.
type answers struct {
	mu      sync.Mutex
	from    time.Duration    // the begin of the span
	slowest [2]time.Duration // of the span, and of the one before
}

// answersSpan is the length of a span.
const answersSpan = 5 * time.Minute

// note notes a beat that ended now. It reports whether none of late took as long as a time,
// and this one did.
func (x *answers) note(now, took, long time.Duration) (isNew bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pass(now)
	isNew = took >= long && max(x.slowest[0], x.slowest[1]) < long
	x.slowest[0] = max(x.slowest[0], took)
	return isNew
}

// pass forgets what is too long ago. mu is held.
func (x *answers) pass(now time.Duration) {
	switch {
	case now-x.from >= 2*answersSpan:
		x.from, x.slowest = now, [2]time.Duration{}
	case now-x.from >= answersSpan:
		x.from, x.slowest = x.from+answersSpan, [2]time.Duration{0, x.slowest[0]}
	}
}

// SlowestBeat is how long the slowest beat of the last 5 to 10 minutes took until the table
// acknowledged it, or until it was given up. tooSlow: one was given up, so the lease is too
// short for the table, or for this machine.
func (m *Member) SlowestBeat() (took time.Duration, tooSlow bool) {
	x := &m.answers
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pass(m.cfg.Boot())
	took = max(x.slowest[0], x.slowest[1])
	return took, took >= m.cfg.Times.answer()
}

// Times are those of the life.
func (m *Member) Times() Times { return m.cfg.Times }

// noteBeat notes a beat that took some time until its answer.
func (m *Member) noteBeat(took time.Duration) {
	if m.answers.note(m.cfg.Boot(), took, m.cfg.Times.answer()) {
		m.cfg.Log.Warn("the database did not confirm a beat of this node in time: the database or this machine is too slow for --lease. After some such beats, this node makes no calls, and other nodes take its timers. If this happens without an outage, set a longer --lease on all nodes",
			"took", took.Round(time.Millisecond), "at_most", m.cfg.Times.answer(), "lease", m.cfg.Times.Silence)
	}
}
