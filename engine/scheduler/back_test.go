package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// TestColdGoesBack: the cold tier is restored as it was 20 s before. What the journal keeps
// is not called again, also if it may be called at most once, and is in history again.
func TestColdGoesBack(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		begin(t, func(t *testing.T, w *world) {
			if keeps {
				w.journal.settled = &engine.Watermarks{}
			}
			once := w.make(timer("once", every(time.Second), atMostOnce))
			w.replies("fails", fail, fail, ok)
			w.make(timer("fails", every(4*time.Second), retry(4, time.Second, 1)))
			w.replies("waits", fail, ok) // its retry falls into the time that is lost
			waits := w.make(timer("waits", delay(25*time.Second), retry(4, 10*time.Second, 1)))
			w.make(timer("shot", delay(40*time.Second)))
			time.Sleep(30 * time.Second)
			restore := w.cold.Snapshot()
			w.replies("new", fail)
			w.make(timer("new", every(time.Second), retry(9, time.Minute, 1)))
			time.Sleep(20*time.Second + 500*time.Millisecond)
			w.kill()
			restore()
			from := w.now()
			time.Sleep(time.Second)
			w.start()
			time.Sleep(20 * time.Second)
			repeats := 0
			for _, name := range []string{"once", "fails", "waits", "shot"} {
				seen := map[[2]int64]bool{}
				for _, c := range w.of(name) {
					k := [2]int64{c.key.Due, int64(c.attempt)}
					if seen[k] {
						repeats++
					}
					seen[k] = true
				}
			}
			if (repeats > 0) == keeps {
				t.Errorf("with what was settled kept: %v, %d repeats", keeps, repeats)
			}
			for _, c := range w.of("new") {
				if c.at > from {
					t.Errorf("a timer that is gone was called at %d", c.at)
				}
			}
			if keeps {
				w.settle()
				if got, want := len(w.verdicts(once, w.starts[0])), len(w.of("once")); got != want {
					t.Errorf("%d records of %d calls", got, want)
				}
				equal(t, "verdicts", w.verdicts(waits, w.starts[0]), []string{"25s succeeded"})
			}
		})
	}
}

// The tier goes back to the time before a node gave a part of its shards to another, and the node starts again and has
// them: it repeats no call, also of the results that it settled as it gave the shards.
func TestColdGoesBackOverAHandover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.journal.settled = &engine.Watermarks{}
		a.start()
		time.Sleep(1300 * time.Millisecond)
		var names []string
		for i := range 400 {
			names = append(names, fmt.Sprint("shot-", i))
			a.make(timer(names[i], at(w.now()+2000+10*int64(i))))
		}
		time.Sleep(3 * time.Second)
		restore := a.node.table.Snapshot()
		b.start()
		time.Sleep(4 * time.Second)
		if n := b.node.owns(); n != engine.Shards/2 {
			t.Fatalf("the second node owns %d shards", n)
		}
		a.kill()
		b.kill()
		restore()
		a.start()
		time.Sleep(5 * time.Second)
		repeats := 0
		for _, name := range names {
			if len(ofAll(ws, name)) == 0 {
				t.Errorf("%s was not called", name)
			}
			repeats += max(0, len(a.of(name))-1)
		}
		if repeats > 0 {
			t.Errorf("the node called %d tasks again", repeats)
		}
	})
}
