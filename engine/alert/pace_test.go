package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// slowLoads is a world whose rule reads the definitions of each page of failures, which takes so long.
func slowLoads(t *testing.T, loads time.Duration) *world {
	w := newWorld(t, memory.NewCold())
	w.loads = loads
	w.channel(60)
	w.rule("r", func(r *Rule) { r.By, r.Match.Label = "rule", "team=a" })
	return w
}

// However many failures wait, the alerter judges them in turns of 2 ms, between which it rests
// for three times as long as a turn took: it takes a quarter of a processor, and no more time than
// that.
func TestTheAlerterWorksInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 40
		w := slowLoads(t, time.Millisecond)
		for i := range pages * judgedAtOnce {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		time.Sleep(burstTime)
		w.run()
		time.Sleep(time.Second)
		synctest.Wait()
		if len(w.began) != pages || w.Incidents("shop")[0].Count != pages*judgedAtOnce {
			t.Fatalf("%d pages were read: %+v", len(w.began), w.Incidents("shop"))
		}
		turn := w.began[0]
		for i, at := range w.began[1:] {
			switch ended := w.began[i].Add(w.loads); {
			case at.Equal(ended): // the same turn
				if at.Sub(turn) >= 2*time.Millisecond {
					t.Errorf("a turn goes on after %v", at.Sub(turn))
				}
			case at.Sub(ended) != 3*ended.Sub(turn):
				t.Errorf("after a turn of %v the alerter rests for %v", ended.Sub(turn), at.Sub(ended))
				fallthrough
			default:
				turn = at
			}
		}
		if all := w.began[pages-1].Sub(w.began[0]); all > 4*pages*w.loads {
			t.Errorf("%d pages of %v took %v", pages, w.loads, all)
		}
		w.stop()
	})
}

// For the first 10 s of a burst the alerter takes a hundredth of a processor: by then most are over.
func TestABurstWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages = 400
		w := slowLoads(t, time.Millisecond)
		w.run()
		for i := range pages * judgedAtOnce {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		time.Sleep(burstTime - time.Millisecond)
		synctest.Wait()
		if n := w.Incidents("shop")[0].Count; n > 110*judgedAtOnce {
			t.Errorf("in 10 s %d failures were counted", n)
		}
		w.says(2*time.Second, "incident.opened")
		synctest.Wait()
		if n := w.Incidents("shop")[0].Count; n != pages*judgedAtOnce {
			t.Errorf("%d failures are counted", n)
		}
		w.stop()
	})
}

// A tier that is slow does not have the alerter rest for longer than mostRest.
func TestTheAlerterRestsForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.loads = 20 * time.Second
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Match.Label = "team=a" })
		for i := range 2 * judgedAtOnce {
			w.ends(engine.TimerID(i+1), engine.Dead)
		}
		w.run()
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(w.began) != 2 || w.began[1].Sub(w.began[0]) != w.loads+5*time.Second {
			t.Errorf("pages are read at %v", w.began)
		}
		w.stop()
	})
}

// While others wait for the processors, which shows in a wake-up that is late, the alerter takes a
// twentieth of one.
func TestTheAlerterLeavesProcessorsToOthers(t *testing.T) {
	for _, x := range []struct{ took, late, waited, want time.Duration }{
		{2 * time.Millisecond, 0, 0, 6 * time.Millisecond},
		{2 * time.Millisecond, time.Millisecond, 10 * time.Second, 6 * time.Millisecond},
		{2 * time.Millisecond, 1100 * time.Microsecond, 0, 38 * time.Millisecond},
		{2 * time.Millisecond, 1100 * time.Microsecond, 9 * time.Second, 198 * time.Millisecond},
		{time.Second, time.Second, 0, 5 * time.Second},
	} {
		if got := restAfter(x.took, x.late, x.waited); got != x.want {
			t.Errorf("after %v, and woken %v late, with failures of %v ago: a rest of %v, want %v", x.took, x.late, x.waited, got, x.want)
		}
	}
}
