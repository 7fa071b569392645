package limit

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/engine/resident"
	"xtimer/tier/memory"
)

// node is a node with a book, whose puts are counted. other is another one of the same store.
type node struct {
	*testing.T
	set, other *object.Set
	queue      *fair.Queue[*resident.Task]
	wall       time.Time
	asked      int // how often the book has read the clock: at least once to put an object
}

func newNode(t *testing.T) *node {
	n := &node{T: t, wall: time.UnixMilli(1_800_000_000_000)}
	cold, log := memory.NewCold(), slog.New(slog.DiscardHandler)
	now := func() time.Time { return n.wall }
	n.set, n.other = object.New(cold, now, log), object.New(cold, now, log)
	n.queue = fair.New(fair.Config[*resident.Task]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(*resident.Task) (r fair.Result) { return r }})
	t.Cleanup(n.queue.Close)
	New(n.set, &resident.Memory{Queue: n.queue}, func() int64 {
		n.asked++
		return n.wall.UnixMilli()
	}, log)
	n.load(n.set)
	n.load(n.other)
	return n
}

func (n *node) load(set *object.Set) {
	n.Helper()
	if err := set.Load(n.Context()); err != nil {
		n.Fatal(err)
	}
}

func (n *node) put(set *object.Set, k engine.ObjectKey, x Object) {
	n.Helper()
	if _, _, err := set.Put(n.Context(), k, x.Body(), nil); err != nil {
		n.Fatal(err)
	}
}

// putsAtMost has the book put so many objects into force, each with a reading of the clock or two.
func (n *node) putsAtMost(most int, what string, do func()) {
	n.Helper()
	n.asked = 0
	if do(); n.asked < min(most, 1) || n.asked > 2*most {
		n.Errorf("%s: the clock is read %d times to put %d objects", what, n.asked, most)
	}
}

func rate(r int) Object { return Object{Limit: &flow.Limit{Rate: r, Per: time.Second, Burst: 1}} }

// Of a thousand objects only those are put into force again that another node has written, or deleted; and none
// when that wrote objects of another kind.
func TestAReloadPutsWhatHasChanged(t *testing.T) {
	n := newNode(t)
	for i := range 1000 {
		n.put(n.set, FlowKey("app", fmt.Sprint(i)), rate(1))
	}
	n.put(n.set, FlowKey("app", "paused"), Object{PausedUntil: n.wall.Add(time.Hour).UnixMilli()})
	n.load(n.other)
	rule := func(name string) flow.Rule { return n.queue.Rule(NameOf(FlowKey("app", name))) }

	n.put(n.other, FlowKey("app", "7"), rate(7))
	n.put(n.other, FlowKey("app", "new"), rate(9))
	if err := n.other.Delete(t.Context(), FlowKey("app", "8"), nil); err != nil {
		t.Fatal(err)
	}
	n.putsAtMost(2, "two were written", func() { n.load(n.set) })
	if r := rule("7"); r.Limit == nil || r.Limit.Rate != 7 {
		t.Errorf("%+v is in force where another node has put 7 a second", r.Limit)
	}
	if r := rule("new"); r.Limit == nil || r.Limit.Rate != 9 {
		t.Errorf("%+v is in force where another node has put 9 a second", r.Limit)
	}
	if r := rule("8"); r.Limit != nil {
		t.Errorf("%+v is in force of an object that another node has deleted", r.Limit)
	}
	n.put(n.other, engine.ObjectKey{Kind: "incident", App: "app", Name: "i"}, rate(1))
	n.putsAtMost(0, "one of another kind was written", func() { n.load(n.set) })
}

// When the clock was set, only what counts until an instant is put into force again, and ends by that clock.
func TestAClockThatWasSetPutsWhatHasAnEnd(t *testing.T) {
	n := newNode(t)
	for i := range 1000 {
		n.put(n.set, FlowKey("app", fmt.Sprint(i)), rate(1))
	}
	until := n.wall.Add(time.Hour).UnixMilli()
	paused, cooled, resumed := FlowKey("app", "paused"), FlowKey("app", "cooled"), FlowKey("app", "resumed")
	n.put(n.set, paused, Object{PausedUntil: until})
	n.put(n.set, AppKey("other"), Object{PausedUntil: until})
	n.put(n.set, cooled, Object{CooldownUntil: until})
	n.put(n.set, resumed, Object{SkippedTo: until})
	if n.queue.Rule(NameOf(paused)).Paused == 0 || n.queue.Rule(NameOf(cooled)).Cooldown == 0 || n.queue.Rule(NameOf(resumed)).Paused != 0 {
		t.Error("a pause or a cooldown is not in force")
	}
	n.wall = n.wall.Add(time.Hour - time.Second)
	n.putsAtMost(4, "the clock was set", func() { n.set.ClockSet(t.Context()) })
	now := n.queue.Now()
	for _, at := range []time.Duration{n.queue.Rule(NameOf(paused)).Paused, n.queue.Rule(NameOf(AppKey("other"))).Paused, n.queue.Rule(NameOf(cooled)).Cooldown, n.queue.Rule(NameOf(resumed)).Paused} {
		if at == 0 || at > now+time.Second {
			t.Errorf("it ends in %v, not in a second", at-now)
		}
	}
	n.wall = n.wall.Add(time.Minute)
	n.putsAtMost(4, "the clock was set", func() { n.set.ClockSet(t.Context()) })
	if n.queue.Rule(NameOf(paused)).Paused != 0 || n.queue.Rule(NameOf(cooled)).Cooldown != 0 {
		t.Error("a pause or a cooldown is in force after its end")
	}
}
