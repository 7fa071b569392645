package resident

import (
	"testing"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// All timers are looked at when a backlog is new, and not each time its object is written.
func TestABacklogIsLookedAtOnce(t *testing.T) {
	b := Backlogs{Inbox: newInbox[engine.TimerID]()}
	n := flow.Name{Kind: flow.OfFlow, App: "a", Key: "k"}
	for i, x := range []struct {
		engine.Backlog
		looks int
	}{{engine.Backlog{Skip: 10}, 1}, {engine.Backlog{Skip: 10}, 0}, {engine.Backlog{Skip: 10, Latest: 20}, 1}, {engine.Backlog{}, 0}, {engine.Backlog{Skip: 10}, 1}} {
		b.Set(n, x.Backlog)
		if looks := len(b.Take()); looks != x.looks {
			t.Errorf("%d: timers are looked at %d times, want %d", i, looks, x.looks)
		}
	}
}
