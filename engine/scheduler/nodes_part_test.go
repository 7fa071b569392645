package scheduler_test

import (
	"fmt"
	"testing"
	"time"
)

// The limits of calls to one target and for one app are those of all nodes together: each node
// has its part, and after the death of a node the others have that node's, too.
func TestNodesShareTheLimits(t *testing.T) {
	t.Parallel()
	for _, limited := range []string{"target", "app"} {
		t.Run(limited, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				const limit, each, took = 30, 200, 2 * time.Second
				ws := w.nodes(3)
				defer endNodes(ws)
				for _, x := range ws {
					x.config.MaxCallsPerTarget = limit
					if limited == "app" {
						x.config.MaxCallsPerTarget, x.config.MaxCallsPerApp = 1000, limit
					}
					x.start()
				}
				time.Sleep(time.Second)
				due := w.now() + 1000
				for i, x := range ws {
					for n := range each {
						name := fmt.Sprint(i, "-", n)
						for _, y := range ws {
							y.replies(name, slow(took))
						}
						x.make(timer(name, at(due)))
					}
				}
				flying := func() (n int) {
					for _, x := range ws {
						x.mu.Lock()
						for _, c := range x.calls {
							if now := x.now(); c.at <= now && now < c.at+took.Milliseconds() {
								n++
							}
						}
						x.mu.Unlock()
					}
					return n
				}
				watch := func(during string, d time.Duration, least int) {
					most := 0
					for range d / (100 * time.Millisecond) {
						time.Sleep(100 * time.Millisecond)
						most = max(most, flying())
					}
					if most < least || most > limit {
						t.Errorf("%s: %d calls in flight, of %d", during, most, limit)
					}
				}
				time.Sleep(time.Second)
				watch("three nodes", 8*time.Second, limit*2/3)
				ws[2].kill()
				time.Sleep(5 * time.Second)
				watch("two nodes", 8*time.Second, limit*2/3)
			})
		})
	}
}
