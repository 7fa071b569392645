package local

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"xtimer/engine"
)

// Lives pages through every timer that stands or has a version kept.
func (s *Store) Lives(_ context.Context, from engine.TimerID, limit int) ([]engine.Life, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	ids, err := w.lives(from, limit)
	if err != nil {
		return nil, err
	}
	ls := make([]engine.Life, 0, len(ids))
	for _, id := range ids {
		l := engine.Life{ID: id}
		if l.Versions, err = versions(w, id, keptVersions); err != nil {
			return nil, err
		}
		slices.Reverse(l.Versions)
		t, err := w.timer(id)
		switch {
		case err == nil:
			l.Versions = append(l.Versions, t)
		case errors.Is(err, engine.ErrNotFound):
			if l.Deleted, err = w.deletedAt(id); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// keptVersions is no bound that anybody meets: a version is a change by hand.
const keptVersions = 1 << 20

// lives are the ids greater than from of timers and of kept versions.
func (w *view) lives(from engine.TimerID, limit int) ([]engine.TimerID, error) {
	var ids []engine.TimerID
	n := 0
	collect := func(k, _ []byte) (bool, error) {
		if id := readID(k[1:]); n == 0 || ids[len(ids)-1] != id {
			ids = append(ids, id)
			n++
		}
		return n < limit, nil
	}
	if limit <= 0 {
		return nil, nil
	}
	for _, kind := range []byte{kindTimer, kindVersion} {
		n = 0
		if err := scan(w, after(appendID([]byte{kind}, from)), []byte{kind + 1}, collect); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], nil
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
