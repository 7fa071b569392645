package fair

import (
	"testing"
	"time"
)

// rounds has a limit's target answer, or not, as many calls at once as it allows, round
// after round. For each that ends another begins.
func rounds(l *limit, now *time.Duration, n int, r Result, ceiling int) {
	for l.calls < l.most {
		l.begin(*now)
	}
	for range n {
		began := *now
		*now += r.Took
		for range l.calls {
			l.end(began, *now, r, ceiling)
			for l.calls < l.most {
				l.begin(*now)
			}
		}
	}
	for l.calls > 0 {
		l.end(*now, *now, Result{}, ceiling)
	}
}

// The limit doubles at least with each round of slow answers, halves with each round of
// timeouts, down to one, and comes back with answers, however fast they are.
func TestLimitFollows(t *testing.T) {
	const ceiling = 4096
	l, now := limit{most: startLimit}, time.Second
	is := func(want int, why string) {
		t.Helper()
		if l.most != want {
			t.Errorf("%s: a limit of %d, not %d", why, l.most, want)
		}
	}
	rounds(&l, &now, 10, Result{Ended: Answered, Took: time.Millisecond}, ceiling)
	is(startLimit, "answers at once")
	l = limit{most: startLimit}
	rounds(&l, &now, 3, Result{Ended: Answered, Took: 100 * time.Millisecond}, ceiling)
	if l.most < 7*startLimit || l.most > 8*startLimit {
		t.Errorf("three rounds of slow answers: a limit of %d", l.most)
	}
	rounds(&l, &now, 20, Result{Ended: Answered, Took: 500 * time.Millisecond}, ceiling)
	is(ceiling, "one that has become five times as slow")
	l = limit{most: startLimit}
	rounds(&l, &now, 3, Result{Ended: Answered, Took: time.Second}, ceiling)
	is(ceiling, "three rounds of a second")
	rounds(&l, &now, 1, Result{Ended: Unanswered, Took: 15 * time.Second}, ceiling)
	is(ceiling/2, "a round of timeouts")
	rounds(&l, &now, 20, Result{Ended: Unanswered, Took: 15 * time.Second}, ceiling)
	is(1, "timeouts alone")
	rounds(&l, &now, 4, Result{Ended: Answered, Took: 10 * time.Microsecond}, ceiling)
	if l.most < 16 || !l.answers(now) {
		t.Errorf("four rounds of answers: a limit of %d", l.most)
	}
	rounds(&l, &now, 10, Result{Ended: Answered, Took: time.Millisecond}, ceiling)
	was := l.most
	rounds(&l, &now, 10, Result{Ended: Unanswered, Took: 10 * time.Millisecond}, ceiling)
	rounds(&l, &now, 10, Result{Ended: NotMade, Took: time.Second}, ceiling)
	is(was, "refused at once, and not made")
	if !l.answers(now) {
		t.Error("a refusal made it silent")
	}
}

// A limit that is not used does not rise, and falls from where it is used.
func TestLimitIsUsed(t *testing.T) {
	l, now := limit{most: startLimit}, time.Second
	for range 10_000 {
		l.begin(now)
		now += time.Second
		l.end(now-time.Second, now, Result{Ended: Answered, Took: time.Second}, 4096)
	}
	if l.most != startLimit {
		t.Errorf("one call at a time gives a limit of %d", l.most)
	}
	l.most = 4000
	l.begin(now)
	l.end(now, now+time.Minute, Result{Ended: Unanswered, Took: time.Minute}, 4096)
	if l.most != startLimit/2 {
		t.Errorf("a timeout with one call in flight gives a limit of %d", l.most)
	}
}

// A target that is slow only because so many calls are in flight, as on a machine at its
// limit, does not keep them.
func TestLimitOfABusyMachine(t *testing.T) {
	for rate, most := range map[time.Duration]int{34_000: startLimit + 5, 5_000: 4 * startLimit} { // calls a second
		l, now := limit{most: startLimit}, time.Second
		for range 2000 {
			rounds(&l, &now, 1, Result{Ended: Answered, Took: time.Duration(l.most) * time.Second / rate}, 4096)
		}
		if l.most > most {
			t.Errorf("%d calls a second: a limit of %d", rate, l.most)
		}
	}
}

// Answers are what tells: not the time since one came, and not how long they take.
func TestAnswers(t *testing.T) {
	now := time.Minute
	l := limit{most: startLimit}
	if l.answers(now) {
		t.Error("one that was never called answers")
	}
	// Nine in ten take 1 ms, one takes 1 s: of those in flight nearly all are slow.
	for i := range 1000 {
		took := time.Millisecond
		if i%10 == 0 {
			took = time.Second
		}
		l.begin(now - took)
		l.end(now-took, now, Result{Ended: Answered, Took: took}, 4096)
	}
	for i := range 40 {
		l.begin(now - time.Duration(i)*25*time.Millisecond)
	}
	if !l.answers(now) {
		t.Error("one whose calls in flight are as old as usual does not answer")
	}
	// They all hang, and only new ones are answered, at once.
	for range 3000 {
		now += time.Millisecond
		l.begin(now - time.Millisecond)
		l.end(now-time.Millisecond, now, Result{Ended: Answered, Took: time.Millisecond}, 4096)
	}
	if l.answers(now) {
		t.Error("one with 40 calls that hang answers")
	}
}
