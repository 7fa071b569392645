package policy

import (
	"slices"
	"testing"
	"time"

	"xtimer/engine"
)

// A generation ends with the first version of a later one. The due of each later one-shot is taken: its task may have a
// record under that key.
func TestEndingOf(t *testing.T) {
	version := func(generation uint32, s engine.Schedule, lastDue int64) *engine.Timer {
		return &engine.Timer{Definition: engine.Definition{Schedule: s}, Generation: generation, UpdatedAt: 1000 * int64(generation), LastDue: lastDue, Status: engine.Enabled}
	}
	every := engine.Schedule{Every: time.Second}
	l := &engine.Life{Versions: []*engine.Timer{
		version(1, every, engine.MaxDue), version(2, every, engine.MaxDue), version(3, engine.Schedule{At: 700}, 700), version(4, engine.Schedule{At: 500}, 500),
	}}
	for generation, want := range map[uint32]Spans{1: {{500, 500}, {700, 700}}, 3: {{500, 500}}} {
		end, over := EndingOf(l, generation)
		if !over || end.Former.Generation != generation || end.At != 1000*int64(generation+1) || !slices.Equal(end.Taken, want) {
			t.Errorf("generation %d: over %v at %d, of %+v; %v are taken", generation, over, end.At, end.Former, end.Taken)
		}
	}
	if _, over := EndingOf(l, 4); over {
		t.Error("the generation in force is over")
	}
}
