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

// A backlog is shown as being decided until all timers were looked at once and nothing waits for a decision.
func TestABacklogIsShown(t *testing.T) {
	m := &Memory{Backlogs: Backlogs{Inbox: newInbox[engine.TimerID]()}, Lanes: newLanes(1, nil)}
	b, n, other := &m.Backlogs, flow.Name{Kind: flow.OfFlow, App: "a", Key: "k"}, flow.Name{Kind: flow.OfApp, App: "a"}
	shows := func(want string) {
		t.Helper()
		if got := m.Deciding(n); got != want || m.Deciding(other) != "" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	shows("")
	b.Set(n, engine.Backlog{Skip: 10})
	shows(engine.BacklogSkip)
	b.Next()
	shows(engine.BacklogSkip)
	b.Return([]engine.TimerID{7})
	b.Next()
	shows(engine.BacklogSkip)
	b.Next()
	shows("")
	b.Add(7)
	shows(engine.BacklogSkip)
	b.Next()
	b.Next()
	l := m.Lanes.Of(1)
	l.next.NotBefore = 10
	l.spilled.Store(true)
	m.Lanes.spilled.Store(1)
	shows(engine.BacklogSkip)
	l.next.NotBefore = 11
	shows("")
	b.Set(n, engine.Backlog{Skip: 10, Latest: 20})
	shows(engine.BacklogLatest)
	b.Set(n, engine.Backlog{})
	shows("")
}
