package local

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"xtimer/engine"
)

// Lives pages through every timer that stands or has a version kept.
func (s *Store) Lives(_ context.Context, from engine.TimerID, limit int) (ls []engine.Life, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	ids, versioned, err := w.lives(from, limit)
	if err != nil {
		return nil, err
	}
	rows, err := w.rows()
	if err != nil {
		return nil, err
	}
	defer rows.close()
	ls = make([]engine.Life, 0, len(ids))
	var id engine.TimerID
	defer func() {
		var d *engine.Damage
		if errors.As(err, &d) {
			d.Key.Timer = id
		}
	}()
	for _, id = range ids {
		l := engine.Life{ID: id}
		if versioned[id] { // most have no former one
			err = eachVersion(w, id, allVersions(id), func(v []byte) (bool, error) {
				t, err := engine.DecodeCarried(v)
				l.Versions = append(l.Versions, t)
				return true, err
			})
			if err != nil {
				return nil, err
			}
			slices.Reverse(l.Versions)
		}
		b, err := rows.find(id)
		if err != nil {
			return nil, err
		}
		if b == nil {
			if l.Deleted, err = w.deletedAt(id); err != nil {
				return nil, err
			}
			ls = append(ls, l)
			continue
		}
		t, err := decodeTimer(id, engine.AppendCarried(nil, b))
		if err == nil {
			t, err = w.asEnded(t)
		}
		if err != nil {
			return nil, err
		}
		l.Versions = append(l.Versions, t)
		ls = append(ls, l)
	}
	return ls, nil
}

// lives are the ids greater than from of timers and of kept versions, and which
// of them have such.
func (w *view) lives(from engine.TimerID, limit int) (ids []engine.TimerID, versioned map[engine.TimerID]bool, err error) {
	if limit <= 0 {
		return nil, nil, nil
	}
	versioned = map[engine.TimerID]bool{}
	for _, kind := range []byte{kindTimer, kindVersion} {
		n, last := 0, engine.TimerID(0)
		err := scan(w, after(appendID([]byte{kind}, from)), []byte{kind + 1}, func(k, _ []byte) (bool, error) {
			id := readID(k[1:])
			if kind == kindVersion {
				versioned[id] = true
			}
			if id != last {
				ids, last = append(ids, id), id
				n++
			}
			return n <= limit, nil // one more: all versions of the last
		})
		if err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], versioned, nil
}

// deletedAt is when a timer was deleted; 0 when a store of before that was
// noted does not say.
func (w *view) deletedAt(id engine.TimerID) (int64, error) {
	key := deletedKey(nil, id)
	v, err := w.get(key)
	if v == nil || err != nil {
		return 0, err
	}
	if len(v) != 7 || v[0] != valueVersion {
		return 0, damaged(key, errShort)
	}
	return readTime(v[1:]), nil
}

// forgetDelete removes the note of a delete with the last version of the timer.
func (g *group) forgetDelete(id engine.TimerID, version uint32) error {
	g.probe = deletedKey(g.probe[:0], id)
	v, err := g.look(g.probe)
	if v == nil || err != nil {
		return err
	}
	own := appendID([]byte{kindVersion}, id)
	last := true
	err = scan(g.s.db, binary.BigEndian.AppendUint32(slices.Clone(own), version+1), after(own), func([]byte, []byte) (bool, error) {
		last = false
		return false, nil
	})
	if last && err == nil {
		g.delete(deletedKey(nil, id))
	}
	return err
}
