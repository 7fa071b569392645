package fair

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// manner is what a target does with its n-th call, so long after the beginning.
type manner func(n int, at time.Duration) Result

const timeout = 15 * time.Second

func mute(int, time.Duration) Result { return Result{Ended: Unanswered, Took: timeout} }

func answers(after time.Duration) manner {
	return func(int, time.Duration) Result { return Result{Ended: Answered, Took: after} }
}

// stream is calls of one app to one target, so many a second.
type stream struct {
	app, to string
	rate    float64
	manner
	from time.Duration

	due, made int
	late      []time.Duration
}

type due struct {
	Item[*due]
	s  *stream
	at time.Time
}

// play has the streams' calls fall due for so long, and returns when none is in
// flight any more. look is called each second.
func play(t *testing.T, length time.Duration, streams []*stream, look func(at time.Duration, q *Queue[*due])) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		begun := time.Now()
		var q *Queue[*due]
		lock := make(chan struct{}, 1)
		q = New(Config[*due]{Places: 8192, PerApp: 8192, PerTarget: 4096, Run: func(d *due) Result {
			lock <- struct{}{}
			d.s.made++
			d.s.late = append(d.s.late, time.Since(d.at))
			n := d.s.made
			<-lock
			r := d.s.manner(n, time.Since(begun))
			time.Sleep(r.Took)
			return r
		}})
		const tick = 10 * time.Millisecond
		for at := time.Duration(0); at < length; at += tick {
			var items []*Item[*due]
			for _, s := range streams {
				if at < s.from {
					continue
				}
				for want := int((at - s.from + tick).Seconds() * s.rate); s.due < want; s.due++ {
					d := &due{s: s, at: time.Now()}
					d.Item = Item[*due]{Value: d, Lane: q.Lane(s.app, s.to, ""), Priority: 5, Ready: time.Now().UnixMilli()}
					items = append(items, &d.Item)
				}
			}
			q.Push(items...)
			if look != nil && at%time.Second == 0 {
				look(at, q)
			}
			time.Sleep(tick)
		}
		time.Sleep(time.Second) // of what is on time, nothing waits any more
		q.Close()
		q.Wait()
	})
}

// after is how late the calls were that fell due after the first so many.
func (s *stream) after(n int) []time.Duration { return s.late[min(n, len(s.late)):] }

// onTime fails the test unless all calls of a stream were made at once, except for the first
// so many.
func (s *stream) onTime(t *testing.T, first int) {
	t.Helper()
	late := slices.Max(append(s.after(first), 0))
	if s.made < s.due || late > 20*time.Millisecond {
		t.Errorf("%s/%s: %d of %d calls made, late by up to %v", s.app, s.to, s.made, s.due, late)
	}
}

// many makes n streams, to a target each, of one app or of an app each.
func many(n int, oneApp bool, rate float64, m func() manner) (ss []*stream) {
	for i := range n {
		app := "hostile"
		if !oneApp {
			app = fmt.Sprint("hostile", i)
		}
		ss = append(ss, &stream{app: app, to: fmt.Sprint("hostile", i), rate: rate, manner: m()})
	}
	return ss
}

func always(m manner) func() manner { return func() manner { return m } }

// Two mute targets in an app and six in others leave the others alone.
func TestEightMute(t *testing.T) {
	healthy := &stream{app: "hostile", to: "healthy", rate: 100, manner: answers(time.Millisecond)}
	ss := append(many(2, true, 200, always(mute)), many(8, false, 200, always(mute))[2:]...)
	play(t, 80*time.Second, append(ss, healthy), nil)
	healthy.onTime(t, 0)
}

// Whatever hostile targets do, how many they are, and whether they are of one app: a
// healthy target of their app, of another, and one that nobody called before, get
// all their calls on time.
func TestHostile(t *testing.T) {
	manners := map[string]func() manner{
		"mute":      always(mute),
		"500s":      always(answers(time.Millisecond)),
		"slow drip": always(answers(14 * time.Second)),
		"seldom": func() manner { // one answer in a hundred
			return func(n int, _ time.Duration) Result {
				if n%100 == 0 {
					return Result{Ended: Answered, Took: time.Millisecond}
				}
				return Result{Ended: Unanswered, Took: timeout}
			}
		},
		"late seldom": func() manner {
			return func(n int, _ time.Duration) Result {
				if n%100 == 0 {
					return Result{Ended: Answered, Took: timeout - time.Second}
				}
				return Result{Ended: Unanswered, Took: timeout}
			}
		},
		"flapping": func() manner {
			return func(_ int, at time.Duration) Result {
				if at.Truncate(10*time.Second)/(10*time.Second)%2 == 0 {
					return Result{Ended: Answered, Took: 10 * time.Millisecond}
				}
				return Result{Ended: Unanswered, Took: timeout}
			}
		},
		"refused": func() manner {
			return func(int, time.Duration) Result { return Result{Ended: Unanswered, Took: time.Millisecond} }
		},
		"reset": func() manner {
			return func(int, time.Duration) Result { return Result{Ended: Unanswered, Took: time.Second} }
		},
	}
	for name, m := range manners {
		for _, c := range []struct {
			n      int
			oneApp bool
			rate   float64
		}{{2, true, 200}, {100, false, 30}, {1000, true, 3}, {1000, false, 3}} {
			t.Run(fmt.Sprintf("%s/%d/one app %v", name, c.n, c.oneApp), func(t *testing.T) {
				t.Parallel()
				same := &stream{app: "hostile", to: "healthy", rate: 100, manner: answers(10 * time.Millisecond)}
				other := &stream{app: "other", to: "other", rate: 100, manner: answers(10 * time.Millisecond)}
				late := &stream{app: "hostile", to: "new", rate: 20, from: 12 * time.Second, manner: answers(10 * time.Millisecond)}
				hostile := many(c.n, c.oneApp, c.rate, m)
				play(t, 24*time.Second, append(hostile, same, other, late), func(at time.Duration, q *Queue[*due]) {
					if s := q.Stats(1); s.Silent > s.Places/2 {
						t.Errorf("%v: %d places are held by targets that do not answer", at, s.Silent)
					}
				})
				same.onTime(t, 0)
				other.onTime(t, 0)
				late.onTime(t, 0)
			})
		}
	}
}

