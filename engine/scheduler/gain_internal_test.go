package scheduler

import (
	"testing"

	"xtimer/engine"
	"xtimer/engine/cluster"
)

// A shard that the former life of the node had taken and not gained is told of by the journal of the
// node and by the mirror of another life.
func TestFormersOfAGain(t *testing.T) {
	g := gains{list: []cluster.Gained{{Shard: 5, Kept: true, Former: 9}, {Shard: 6, Kept: true}, {Shard: 7, Former: 8}, {Shard: 8}}}
	x := g.take()
	if x.kept != engine.SetOf(5, 6) || len(x.formers) != 2 || x.formers[9] != engine.SetOf(5) || x.formers[8] != engine.SetOf(7) {
		t.Errorf("kept %v, formers %v", x.kept, x.formers)
	}
}
