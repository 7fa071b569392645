package fair

import "time"

// Ended says how a call ended, as far as its target's limit is concerned.
type Ended uint8

const (
	// NotMade: the worker made no call after all.
	NotMade Ended = iota
	// Answered: a whole answer came, whatever it says: a 500 is one.
	Answered
	// Unanswered: anything else. It counts as a timeout when the call took cheap
	// or longer, by its timeout, a broken connection or a name server. One that
	// was refused sooner cost little, and changes nothing.
	Unanswered
)

// Result of a call.
type Result struct {
	Ended Ended
	Took  time.Duration
	// Waited is for how long the call waited for its departure.
	Waited time.Duration
	// Bad: the call failed and may be repeated, or had no answer, and no 4xx. Close: its answer asks
	// that no more are made for so long. Both are for the gates of its lane.
	Bad   bool
	Close time.Duration
}

const (
	// startLimit of calls in flight to a target. A target that answers at once
	// gets no more done with more of them: with 256 in flight a call took 20 µs of
	// processor time, with 48 16 µs.
	startLimit = 48
	// slowCall is the mean time of an answer that is slow enough to lift a limit
	// of startLimit; for a higher one it is more, in proportion. So the limit rises
	// only while it lets the target answer fewer than 9,600 calls a second. By a
	// fixed time, calls that were slow only because there were so many of them would
	// have kept the limit up.
	slowCall = 5 * time.Millisecond
	// crowded is how many times longer than with startLimit calls in flight answers may
	// take for the limit to rise. On a machine, or to a target, that is at its limit with
	// fewer than 9,600 calls a second each further call in flight delays all others.
	crowded = 3
	// By so much time a slow answer lifts the limit by one more, up to longLift:
	// where answers are slow, they also are few.
	longCall = 250 * time.Millisecond
	longLift = time.Second
	// cheap is how long a call without an answer may have taken for nothing to
	// follow from it.
	cheap = 100 * time.Millisecond
	// patience is how much older than expected the calls in flight may be, on
	// average, before their target counts as silent.
	patience = 250 * time.Millisecond
)

// limit is what one target's calls say about the target: how many may be in flight,
// and whether answers can be expected.
//
// The limit doubles, or more, with each round of slow answers and halves with each
// round that had a timeout. It rises only while half of it is used: 2,000 calls in
// flight are 4,000 at most when the target goes mute.
type limit struct {
	calls int // in flight
	most  int // of them
	// begun is the sum of when the calls in flight began. It may wrap around; the
	// sum of their ages, which is taken from it, does not.
	begun time.Duration
	// waits is how many of the calls wait for their departures, and since the sum of since when.
	waits int
	since time.Duration
	// mean and square are moving averages of how long answered calls took, in s, and
	// of its square.
	mean, square float64
	// base is the average of mean's kind over answers that came while at most startLimit
	// calls were in flight.
	base     float64
	answered bool          // since the last timeout
	lowered  time.Duration // when a timeout lowered most
}

func (l *limit) full() bool { return l.calls >= l.most }

func (l *limit) begin(now time.Duration) {
	l.calls++
	l.begun += now
}

// end takes what a call showed that began at began. ceiling bounds the limit.
func (l *limit) end(began, now time.Duration, r Result, ceiling int) {
	switch {
	case r.Ended == Answered:
		l.learn(r.Took)
		l.raise(ceiling)
	case r.Ended == Unanswered && max(r.Took, now-began-r.Waited) >= cheap:
		l.answered = false
		if began >= l.lowered { // the first of its round
			l.most = max(1, min(l.most, max(startLimit, l.calls))/2)
			l.lowered = now
		}
	}
	l.calls--
	l.begun -= began
}

func (l *limit) learn(took time.Duration) {
	const weight = 1.0 / 32
	t := took.Seconds()
	if l.mean == 0 {
		l.mean, l.square, l.base = t, t*t, t
	}
	if l.calls <= startLimit {
		l.base += weight * (t - l.base)
	}
	l.mean += weight * (t - l.mean)
	l.square += weight * (t*t - l.square)
	l.answered = true
}

// raise lifts the limit for an answer, or lowers it where answers come at once, or take
// long because there are so many.
func (l *limit) raise(ceiling int) {
	start := min(startLimit, ceiling)
	slow := l.mean*startLimit > slowCall.Seconds()*float64(l.most) && l.mean < crowded*l.base
	switch {
	case l.most < start, slow && l.calls >= l.most/2:
		long := min(l.mean, longLift.Seconds()) / longCall.Seconds()
		l.most = min(l.most+1+int(long), ceiling)
	case !slow && l.most > start:
		l.most--
	}
}

// answers reports whether the target answers: the last timeout has been followed by an
// answer, and the calls in flight are no older, on average, than twice what calls
// with the usual answers would be, and patience. Of calls that take t, those in
// flight have an average age of E(t²)/2E(t).
//
// The time since the last answer would not do: a target that answers one call in a
// hundred and is mute to the others would pass.
func (l *limit) answers(now time.Duration) bool {
	if !l.answered {
		return false
	}
	ages := time.Duration(l.calls)*now - l.begun - (time.Duration(l.waits)*now - l.since)
	return ages.Seconds() <= float64(l.calls)*(l.square/max(l.mean, 1e-9)+patience.Seconds())
}
