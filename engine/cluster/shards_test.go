package cluster

import (
	"errors"
	"slices"
	"testing"

	"xtimer/engine"
)

// A life that holds shard 7 under fence 3 is over when a look shows anything else there.
func TestShardThatIsLost(t *testing.T) {
	for what, now := range map[string]engine.Holding{
		"free": {Fence: 3}, "another's": {Holder: 2, Fence: 4}, "its own under another fence": {Holder: 1, Fence: 4},
	} {
		var x shards
		read := [engine.Shards]engine.Holding{7: {Holder: 1, Fence: 3}}
		if gained, err := x.see(1, &read); err != nil || !slices.Equal(gained, []Gained{{Shard: 7, Fence: 3}}) {
			t.Fatalf("gained %v, %v", gained, err)
		}
		if gained, err := x.see(1, &read); err != nil || len(gained) > 0 {
			t.Errorf("by the same look gained %v, %v", gained, err)
		}
		read[7] = now
		if _, err := x.see(1, &read); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("the shard is %s, and the error %v", what, err)
		}
	}
}

// A shard that the life began to give is not owned again under that fence, but under a later
// one.
func TestShardThatWasCeded(t *testing.T) {
	var x shards
	read := [engine.Shards]engine.Holding{7: {Holder: 1, Fence: 3}}
	if _, err := x.see(1, &read); err != nil {
		t.Fatal(err)
	}
	plan := Plan{7: 1} // shard 7 to b, all others to a
	given := x.cede([]engine.Node{{Name: "a"}, {Name: "b"}}, &plan, 0, handed, func(string) bool { return true })
	if !slices.Equal(given, []engine.Handover{{Shard: 7, Fence: 3, Heir: "b"}}) {
		t.Fatalf("given %v", given)
	}
	for _, step := range []struct {
		now  engine.Holding
		owns bool
	}{
		{engine.Holding{Holder: 1, Fence: 3}, false},
		{engine.Holding{Fence: 3, Heir: "b"}, false},
		{engine.Holding{Holder: 1, Fence: 4}, true},
	} {
		read[7] = step.now
		gained, err := x.see(1, &read)
		if _, owns := x.owns(7); err != nil || owns != step.owns || len(gained) > 0 != step.owns {
			t.Errorf("of %+v: owned %v, gained %v, %v", step.now, owns, gained, err)
		}
	}
}

// A table that goes back says that a life holds a shard under the fence under which the life gave
// the shard, perhaps as clean. What the life has called since is not in the table: the life is over.
func TestShardThatIsBack(t *testing.T) {
	for _, fence := range []uint64{2, 3} {
		var x shards
		read := [engine.Shards]engine.Holding{7: {Holder: 1, Fence: 3}}
		plan := Plan{7: 1}
		if _, err := x.see(1, &read); err != nil {
			t.Fatal(err)
		}
		x.cede([]engine.Node{{Name: "a"}, {Name: "b"}}, &plan, 0, handed, func(string) bool { return true })
		read[7] = engine.Holding{Holder: 2, Fence: 4}
		if _, err := x.see(1, &read); err != nil {
			t.Fatal(err)
		}
		read[7] = engine.Holding{Holder: 1, Fence: fence, Clean: true}
		if gained, err := x.see(1, &read); !errors.Is(err, engine.ErrFenced) || len(gained) > 0 {
			t.Errorf("under fence %d: gained %v, %v", fence, gained, err)
		}
	}
}

// The table goes back right after it has said that a shard is given: no look has shown the shard as
// another's, and none ever will. One look may have begun before the gift.
func TestGiftThatIsLost(t *testing.T) {
	var x shards
	read := [engine.Shards]engine.Holding{7: {Holder: 1, Fence: 3}}
	plan := Plan{7: 1}
	if _, err := x.see(1, &read); err != nil {
		t.Fatal(err)
	}
	list := x.cede([]engine.Node{{Name: "a"}, {Name: "b"}}, &plan, 0, handed, func(string) bool { return true })
	for range 3 { // it takes its time
		if _, err := x.see(1, &read); err != nil {
			t.Error(err)
		}
	}
	x.gave(list)
	if _, err := x.see(1, &read); err != nil {
		t.Errorf("by a look that began before the gift: %v", err)
	}
	if _, err := x.see(1, &read); !errors.Is(err, engine.ErrFenced) {
		t.Errorf("by the next look: %v", err)
	}
}

// A shard that was taken and freed between two looks counts as free from the second on.
func TestFreeSince(t *testing.T) {
	var f free
	plan := Plan{7: 1}
	left := func() []int { return f.spared(usual.Spare, usual.Spare, &plan, 0) }
	read := [engine.Shards]engine.Holding{}
	for s := range read {
		read[s].Holder = 1
	}
	read[7] = engine.Holding{Fence: 3}
	f.see(0, &read)
	f.see(ms, &read)
	if got := left(); !slices.Equal(got, []int{7}) {
		t.Errorf("left free are %v", got)
	}
	read[7].Fence = 4
	f.see(2*ms, &read)
	if got := left(); len(got) > 0 {
		t.Errorf("left free are %v", got)
	}
}
