package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// calledInOrder holds that the first calls of at least so many dues were made in their order, up to one that was due
// at an instant or later. A call of a dead node may come again.
func calledInOrder(t *testing.T, name string, cs []call, least int, upTo int64) {
	t.Helper()
	seen, latest := map[int64]bool{}, int64(0)
	for _, c := range cs {
		if !seen[c.key.Due] && c.key.Due < latest {
			t.Errorf("%s of %s is called at %s, after %s", stamp(c.key.Due), name, stamp(c.at), stamp(latest))
		}
		seen[c.key.Due], latest = true, max(latest, c.key.Due)
	}
	if len(seen) < least || latest < upTo {
		t.Errorf("%d dues of %s were called, the last one of %s", len(seen), name, stamp(latest))
	}
}

// The dues of a queue are called in their order, also where a node takes shards over while the
// cold tier is slow: here 3 s go by between the load of the next dues and the reading of the rows.
func TestQueueOfATakeover(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprint("queue-", i))
			a.make(timer(names[i], every(time.Second), overlap(engine.OverlapQueue)))
		}
		time.Sleep(4 * time.Second)
		b.before.set(func(op string, _ any) error {
			if op == "Lanes" {
				time.Sleep(3 * time.Second)
			}
			return nil
		})
		a.kill()
		time.Sleep(30 * time.Second)
		for _, name := range names {
			calledInOrder(t, name, ofAll(ws, name), 30, w.now()-1100)
		}
		b.settle()
	})
}

// Nor does refill begin with a later one, where it has been beyond the rows of the shards in a lane of its own
// when they come.
func TestQueueOfATakeoverInALaneThatIsFull(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		for _, x := range ws {
			x.config.MaxWaiting = 40
			x.start()
		}
		time.Sleep(1300 * time.Millisecond)
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprint("queue-", i))
			for _, x := range ws {
				x.behave(names[i], func(*call) reply { return slow(300 * time.Millisecond) })
			}
			ws[i%2].make(timer(names[i], every(250*time.Millisecond), overlap(engine.OverlapQueue)))
		}
		time.Sleep(20 * time.Second)
		b.slowly("Lanes", 3*time.Second)
		a.kill()
		time.Sleep(40 * time.Second)
		for _, name := range names {
			calledInOrder(t, name, b.of(name), 20, 0)
		}
	})
}

// Nor where the cold tier was away while the node started: the rows of the dues that came meanwhile, and of
// those that came before, are read before a due is called that comes after the recovery.
func TestQueueAfterAStartDuringAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(1)
		a := ws[0]
		a.start()
		time.Sleep(1300 * time.Millisecond)
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("queue-", i))
			a.make(timer(names[i], every(time.Duration(300+10*i)*time.Millisecond), overlap(engine.OverlapQueue), misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(4 * time.Second)
		a.kill()
		began := time.Now()
		a.before.set(func(op string, _ any) error {
			switch away := time.Until(began.Add(8 * time.Second)); {
			case op == "Shards":
				time.Sleep(away)
			case op == "Due" && away > 0:
				return engine.ErrUnavailable
			case op == "Due":
				time.Sleep(300 * time.Millisecond)
			}
			return nil
		})
		a.start()
		time.Sleep(30 * time.Second)
		for _, name := range names {
			calledInOrder(t, name, a.of(name), 60, w.now()-1100)
		}
		a.settle()
	})
}

// Also where some of the dues are a range, as they were not later than the watermark when the timer
// was made, and those behind the watermark are few: here the clock of a node is set back by 5 s.
func TestQueueOfANodeWhoseClockIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		b.start()
		time.Sleep(20 * time.Second)
		b.before.set(func(op string, _ any) error {
			if op == "Settle" {
				time.Sleep(5 * time.Millisecond)
			}
			return nil
		})
		a.step(-5 * time.Second)
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprint("queue-", i))
			a.make(timer(names[i], every([]time.Duration{time.Second, 300 * time.Millisecond}[i%2]), overlap(engine.OverlapQueue)))
		}
		time.Sleep(20 * time.Second)
		for _, name := range names {
			dues, latest := 0, int64(0)
			for _, c := range b.of(name) {
				if c.key.Due < latest {
					t.Errorf("%s of %s is called at %s, after %s", stamp(c.key.Due), name, stamp(c.at), stamp(latest))
				}
				dues, latest = dues+1, max(latest, c.key.Due)
			}
			if dues < 10 {
				t.Errorf("%d dues of %s were called", dues, name)
			}
		}
		b.settle()
	})
}
