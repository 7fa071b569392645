package policy

import (
	"fmt"
	"slices"

	"xtimer/engine"
)

// LaterRecords picks the records of a replayed journal that say no less than the
// stored ones, and than those before them in rs. ranks holds the rank of each
// stored record with one of the keys; afterwards, that of the last record picked. The record of a
// run stays: the other dues that it counts have no other record.
func LaterRecords(rs []engine.Record, ranks map[engine.Key]engine.Rank) ([]engine.Record, error) {
	var later []engine.Record
	for _, r := range rs {
		t, err := engine.DecodeTask(r.Encoded)
		if err != nil {
			return nil, fmt.Errorf("cannot read the record of task %s: %w", r.Key, err)
		}
		was := ranks[r.Key]
		if rank := engine.RankOf(t); !rank.Below(was) && (rank.Run || !was.Run) {
			ranks[r.Key] = rank
			later = append(later, r)
		}
	}
	return later, nil
}

// LaterRows picks the rows of a replayed journal that have no fewer attempts than
// the stored ones. stored returns the stored row of a key, nil if there is none.
func LaterRows(rows []engine.Owed, stored func(engine.Key) *engine.Owed) []engine.Owed {
	return slices.DeleteFunc(slices.Clone(rows), func(o engine.Owed) bool {
		was := stored(o.Key)
		return was != nil && engine.RankOf(o.Task).Attempt < engine.RankOf(was.Task).Attempt
	})
}
