package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine"
)

const ms = time.Millisecond

var usual = TimesOf(1800 * ms)

// looking is a watch of one other node, b, that looks at its pace.
type looking struct {
	*Watch
	t    *testing.T
	now  time.Duration
	beat uint64
}

func look(t *testing.T) *looking { return &looking{Watch: NewWatch("a", usual), t: t, now: time.Hour} }

// lasts looks for a time, while b beats or does not, and returns after how long b was silent
// first; 0: never.
func (l *looking) lasts(d time.Duration, beats, fresh bool) (after time.Duration) {
	for from := l.now; l.now < from+d; {
		l.now += usual.Look
		if beats {
			l.beat++
		}
		if l.see(fresh) && after == 0 {
			after = l.now - from
		}
	}
	return after
}

func (l *looking) see(fresh bool) bool {
	l.t.Helper()
	silent := l.See(l.now, fresh, []engine.Node{{Name: "a", Life: 1}, {Name: "b", Life: 2, Beat: l.beat}, {Name: "c"}})
	if len(silent) > 1 || len(silent) == 1 && silent[0] != (engine.Pulse{Node: "b", Life: 2, Beat: l.beat}) {
		l.t.Fatalf("silent: %v", silent)
	}
	return len(silent) == 1
}

func (l *looking) never(what string, after time.Duration) {
	l.t.Helper()
	if after != 0 {
		l.t.Errorf("%s: b was silent after %v", what, after)
	}
}

func TestSilence(t *testing.T) {
	l := look(t)
	l.never("b beats", l.lasts(time.Minute, true, true))
	if after := l.lasts(time.Minute, false, true); after != 1800*ms {
		t.Errorf("silent after %v", after)
	}
	l.never("b beats again", l.lasts(time.Minute, true, true))
}

// When the table is away, nobody beats and nobody looks: nobody is buried then, and
// nobody afterwards who beats again in time.
func TestOutageBuriesNobody(t *testing.T) {
	l := look(t)
	l.lasts(time.Second, true, true)
	l.now += 20 * time.Second
	l.never("after an outage", l.lasts(1600*ms, false, true))
	l.never("b beats again", l.lasts(time.Minute, true, true))

	// Where the table is read, but not written, the looker's own beats say so.
	l.never("the table is not written", l.lasts(20*time.Second, false, false))
	l.never("after that", l.lasts(1600*ms, false, true))
	l.never("b beats again", l.lasts(time.Minute, true, true))

	// An own beat that failed in the middle.
	l.never("half a silence", l.lasts(time.Second, false, true))
	l.never("not fresh", l.lasts(usual.Look, false, false))
	l.never("half a silence", l.lasts(1600*ms, false, true))
	if !(l.lasts(time.Second, false, true) > 0) {
		t.Error("b is never silent")
	}
}

// A looker that was stopped knows nothing of the time since.
func TestStoppedLookerWatchesAnew(t *testing.T) {
	l := look(t)
	for _, stop := range []time.Duration{usual.Gap + 1 - usual.Look, 2 * time.Second, time.Hour} {
		l.never("before", l.lasts(time.Second, false, true))
		l.now += stop
		l.never(fmt.Sprintf("after a stop of %v", stop), l.lasts(1600*ms, false, true))
		l.beat++
	}
}

// A table that went back shows a lower beat: somebody wrote it there.
func TestBeatThatGoesBack(t *testing.T) {
	l := look(t)
	l.beat = 100
	l.never("before", l.lasts(1600*ms, false, true))
	l.beat = 40
	l.never("after", l.lasts(1600*ms, false, true))
	if after := l.lasts(time.Second, false, true); after == 0 {
		t.Error("b is never silent")
	}
}

// A life is silent if and only if an unbroken row of good looks, as long as a silence,
// saw one pulse of it.
func TestWatchModel(t *testing.T) {
	type told struct {
		now   time.Duration
		fresh bool
		nodes []engine.Node
	}
	rapid.Check(t, func(t *rapid.T) {
		w := NewWatch("n0", usual)
		now := time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "now"))
		nodes := []engine.Node{{Name: "n0", Life: 9}, {Name: "n1", Life: 1}, {Name: "n2", Life: 2}, {Name: "n3"}}
		var all []told
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			now += rapid.SampledFrom([]time.Duration{0, 200 * ms, 200 * ms, 201 * ms, 300 * ms, 400 * ms, 400*ms + 1, 2 * time.Second}).Draw(t, "after")
			read := slices.Clone(nodes)
			if n := &nodes[rapid.IntRange(0, 40).Draw(t, "node")%4]; n.Name != "n0" {
				switch rapid.IntRange(0, 60).Draw(t, "changes") {
				case 0, 1:
					n.Beat++
				case 2:
					n.Beat--
				case 3:
					n.Life = rapid.Uint64Range(0, 3).Draw(t, "life")
				case 4:
					read = slices.DeleteFunc(read, func(r engine.Node) bool { return r.Name == n.Name })
				}
			}
			all = append(all, told{now, rapid.IntRange(0, 30).Draw(t, "fresh") > 0, read})
			var want []engine.Pulse
			for _, n := range read {
				if n.Life == 0 || n.Name == "n0" {
					continue
				}
				since, next := time.Duration(-1), now
				for _, a := range slices.Backward(all) {
					if !a.fresh || next-a.now > 400*ms || !slices.ContainsFunc(a.nodes, func(o engine.Node) bool { return o.Pulse() == n.Pulse() }) {
						break
					}
					since, next = a.now, a.now
				}
				if since >= 0 && now-since >= 1800*ms {
					want = append(want, n.Pulse())
				}
			}
			last := all[len(all)-1]
			if got := w.See(now, last.fresh, last.nodes); !slices.Equal(got, want) {
				t.Fatalf("look %d: silent are %v, want %v", len(all), got, want)
			}
		}
	})
}
