package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// nodeKind is a fault of nodes.
type nodeKind uint8

const (
	NodeKill   nodeKind = iota // as Crash, down For; Kept < 0: its disk is lost
	NodeStop                   // SIGTERM, down For
	NodeFreeze                 // nothing of it goes on, for For
	NodeCut                    // nothing goes between it and MySQL, for For
	NodeSlow                   // each way between it and MySQL takes up to By more
	NodeWarm                   // nothing goes between it and Redis
	NodeClock                  // its wall clock is set By, and back after For
	NodeDrain                  // an administrator asks for its shards, for For
	AllAway                    // MySQL is away
	AllSlow                    // MySQL is slow
	MirrorLost                 // Redis loses what it has of the mirror
	AllBack                    // after For, MySQL is as it was
	AllClock                   // the clock of MySQL is set By, and back after For
	nodeKinds
)

var nodeKindNames = [nodeKinds]string{
	"kill", "stop", "freeze", "cut from MySQL", "slow to MySQL", "cut from Redis", "clock", "drain", "MySQL away", "MySQL slow", "mirror lost", "MySQL goes back", "clock of MySQL",
}

func (k nodeKind) String() string { return nodeKindNames[k] }

// places are where a node may freeze.
var places = []string{
	"after a beat", "before an eviction", "after an eviction", "before a take", "after a take", "before a gain", "before a release", "after a release",
	"before a settle", "after a settle", "before a copy", "before a call", "after a call",
}

// NodeStep is one fault. Only what its kind needs is set.
type NodeStep struct {
	At      time.Duration // since the run began
	Kind    nodeKind
	Node    int // -1: all
	Kept    int
	By, For time.Duration
	Silent  bool   // of a cut: nobody says so
	Place   string // of a freeze: when a life comes there next; "": at once
	Draw    uint64
}

func (s NodeStep) String() string {
	return fmt.Sprintf("node %d: %s %s for %v, by %v, kept %d, silent %v", s.Node, s.Kind, s.Place, s.For, s.By, s.Kept, s.Silent)
}

// FleetScript is what happens in a run of several nodes.
type FleetScript struct {
	Script
	Nodes  int
	Starts []time.Duration // when each node is started first
	Faults []NodeStep
}

// NewFleetScript draws a script.
func NewFleetScript(seed uint64) *FleetScript {
	d := draw{rand.New(rand.NewPCG(seed, 6))}
	s := &FleetScript{Nodes: 3, Script: Script{
		Seed: seed, Epoch: oneOf(d, epochs...), Calm: time.Minute + d.upTo(90*time.Second),
		Settings: Settings{
			Workers: oneOf(d, 8, 64, 1024), Window: oneOf(d, 2*time.Minute, 10*time.Minute, time.Hour),
			Spacing: oneOf(d, -1, time.Millisecond, 10*time.Millisecond), MemTable: oneOf[uint64](d, 256<<10, 1<<20),
			Waiting: oneOf(d, 4, 40, 1_000_000),
		},
	}}
	s.Pace = oneOf(d, 0, 300*time.Microsecond, 2*time.Millisecond)
	for range s.Nodes {
		s.Starts = append(s.Starts, oneOf(d, 0, 0, d.upTo(time.Second), d.upTo(s.Calm/2)))
	}
	s.Starts[d.IntN(s.Nodes)] = 0
	w := writer{draw: d, Script: &s.Script}
	for range 8 + d.IntN(14) {
		w.life(fmt.Sprintf("t%d", len(w.names)))
	}
	for i := range s.Steps { // nobody listens before
		s.Steps[i].At = max(s.Steps[i].At, 3*time.Second)
	}
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	for range 3 + d.IntN(10) {
		s.fault(w)
	}
	for i := range s.Faults { // no fault outlasts the calm
		f := &s.Faults[i]
		f.At = min(f.At, s.Calm)
		f.For = min(f.For, s.Calm-f.At)
	}
	if w.chance(25) {
		s.back(w)
	}
	slices.SortStableFunc(s.Faults, func(a, b NodeStep) int { return cmp.Compare(a.At, b.At) })
	return s
}

// back has MySQL go back once, beside faults of nodes. No other fault keeps the nodes from what is
// due for so long that a due is a misfire.
func (s *FleetScript) back(w writer) {
	s.Faults = slices.DeleteFunc(s.Faults, func(f NodeStep) bool {
		return f.Kind == NodeClock || f.Kind == NodeSlow || f.Kind == NodeCut || f.Kind == AllAway || f.Kind == AllSlow
	})
	lasts := oneOf(w.draw, 200*time.Millisecond, w.upTo(2*time.Second), w.upTo(5*time.Second))
	s.Faults = append(s.Faults, NodeStep{Kind: AllBack, Node: -1, For: lasts, At: min(w.instant(5*time.Second), s.Calm-lasts-time.Second)})
}

// fault draws one fault, or two at about the same time.
func (s *FleetScript) fault(w writer) {
	f := NodeStep{
		At: w.instant(2 * time.Second), Node: w.IntN(s.Nodes), Silent: w.chance(50), Draw: w.Uint64(),
		Kind: oneOf(w.draw, NodeKill, NodeKill, NodeKill, NodeStop, NodeStop, NodeFreeze, NodeFreeze, NodeFreeze, NodeCut, NodeCut, NodeSlow,
			NodeWarm, NodeClock, NodeDrain, AllAway, AllSlow, MirrorLost, AllClock),
	}
	f.For = oneOf(w.draw, 500*time.Millisecond, w.upTo(2*time.Second), w.upTo(4*time.Second), w.upTo(30*time.Second))
	switch f.Kind {
	case NodeKill:
		f.Kept = oneOf(w.draw, -1, 0, 30, 100, 100)
	case NodeSlow, AllSlow:
		f.By = 100*time.Millisecond + w.upTo(3*time.Second)
	case NodeClock, AllClock:
		f.By = oneOf(w.draw, 200*time.Millisecond, -200*time.Millisecond, farthest, -farthest, time.Hour, -time.Hour)
	case NodeFreeze:
		f.For = max(f.For, 500*time.Millisecond)
		f.Place = oneOf(w.draw, "", oneOf(w.draw, places...))
	case NodeStop, NodeCut, NodeWarm, NodeDrain, AllAway, MirrorLost, AllBack:
	}
	if f.Kind >= AllAway {
		f.Node = -1
	}
	s.Faults = append(s.Faults, f)
	if w.chance(25) && len(s.Faults) < 20 {
		s.fault(w)
		s.Faults[len(s.Faults)-1].At = f.At + w.upTo(2*time.Second)
	}
}
