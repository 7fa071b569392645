package local

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// laneKeyLen is the length of a key of the index by lane.
const laneKeyLen = 1 + 8 + 6 + 8 + 6

// laneTimer is the timer in a key of the index by lane.
func laneTimer(k []byte) engine.TimerID { return readID(k[1+8+6:]) }

// Lanes lists the lanes that have a row with NotBefore ≤ to. It costs two seeks a lane.
func (s *Store) Lanes(ctx context.Context, of engine.Set, to int64) (lanes []engine.Lane, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	from := []byte{kindLane}
	for ctx.Err() == nil {
		var first []byte
		err := scan(w, from, []byte{kindLane + 1}, func(k, _ []byte) (bool, error) {
			if len(k) != laneKeyLen {
				return false, damaged(k, errKey)
			}
			if !of.Has(laneTimer(k).Shard()) {
				return true, nil
			}
			first = append(first, k...)
			return false, nil
		})
		if err != nil || first == nil {
			return lanes, err
		}
		lane := binary.BigEndian.Uint64(first[1:])
		if readTime(first[9:]) <= to {
			lanes = append(lanes, engine.Lane(lane))
		}
		if lane == math.MaxUint64 {
			return lanes, nil
		}
		from = binary.BigEndian.AppendUint64([]byte{kindLane}, lane+1)
	}
	return nil, ctx.Err()
}

// OwedIn lists the rows of a lane after a place.
func (s *Store) OwedIn(_ context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) (rows []engine.Owed, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	from := append(laneKey(nil, lane, after), 0)
	if after == (engine.Place{}) {
		from = from[:1+8]
	}
	end := laneKey(nil, lane, engine.Place{NotBefore: to + 1})
	err = scan(w, from, end, func(k, _ []byte) (bool, error) {
		if len(k) != laneKeyLen {
			return false, damaged(k, errKey)
		}
		if !of.Has(laneTimer(k).Shard()) {
			return true, nil
		}
		row := append([]byte{kindOwed}, k[1+8+6:]...)
		b, err := w.get(row)
		if err != nil {
			return false, err
		}
		o, err := engine.DecodeOwed(b)
		if err != nil {
			return false, damaged(row, err)
		}
		rows = append(rows, o)
		return len(rows) < limit, nil
	})
	return rows, err
}

// indexLanes writes the index by lane of a store from before there was one: format 2.
// It can be cut short and begun anew.
func indexLanes(db *pebble.DB) error {
	b := db.NewBatch()
	defer func() { _ = b.Close() }() // of a batch that was committed or is given up
	err := scan(db, []byte{kindOwed}, []byte{kindOwed + 1}, func(k, v []byte) (bool, error) {
		o, err := engine.DecodeOwed(append([]byte(nil), v...))
		if err != nil {
			return false, damaged(k, err)
		}
		if err := b.Set(laneKey(nil, o.Lane, o.Place()), none, nil); err != nil || b.Len() < maxIndexBatch {
			return true, err
		}
		if err := b.Commit(pebble.Sync); err != nil {
			return false, err
		}
		b = db.NewBatch()
		return true, nil
	})
	if err != nil {
		return err
	}
	return b.Commit(pebble.Sync)
}

// maxIndexBatch is how many bytes of index are written in one commit.
const maxIndexBatch = 4 << 20