// A target that takes 100 ms gets 5,000 calls a second and one that takes 1 s gets
// 2,000, both at once and beside 1,000 mute ones of the same app: on time, once their
// limits have followed.
func TestSlowAndBusy(t *testing.T) {
	quick := &stream{app: "hostile", to: "100ms", rate: 5000, manner: answers(100 * time.Millisecond)}
	slow := &stream{app: "hostile", to: "1s", rate: 2000, manner: answers(time.Second)}
	play(t, 30*time.Second, append(many(1000, true, 1, always(mute)), quick, slow), nil)
	quick.onTime(t, 5000*5)
	slow.onTime(t, 2000*10)
}

// A target that goes mute with 2,000 calls in flight takes nothing from others: not from
// one with many in flight, not from one that nobody called before.
func TestGoesMute(t *testing.T) {
	for _, n := range []int{1, 2} { // of them at once
		var ss []*stream
		for i := range n {
			ss = append(ss, &stream{app: "a", to: fmt.Sprint("mute", i), rate: 2000, manner: func(_ int, at time.Duration) Result {
				if at > 20*time.Second {
					return Result{Ended: Unanswered, Took: timeout}
				}
				return Result{Ended: Answered, Took: time.Second}
			}})
		}
		busy := &stream{app: "a", to: "busy", rate: 2000, manner: answers(100 * time.Millisecond)}
		other := &stream{app: "b", to: "new", rate: 100, from: 25 * time.Second, manner: answers(10 * time.Millisecond)}
		fresh := many(50, false, 10, always(answers(10*time.Millisecond)))
		for _, s := range fresh {
			s.from = 28 * time.Second
		}
		play(t, 45*time.Second, append(slices.Concat(ss, fresh), busy, other), nil)
		busy.onTime(t, 5*2000)
		other.onTime(t, 0)
		for _, s := range fresh {
			s.onTime(t, 0)
		}
	}
}

// A target that was mute for a minute is down to one probe at a time; when it answers
// again, what waited is called as fast as it answers.
func TestRecovery(t *testing.T) {
	const mended = 5 * time.Minute
	s := &stream{app: "a", to: "t", rate: 20, manner: func(_ int, at time.Duration) Result {
		if at < mended {
			return Result{Ended: Unanswered, Took: timeout}
		}
		return Result{Ended: Answered, Took: 20 * time.Millisecond}
	}}
	play(t, 7*time.Minute, []*stream{s}, func(at time.Duration, q *Queue[*due]) {
		st := q.Stats(10)
		switch {
		case at == mended-time.Second:
			if len(st.Targets) != 1 || st.Limited != 1 || st.InFlight != 1 || st.Targets[0].Limit != 1 || st.Targets[0].Answering || st.Targets[0].Waiting != st.Waiting {
				t.Errorf("mute for long: %+v", st)
			}
		case at == mended+20*time.Second:
			if st.Waiting > 0 || st.Limited != 0 || len(st.Targets) != 0 {
				t.Errorf("mended: %+v", st)
			}
		}
	})
}

// A queue that has long been at its limit shares it evenly among the lanes of an app, and
// among apps to a factor of two, however many lanes each has.
func TestShares(t *testing.T) {
	small := many(4, false, 300, always(answers(10*time.Second)))
	big := many(40, true, 300, always(answers(10*time.Second)))
	play(t, 100*time.Second, slices.Concat(small, big), func(at time.Duration, q *Queue[*due]) {
		if at != 95*time.Second {
			return
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		var apps, lanes []int
		for _, a := range q.apps {
			apps = append(apps, a.calls)
		}
		for _, l := range q.lanes {
			if l.app.name == "hostile" {
				lanes = append(lanes, l.calls)
			}
		}
		if n := slices.Max(lanes) - slices.Min(lanes); n > 2 {
			t.Errorf("lanes of an app hold %v", lanes)
		}
		slices.Sort(apps)
		if apps[4] > apps[0]*2 || q.calls < q.places*3/4 {
			t.Errorf("apps hold %v of %d", apps, q.places)
		}
	})
}
