package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// The dues of a queue are called in their order, also where a node takes shards over while the
// cold tier is slow: what waits in rows comes into memory long after the next dues are in the wheel.
func TestQueueOfATakeover(t *testing.T) {
	for _, pace := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond} {
		bubble(t, func(t *testing.T, w *world) {
			ws := w.nodes(2)
			defer endNodes(ws)
			a, b := ws[0], ws[1]
			a.start()
			b.start()
			time.Sleep(1300 * time.Millisecond)
			var names []string
			for i := range 10 {
				names = append(names, fmt.Sprint("queue-", i))
				a.make(timer(names[i], every(time.Second), overlap(engine.OverlapQueue)))
			}
			time.Sleep(4 * time.Second)
			b.before.set(func(string, any) error { time.Sleep(pace); return nil })
			a.kill()
			time.Sleep(30 * time.Second)
			b.before.set(func(string, any) error { return nil })
			time.Sleep(5 * time.Second)
			for _, name := range names {
				cs := ofAll(ws, name)
				for k := 1; k < len(cs); k++ {
					if cs[k].key.Due < cs[k-1].key.Due-1000 { // one call may come again
						t.Errorf("with %v for each access, %s of %s is called at %s, after %s", pace, stamp(cs[k].key.Due), name, stamp(cs[k].at), stamp(cs[k-1].key.Due))
					}
				}
				if c := cs[len(cs)-1]; c.at-c.key.Due > 20 {
					t.Errorf("%s is %d ms late in the end", name, c.at-c.key.Due)
				}
			}
			b.settle()
		})
	}
}
