package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// laneKeyLen is the length of a key of the index by lane.
const laneKeyLen = 1 + 8 + 6 + 8 + 6

// readLane reads a key of the index by lane.
func readLane(k []byte) (engine.Lane, engine.Place) {
	at := engine.Place{NotBefore: readTime(k[9:]), Key: engine.Key{Timer: readID(k[15:]), Due: readTime(k[23:])}}
	return engine.Lane(binary.BigEndian.Uint64(k[1:])), at
}

// Lanes lists the lanes that have a row with NotBefore ≤ to. It costs two seeks a lane.
func (s *Store) Lanes(ctx context.Context, of engine.Set, to int64) (lanes []engine.Lane, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	from := []byte{kindLane}
	for ctx.Err() == nil {
		var first engine.Lane
		var at *engine.Place
		err := scan(w, from, []byte{kindLane + 1}, func(k, _ []byte) (bool, error) {
			if len(k) != laneKeyLen {
				return false, damaged(k, errKey)
			}
			lane, p := readLane(k)
			if !of.Has(p.Key.Timer.Shard()) {
				return true, nil
			}
			first, at = lane, &p
			return false, nil
		})
		if err != nil || at == nil {
			return lanes, err
		}
		if at.NotBefore <= to {
			lanes = append(lanes, first)
		}
		if first == math.MaxUint64 {
			return lanes, nil
		}
		from = binary.BigEndian.AppendUint64([]byte{kindLane}, uint64(first)+1)
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
		_, at := readLane(k)
		if !of.Has(at.Key.Timer.Shard()) {
			return true, nil
		}
		b, err := w.get(owedKey(nil, at.Key))
		if err != nil {
			return false, err
		}
		o := engine.ReadOwed(at.Key, b)
		if o.Damaged != nil {
			o.Lane, o.NotBefore = lane, at.NotBefore
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
		if len(k) != owedKeyLen {
			return false, damaged(k, errKey)
		}
		o := engine.ReadOwed(readOwedKey(k), bytes.Clone(v))
		if o.Damaged != nil {
			return true, nil // nobody knows its lane; a start finds it
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
