package local

import (
	"context"
	"encoding/binary"
	"slices"

	"xtimer/engine"
)

// bound is the lower bound of a recurring timer's next due, as its index entry
// has it. A row of it is written when it is first raised; until then it is the
// slot of ValidFrom. It is of the version that stands.
type bound struct {
	due     int64
	version uint32
	stored  bool // there is a row
}

func (b *bound) encode() []byte {
	return binary.BigEndian.AppendUint32(appendTime([]byte{valueVersion}, b.due), b.version)
}

func decodeBound(v []byte) (*bound, error) {
	if len(v) != 11 || v[0] != valueVersion {
		return nil, errShort
	}
	return &bound{due: readTime(v[1:]), version: binary.BigEndian.Uint32(v[7:]), stored: true}, nil
}

// raised reads the row of a bound; nil when there is none.
func (g *group) raised(id engine.TimerID) (*bound, error) {
	if b, ok := g.bounds[id]; ok {
		return b, nil
	}
	g.probe = boundKey(g.probe[:0], id)
	v, err := g.get(g.probe)
	if v == nil || err != nil {
		return nil, err
	}
	b, err := decodeBound(v)
	if err != nil {
		return nil, damaged(g.probe, err)
	}
	return b, nil
}

// bound returns the bound of a timer as the group left it; zero when there is none.
func (g *group) bound(t *engine.Timer) (bound, error) {
	if t.Schedule.OneShot() || t.Status != engine.Enabled {
		return bound{}, nil
	}
	b, err := g.raised(t.ID)
	if err != nil {
		return bound{}, err
	}
	if b != nil {
		return *b, nil
	}
	return bound{due: slot(t.ValidFrom), version: t.Version}, nil
}

// setBound writes the row of a bound that is not the slot of ValidFrom.
func (g *group) setBound(id engine.TimerID, b bound) {
	b.stored = true
	g.put(g.key(boundKey, id), b.encode())
	g.bounds[id] = &b
}

func (g *group) dropBound(id engine.TimerID, b bound) {
	if b.stored {
		g.delete(g.key(boundKey, id))
		g.bounds[id] = nil
	}
}

// Due pages through every enabled timer that may have a due in (from, to].
func (s *Store) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	w, err := s.views.acquire()
	if err != nil {
		return err
	}
	defer s.views.release(w)
	if err := dueOneShots(ctx, w, of, from, to, yield); err != nil {
		return err
	}
	return dueRecurring(ctx, w, of, to, yield)
}

// duePage is how many candidates are handed on at a time.
const duePage = 1000

func dueOneShots(ctx context.Context, w *view, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	page := make([]engine.Candidate, 0, duePage)
	lo := appendTime([]byte{kindLast}, from+1)
	hi := appendTime([]byte{kindLast}, to+1)
	err := scan(w, lo, hi, func(k, v []byte) (bool, error) {
		if len(k) != 15 || len(v) < 2 {
			return false, damaged(k, errKey)
		}
		id := readID(k[7:])
		if v[1] == 0 || !of.Has(id.Shard()) {
			return true, nil
		}
		page = append(page, engine.Candidate{ID: id, Due: readTime(k[1:])})
		if len(page) < duePage {
			return true, nil
		}
		err := yield(page)
		page = page[:0]
		if err == nil {
			err = ctx.Err()
		}
		return true, err
	})
	if err != nil || len(page) == 0 {
		return err
	}
	return yield(page)
}

func dueRecurring(ctx context.Context, w *view, of engine.Set, to int64, yield func([]engine.Candidate) error) error {
	rows, err := w.rows()
	if err != nil {
		return err
	}
	defer rows.close()
	page := make([]engine.Candidate, 0, duePage)
	flush := func() error {
		if len(page) == 0 {
			return nil
		}
		slices.SortFunc(page, func(a, b engine.Candidate) int { return compareID(a.ID, b.ID) })
		var buf []byte
		for i := range page {
			c := &page[i]
			v, err := rows.find(c.ID)
			if err != nil {
				return err
			}
			if v == nil {
				return damaged(timerKey(nil, c.ID), errKey)
			}
			if size := min(len(v), engine.MaxCarried); cap(buf)-len(buf) < size {
				buf = make([]byte, 0, max(size, keptTogether))
			}
			n := len(buf)
			buf = engine.AppendCarried(buf, v)
			c.Definition = buf[n:len(buf):len(buf)]
		}
		err := yield(page)
		page = page[:0]
		if err == nil {
			err = ctx.Err()
		}
		return err
	}
	err = scan(w, []byte{kindRecur}, appendTime([]byte{kindRecur}, to+1), func(k, _ []byte) (bool, error) {
		if len(k) != 15 {
			return false, damaged(k, errKey)
		}
		id := readID(k[7:])
		if !of.Has(id.Shard()) {
			return true, nil
		}
		if page = append(page, engine.Candidate{ID: id, Due: readTime(k[1:])}); len(page) < duePage {
			return true, nil
		}
		return true, flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// Raise stores new lower bounds, each for one version of its timer.
func (s *Store) Raise(ctx context.Context, bounds []engine.Bound) error {
	bounds = slices.Clone(bounds)
	slices.SortFunc(bounds, func(a, b engine.Bound) int { return compareID(a.ID, b.ID) })
	for len(bounds) > 0 {
		part := bounds[:min(len(bounds), groupLimit)]
		bounds = bounds[len(part):]
		err := s.do(ctx, len(part), func(g *group) error {
			for _, b := range part {
				if err := g.raise(b); err != nil {
					return err // bounds that were raised may stay: each is independent
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *group) raise(n engine.Bound) error {
	b, err := g.raised(n.ID)
	if err != nil {
		return err
	}
	if b == nil || n.Finished {
		t, err := g.timer(n.ID)
		if err != nil || t == nil || t.Version != n.Version || t.Status != engine.Enabled || t.Schedule.OneShot() {
			return err
		}
		if n.Finished {
			return g.finish(t)
		}
		b = &bound{due: slot(t.ValidFrom), version: t.Version}
	}
	if due := slot(n.Due); due > b.due && n.Version == b.version {
		g.move(n.ID, *b, due)
	}
	return nil
}

// move raises a bound to another slot.
func (g *group) move(id engine.TimerID, b bound, due int64) {
	g.delete(timeKey(nil, kindRecur, b.due, id))
	g.put(timeKey(nil, kindRecur, due, id), none)
	b.due = due
	g.setBound(id, b)
}

// finish archives a recurring timer that has no due left. While a task of the
// timer is owed, the timer only leaves the index of bounds; Sweep archives it
// later.
func (g *group) finish(t *engine.Timer) error {
	done, err := g.archive(t)
	if done || err != nil {
		return err
	}
	b, err := g.bound(t)
	if never := slot(maxTime); err == nil && b.due < never && over(g.st, t) {
		g.move(t.ID, b, never)
	}
	return err
}
