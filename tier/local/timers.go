package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

func compareID(a, b engine.TimerID) int { return cmp.Compare(a, b) }

// rows finds definitions by id; ids that rise are found fastest.
type rows struct {
	it  *pebble.Iterator
	key []byte
}

func (w *view) rows() (*rows, error) {
	it, err := w.NewIter(&pebble.IterOptions{LowerBound: []byte{kindTimer}, UpperBound: []byte{kindTimer + 1}})
	return &rows{it: it}, err
}

// find returns the stored form, valid until the next find; nil when there is none.
func (r *rows) find(id engine.TimerID) ([]byte, error) {
	r.key = timerKey(r.key[:0], id)
	if !r.it.SeekPrefixGE(r.key) { // SeekGE would step over all deleted definitions behind the key
		return nil, r.it.Error()
	}
	return r.it.ValueAndErr()
}

func (r *rows) close() { _ = r.it.Close() } // find has reported its error

// decode reads a stored definition into one of the reader's own.
func decodeTimer(id engine.TimerID, v []byte) (*engine.Timer, error) {
	t, err := engine.DecodeTimer(v)
	if err == nil && t.ID != id {
		err = errKey
	}
	if err != nil {
		return nil, damaged(timerKey(nil, id), err)
	}
	return t, nil
}

// Timer finds one timer as it is now.
func (s *Store) Timer(_ context.Context, id engine.TimerID) (*engine.Timer, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	return w.timer(id)
}

func (w *view) timer(id engine.TimerID) (*engine.Timer, error) {
	b, err := w.get(timerKey(nil, id))
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, engine.ErrNotFound
	}
	t, err := decodeTimer(id, b)
	if err != nil {
		return nil, err
	}
	return w.asEnded(t)
}

// TimerByName finds one timer by its name.
func (s *Store) TimerByName(_ context.Context, app, name string) (*engine.Timer, error) {
	if name == "" {
		return nil, engine.ErrNotFound
	}
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	key := nameKey(nil, app, name, 0)
	b, err := w.get(key)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, engine.ErrNotFound
	}
	id, err := decodeName(key, b)
	if err != nil {
		return nil, err
	}
	return w.timer(id)
}

// keptTogether is the most memory (bytes) that loaded definitions share: one that is
// kept keeps it.
const keptTogether = 32 << 10

// Load reads many encoded definitions, as they are carried, in the order of ids. A
// one-shot that is archived may still have the status enabled in its definition.
func (s *Store) Load(ctx context.Context, ids []engine.TimerID) ([][]byte, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	rows, err := w.rows()
	if err != nil {
		return nil, err
	}
	defer rows.close()
	order := make([]int32, len(ids))
	for i := range order {
		order[i] = int32(i)
	}
	byID := func(a, b int32) int { return compareID(ids[a], ids[b]) }
	if !slices.IsSortedFunc(order, byID) {
		slices.SortFunc(order, byID)
	}
	out := make([][]byte, len(ids))
	var buf []byte // one for some: what is loaded together is kept together
	for n, i := range order {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		v, err := rows.find(ids[i])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if size := min(len(v), engine.MaxCarried); cap(buf)-len(buf) < size {
			buf = make([]byte, 0, max(size, min(min(len(ids)-n, 64)*size, keptTogether)))
		}
		at := len(buf)
		buf = engine.AppendCarried(buf, v)
		out[i] = buf[at:len(buf):len(buf)]
	}
	return out, nil
}

// Versions lists former versions of a timer, newest first.
func (s *Store) Versions(_ context.Context, id engine.TimerID, before uint32, limit int) ([]*engine.Timer, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	return versions(w, id, before, limit)
}

func versions(r pebble.Reader, id engine.TimerID, before uint32, limit int) (ts []*engine.Timer, err error) {
	if limit <= 0 {
		return nil, nil
	}
	to := allVersions(id)
	if before != 0 {
		to = versionKey(nil, id, before)
	}
	err = eachVersion(r, id, to, func(v []byte) (bool, error) {
		t, err := engine.DecodeTimer(slices.Clone(v))
		ts = append(ts, t)
		return len(ts) < limit, err
	})
	return ts, err
}

// eachVersion reads the former versions of a timer whose keys are before to, newest
// first. What f gets is only valid in f; an error of f is one of decoding.
func eachVersion(r pebble.Reader, id engine.TimerID, to []byte, f func(v []byte) (more bool, err error)) error {
	return scanBack(r, appendID([]byte{kindVersion}, id), to, func(k, v []byte) (bool, error) {
		more, err := f(v)
		if err != nil {
			return false, damaged(k, err)
		}
		return more, nil
	})
}

// allVersions is the key after all versions of a timer.
func allVersions(id engine.TimerID) []byte { return after(appendID([]byte{kindVersion}, id)) }

// lastVersion is the last version of a deleted timer; nil when it is not kept.
func (g *group) lastVersion(id engine.TimerID) (*engine.Timer, error) {
	var last *engine.Timer
	for _, w := range g.writes[kindVersion] { // deleted in this group
		if w.val != nil && readID(w.key[1:]) == id {
			t, err := engine.DecodeTimer(slices.Clone(w.val))
			if err != nil {
				return nil, err
			}
			if last == nil || t.Version > last.Version {
				last = t
			}
		}
	}
	if last != nil {
		return last, nil
	}
	ts, err := versions(g.s.db, id, 0, 1)
	if len(ts) == 0 || err != nil {
		return nil, err
	}
	return ts[0], nil
}

// Counts returns the number of timers by stored status.
func (s *Store) Counts(context.Context) (engine.Counts, error) {
	w, err := s.views.acquire()
	if err != nil {
		return engine.Counts{}, err
	}
	defer s.views.release(w)
	b, err := w.get(statsKey)
	if b == nil || err != nil {
		return engine.Counts{}, err
	}
	st := stats{owed: map[int64]int64{}, ranges: map[int64]int64{}}
	if err := st.decode(b); err != nil {
		return engine.Counts{}, damaged(statsKey, errors.Join(err))
	}
	return st.counts(), nil
}

// formerKey indexes a former version by when it was replaced.
func formerKey(b []byte, at int64, id engine.TimerID, version uint32) []byte {
	return binary.BigEndian.AppendUint32(timeKey(b, kindFormer, at, id), version)
}
