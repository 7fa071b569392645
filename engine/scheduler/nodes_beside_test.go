package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// A node takes over from one that died, with timers of the same app and target as its own. Its
// own calls stay on time: while the rows of the others are read slowly, and while their calls,
// of which there are many more than the target takes at once, are made. The dues of each timer are
// called in their order, unless the rows are read slowly: a due may go before older rows then.
func TestCallsBesideATakeover(t *testing.T) {
	t.Parallel()
	for _, access := range []string{"OwedIn", "none"} {
		t.Run(access, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				a, b := ws[0], ws[1]
				startAll(ws)
				makeSteady := func(x *world, n int) {
					for i := range n {
						s := every(100 * time.Millisecond)
						s.StartAt = x.now() + 1000 + int64(i)
						x.make(timer(fmt.Sprint(x.config.Node, "-", i), s, misfire(engine.MisfireAll, time.Hour)))
						behaveAll(ws, fmt.Sprint(x.config.Node, "-", i), slow(20*time.Millisecond))
					}
				}
				makeSteady(a, 40)
				makeSteady(b, 5)
				time.Sleep(2 * time.Second)
				b.before.set(func(op string, _ any) error {
					if op == access {
						time.Sleep(500 * time.Millisecond)
					}
					return nil
				})
				a.kill()
				time.Sleep(7 * time.Second)
				own, other := int64(0), int64(0)
				b.mu.Lock()
				latest := map[string]*call{}
				for _, c := range b.calls {
					l := latest[c.name]
					if l != nil && c.key.Due < l.key.Due && c.at > l.at && access == "none" { // those of one instant begin in any order
						t.Errorf("%s of %s is called %d ms after %s", stamp(c.key.Due), c.name, c.at-l.at, stamp(l.key.Due))
					}
					if l == nil || c.key.Due > l.key.Due {
						latest[c.name] = c
					}
					if late := c.at - c.key.Due; strings.HasPrefix(c.name, b.config.Node) {
						own = max(own, late)
					} else {
						other = max(other, late)
					}
				}
				b.mu.Unlock()
				if own > 5 || other < 2000 {
					t.Errorf("the node's own calls are up to %d ms late, those that it took over %d ms", own, other)
				}
				b.settle()
			})
		})
	}
}
