package local

import (
	"bytes"
	"context"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// fetchOwed reads the owed rows that are to be paid or replaced into the overlay,
// because their index entries have to go too. It costs nothing while the store has
// no owed row.
func (g *group) fetchOwed(pay []engine.Key, owe []engine.Owed) error {
	for _, k := range pay {
		if err := g.fetchOne(k); err != nil {
			return err
		}
	}
	for i := range owe {
		if err := g.fetchOne(owe[i].Key); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) fetchOne(k engine.Key) error {
	if _, ok := g.owed[k]; ok || g.st.stats.owedRows == 0 {
		return nil
	}
	g.probe = owedKey(g.probe[:0], k)
	b, err := g.get(g.probe)
	if b == nil || err != nil {
		return err
	}
	o := engine.ReadOwed(k, b)
	if o.Damaged != nil {
		if err := g.place(&o); err != nil {
			return err
		}
	}
	g.overlay(k, &o)
	return nil
}

// place finds out what has to go with a row that cannot be read: its entries in the indexes,
// in a scan of all that wait, and in which of the sums it is.
func (g *group) place(o *engine.Owed) error {
	if g.st.stats.owed[max(o.Key.Due, 0)/day] == 0 {
		o.To = o.Key.Due // a range
	}
	return scan(g.s.db, []byte{kindLane}, []byte{kindLane + 1}, func(k, _ []byte) (bool, error) {
		if len(k) != laneKeyLen {
			return false, damaged(k, errKey)
		}
		if lane, at := readLane(k); at.Key == o.Key {
			o.Lane, o.NotBefore = lane, at.NotBefore
			return false, nil
		}
		return true, nil
	})
}

// pay removes rows that fetchOwed has read; the other keys have no row.
func (g *group) pay(keys []engine.Key) {
	for _, k := range keys {
		o := g.owed[k]
		if o == nil {
			continue
		}
		g.delete(owedKey(nil, k))
		g.deleteOwedIndex(o)
		g.st.stats.count(o.Key.Due, o.To, -1)
		g.overlay(k, nil)
	}
}

// owe puts rows; fetchOwed has read the former ones of the same keys.
func (g *group) owe(rows []engine.Owed) {
	for i := range rows {
		o := rows[i]
		if was := g.owed[o.Key]; was != nil {
			g.deleteOwedIndex(was)
			g.st.stats.count(was.Key.Due, was.To, -1)
		}
		g.put(owedKey(nil, o.Key), engine.AppendOwed(nil, &o))
		g.put(owedAtKey(nil, &o), none)
		g.put(laneKey(nil, o.Lane, o.Place()), none)
		g.st.stats.count(o.Key.Due, o.To, 1)
		g.overlay(o.Key, &o)
	}
}

func (g *group) deleteOwedIndex(o *engine.Owed) {
	g.delete(owedAtKey(nil, o))
	g.delete(laneKey(nil, o.Lane, o.Place()))
}

// owes reports whether any row of the timer is owed. The seek has a limit: without one Pebble
// goes on to the next row of another timer, over all deleted rows that no compaction has merged
// yet, and while millions of one-shots catch up, thousands of those lie behind each.
func (g *group) owes(id engine.TimerID) (bool, error) {
	if g.owing[id] > 0 || g.st.stats.owedRows == 0 {
		return g.owing[id] > 0, nil
	}
	it, err := g.iter(kindOwed)
	if err != nil {
		return false, err
	}
	g.probe = appendID(append(g.probe[:0], kindOwed), id)
	end := after(g.probe)
	at := it.SeekGEWithLimit(g.probe, end)
	for ; at == pebble.IterValid && bytes.HasPrefix(it.Key(), g.probe); at = it.NextWithLimit(end) {
		k := it.Key()
		if len(k) != owedKeyLen {
			return false, damaged(k, errKey)
		}
		if _, seen := g.owed[readOwedKey(k)]; !seen { // else the group pays that row
			return true, nil
		}
	}
	return false, it.Error()
}

// overlay notes in the group that a row is owed as o says, or is paid (nil).
func (g *group) overlay(k engine.Key, o *engine.Owed) {
	if g.owed[k] != nil {
		g.owing[k.Timer]--
	}
	if g.owed[k] = o; o != nil {
		g.owing[k.Timer]++
	}
}

// Owed pages through the owed rows with NotBefore in (from, to].
func (s *Store) Owed(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	w, err := s.views.acquire()
	if err != nil {
		return err
	}
	defer s.views.release(w)
	const pageSize = 500
	page := make([]engine.Owed, 0, pageSize)
	add := func(k engine.Key, b []byte) (bool, error) {
		o := engine.ReadOwed(k, b)
		if o.NotBefore > to || !of.Has(k.Timer.Shard()) {
			return true, nil
		}
		if page = append(page, o); len(page) < pageSize {
			return true, nil
		}
		err := yield(page)
		page = page[:0]
		if err == nil {
			err = ctx.Err()
		}
		return true, err
	}
	if from < 0 {
		// Nearly all rows: in the order in which they lie, which costs a sixth of
		// looking each of them up.
		err = scan(w, []byte{kindOwed}, []byte{kindOwed + 1}, func(k, v []byte) (bool, error) {
			if len(k) != owedKeyLen {
				return false, damaged(k, errKey)
			}
			return add(readOwedKey(k), bytes.Clone(v))
		})
	} else {
		err = scan(w, appendTime([]byte{kindOwedAt}, from+1), appendTime([]byte{kindOwedAt}, to+1), func(k, _ []byte) (bool, error) {
			if len(k) != 21 {
				return false, damaged(k, errKey)
			}
			b, err := w.get(append([]byte{kindOwed}, k[7:]...))
			if err != nil {
				return false, err
			}
			return add(engine.Key{Timer: readID(k[7:]), Due: readTime(k[15:])}, b)
		})
	}
	if err != nil || len(page) == 0 {
		return err
	}
	return yield(page)
}

// OwedPage lists the owed rows of one timer that are due after an instant.
func (s *Store) OwedPage(_ context.Context, id engine.TimerID, from int64, limit int) ([]engine.Owed, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	var out []engine.Owed
	all := appendID([]byte{kindOwed}, id)
	err = scan(w, owedKey(nil, engine.Key{Timer: id, Due: from + 1}), after(all), func(k, v []byte) (bool, error) {
		switch {
		case len(out) >= limit:
			return false, nil
		case len(k) != owedKeyLen:
			return false, damaged(k, errKey)
		}
		out = append(out, engine.ReadOwed(readOwedKey(k), bytes.Clone(v)))
		return true, nil
	})
	return out, err
}
