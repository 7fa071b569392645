package cluster

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine"
)

func TestTimesScale(t *testing.T) {
	want := Times{Beat: 400 * ms, Look: 200 * ms, Hold: 1200 * ms, Silence: 1800 * ms, Gap: 400 * ms, Listen: 480 * ms, Spare: time.Second}
	if usual != want {
		t.Errorf("the usual times are %+v, want %+v", usual, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(int64(ms), int64(time.Hour)).Draw(t, "lease"))
		x := TimesOf(d)
		near := func(got time.Duration, part float64) bool {
			return got <= time.Duration(part*float64(d)+1) && got >= time.Duration(part*float64(d))-100
		}
		if x.Silence != d || !near(x.Beat, 2./9) || !near(x.Look, 1./9) || !near(x.Hold, 2./3) || !near(x.Gap, 2./9) || !near(x.Listen, 4./15) || !near(x.Spare, 5./9) {
			t.Fatalf("the times of %v are %+v", d, x)
		}
		if 3*x.Hold > 2*x.Silence {
			t.Fatalf("of %v the hold is %v and the silence %v: their clocks may differ by less than 1.5", d, x.Hold, x.Silence)
		}
	})
}

func TestLease(t *testing.T) {
	l := NewLease(1200 * ms)
	fresh := func(at time.Duration, want bool) {
		t.Helper()
		if got := l.Fresh(at); got != want {
			t.Errorf("at %v fresh is %v", at, got)
		}
	}
	fresh(0, false)
	fresh(-time.Hour, false)
	l.Acknowledge(100 * ms)
	fresh(1300*ms-1, true)
	fresh(1300*ms, false)
	l.Acknowledge(1000 * ms)
	l.Acknowledge(600 * ms) // its answer was late
	fresh(2200*ms-1, true)
	fresh(2200*ms, false)
	l.Acknowledge(3000 * ms) // quiet, and back
	fresh(4000*ms, true)
	l.End()
	fresh(3000*ms, false)
	l.Acknowledge(5000 * ms)
	fresh(5000*ms, false)
}

// request is one beat, in true time: it may be committed long after the holder has given
// up, its answer may be late or lost.
type request struct {
	began, committed time.Duration
	answered         bool
}

// glance is one look: what it reads is the table at one instant of it.
type glance struct{ read, ended time.Duration }

// burial is a holder that beats, and a looker that watches it and then evicts, each with a
// clock of its own that runs at a rate of its own.
type burial struct {
	times                  Times
	holderRate, lookerRate float64
	beats                  []request
	looks                  []glance
	evictTakes             time.Duration
}

func at(rate float64, t time.Duration) time.Duration { return time.Duration(rate * float64(t)) }

// beat is how many beats are committed at an instant.
func (b *burial) beat(at time.Duration) (n uint64) {
	for _, r := range b.beats {
		if r.committed <= at {
			n++
		}
	}
	return n
}

// isUnsafe reports whether the holder may still call when it has been evicted, and whether
// it was evicted at all.
func (b *burial) isUnsafe() (unsafe, evicted bool) {
	w := NewWatch("looker", b.times)
	for _, l := range b.looks {
		silent := w.See(at(b.lookerRate, l.ended), true, []engine.Node{{Name: "holder", Life: 1, Beat: b.beat(l.read)}})
		when := l.ended + b.evictTakes
		if len(silent) == 0 || b.beat(when) != silent[0].Beat {
			continue
		}
		lease := NewLease(b.times.Hold)
		for _, r := range b.beats { // whenever the answer comes: it extends from the start
			if r.committed <= when && r.answered {
				lease.Acknowledge(at(b.holderRate, r.began))
			}
		}
		return lease.Fresh(at(b.holderRate, when)), true
	}
	return false, false
}

// A life has stopped calling before it is evicted, whatever takes how long, while the
// looker's clock runs at most 1.5 times as fast as the holder's.
func TestHolderStopsBeforeItIsBuried(t *testing.T) {
	evictions := 0
	rapid.Check(t, func(t *rapid.T) {
		b := &burial{times: TimesOf(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "lease")) * ms)}
		b.holderRate = rapid.Float64Range(0.5, 2).Draw(t, "rate")
		b.lookerRate = b.holderRate * rapid.OneOf(rapid.Just(1.5), rapid.Float64Range(0.5, 1.5)).Draw(t, "looker's rate")
		delay := func(what string, most time.Duration) time.Duration {
			return time.Duration(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, int64(most))).Draw(t, what))
		}
		now := delay("first beat", b.times.Silence)
		for range rapid.IntRange(1, 12).Draw(t, "beats") {
			r := request{began: now, committed: now + delay("commit", b.times.Silence), answered: rapid.IntRange(0, 4).Draw(t, "answer") > 0}
			b.beats = append(b.beats, r)
			now += at(1/b.holderRate, b.times.Beat) + delay("pause", b.times.Silence)
		}
		end := now + at(4/b.lookerRate, b.times.Silence)
		for now = delay("first look", b.times.Silence); now < end; {
			read := now + delay("look", b.times.Gap/4)
			now = read + delay("its answer", b.times.Gap/4)
			b.looks = append(b.looks, glance{read, now})
			now += at(1/b.lookerRate, b.times.Look) / 2
		}
		b.evictTakes = delay("evict", b.times.Silence)
		unsafe, evicted := b.isUnsafe()
		if unsafe {
			t.Fatal("the holder calls after it was evicted")
		}
		if evicted {
			evictions++
		}
	})
	if evictions == 0 {
		t.Error("no holder was evicted")
	}
}

// The bound of 1.5 is not larger than it must be: at 1.6 a holder calls too long.
func TestRatesBeyondTheBound(t *testing.T) {
	for rate, want := range map[float64]bool{1: false, 1.5: false, 1.6: true} {
		b := &burial{times: usual, holderRate: 1, lookerRate: rate, beats: []request{{0, 0, true}}}
		for now := time.Duration(0); now < 3*time.Second; now += ms {
			b.looks = append(b.looks, glance{now, now})
		}
		if unsafe, evicted := b.isUnsafe(); unsafe != want || !evicted {
			t.Errorf("at a rate of %v: evicted %v, unsafe %v", rate, evicted, unsafe)
		}
	}
}
