package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"xtimer/engine"
)

// What one page of history looks at: so many records that lie side by side, or index
// entries. A record that an index leads to takes as long as seekSteps of them.
const (
	taskSteps = 5000
	seekSteps = 4
)

// Task finds one record of history.
func (s *Store) Task(_ context.Context, k engine.Key) (*engine.Task, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	return w.task(k)
}

// Ranks are the ranks of records.
func (s *Store) Ranks(ctx context.Context, ks []engine.Key) ([]engine.Rank, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	ranks := make([]engine.Rank, len(ks))
	for i, k := range ks {
		t, err := w.task(k)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, engine.ErrNotFound), errors.As(err, new(*engine.Damage)):
		case err != nil:
			return nil, err
		default:
			ranks[i] = engine.RankOf(t)
		}
	}
	return ranks, nil
}

// Taken reports whether dues in ranges have a record, or a row of their own.
func (s *Store) Taken(ctx context.Context, ranges []engine.Owed) ([]bool, error) {
	taken := make([]bool, len(ranges))
	for i, o := range ranges {
		rows, err := s.OwedPage(ctx, o.Key.Timer, o.Key.Due-1, takenRows) // first: a due that has lost its row has a record
		if err != nil {
			return nil, err
		}
		if taken[i] = len(rows) == takenRows || slices.ContainsFunc(rows, func(x engine.Owed) bool { return x.To == 0 && x.Key.Due <= o.To }); taken[i] {
			continue
		}
		ts, next, err := s.Tasks(ctx, engine.TaskFilter{Timer: o.Key.Timer, From: o.Key.Due, To: o.To + 1}, engine.Key{}, 1)
		if err != nil && !errors.As(err, new(*engine.Damage)) {
			return nil, err
		}
		taken[i] = err != nil || len(ts) > 0 || next != (engine.Key{})
	}
	return taken, nil
}

// takenRows is how many rows of a timer Taken reads: the first is the range.
const takenRows = 16

func (w *view) task(k engine.Key) (*engine.Task, error) {
	key := recordKey(nil, k)
	b, err := w.get(key)
	if err != nil {
		return nil, err
	}
	if b == nil {
		return nil, engine.ErrNotFound
	}
	return decodeTask(key, b)
}

// listed is the record that an index entry leads to: there must be one.
func (w *view) listed(k engine.Key) (*engine.Task, error) {
	t, err := w.task(k)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, damagedRecord(recordKey(nil, k), errors.New("the index has it, and there is no record"))
	}
	return t, err
}

// decodeTask reads the record that stands at a key.
func decodeTask(key, b []byte) (*engine.Task, error) {
	t, err := engine.DecodeTask(b)
	if err == nil && t.Key != recordOf(key) {
		err = fmt.Errorf("it is the record of task %s", t.Key)
	}
	if err != nil {
		return nil, damagedRecord(key, err)
	}
	return t, nil
}

// recordOf is the task of which a key has the record.
func recordOf(key []byte) engine.Key {
	return engine.Key{Timer: readID(key[7:]), Due: readTime(key[1:])}
}

// damagedRecord is the error of a record that cannot be right.
func damagedRecord(key []byte, err error) error {
	k := recordOf(key)
	return &engine.Damage{Row: fmt.Sprintf("the record at task %s", k), Key: k, Err: err}
}

// LastTask is the newest record of a timer.
func (s *Store) LastTask(ctx context.Context, id engine.TimerID) (*engine.Task, error) {
	f, before := engine.TaskFilter{Timer: id}, engine.Key{}
	for {
		ts, next, err := s.Tasks(ctx, f, before, 1)
		if err != nil {
			return nil, err
		}
		if len(ts) > 0 {
			return ts[0], nil
		}
		if next == (engine.Key{}) {
			return nil, engine.ErrNotFound
		}
		before = next
	}
}

// Tasks lists history newest first, by due and then by timer.
func (s *Store) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	if before == (engine.Key{}) {
		before = engine.Key{Timer: math.MaxUint64, Due: maxTime}
	}
	if f.To != 0 {
		if k := (engine.Key{Due: max(f.To, 0)}); less(k, before) {
			before = k
		}
	}
	if limit <= 0 {
		return nil, before, nil
	}
	w, err := s.views.acquire()
	if err != nil {
		return nil, engine.Key{}, err
	}
	defer s.views.release(w)
	p := &taskPage{w: w, f: &f, limit: limit}
	switch {
	case f.Timer != 0:
		err = p.byTimer(ctx, before)
	case f.Misfires:
		err = p.byTime(ctx, kindMisfire, before)
	case onlyFailures(f.Statuses):
		err = p.byTime(ctx, kindFailure, before)
	default:
		err = p.byTime(ctx, kindRecord, before)
	}
	var d *engine.Damage
	switch {
	case errors.As(err, &d) && p.looked:
		return p.tasks, p.last, nil
	case err != nil:
		return nil, engine.Key{}, err
	}
	if p.ended {
		return p.tasks, engine.Key{}, nil
	}
	return p.tasks, p.last, nil
}

func less(a, b engine.Key) bool { return a.Due < b.Due || a.Due == b.Due && a.Timer < b.Timer }

func onlyFailures(sts []engine.TaskStatus) bool {
	return len(sts) > 0 && !slices.ContainsFunc(sts, func(st engine.TaskStatus) bool { return !st.IsFailure() })
}

// taskPage collects a page of history. It stops when the page is full, at the
// end, or after taskSteps.
type taskPage struct {
	w      *view
	f      *engine.TaskFilter
	limit  int
	tasks  []*engine.Task
	last   engine.Key // where the next page goes on: before this key
	ended  bool
	steps  int
	looked bool // at a record
}

// add looks at one record; more is false when the page ends here.
func (p *taskPage) add(k engine.Key, t *engine.Task) (more bool) {
	p.last, p.looked = k, true
	p.steps++
	if t != nil && p.f.Matches(t) {
		p.tasks = append(p.tasks, t)
	}
	return len(p.tasks) < p.limit && p.steps < taskSteps
}

// byTime walks the records, or the index of failures or of misfires, down from before.
func (p *taskPage) byTime(ctx context.Context, kind byte, before engine.Key) error {
	lo := appendTime([]byte{kind}, p.f.From)
	p.ended = true
	var seen engine.Task
	return scanBack(p.w, lo, timeKey(nil, kind, before.Due, before.Timer), func(k, v []byte) (bool, error) {
		if len(k) != 15 {
			return false, damaged(k, errKey)
		}
		key := recordOf(k)
		var t *engine.Task
		var err error
		switch {
		case kind == kindRecord:
			if engine.DecodeTaskInto(v, &seen) == nil && seen.Key == key && !p.f.Matches(&seen) {
				break // most of what a search looks at
			}
			t, err = decodeTask(k, slices.Clone(v))
		case p.f.App != "" && len(v) > len(none) && string(v[len(none):]) != p.f.App:
			// Another app's failure: without a look at its record.
		default:
			t, err = p.w.listed(key)
			p.steps += seekSteps - 1
		}
		if err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		p.ended = p.add(key, t)
		return p.ended, nil
	})
}

const minute = 60_000 // ms

func leftOutKey(m int64) []byte { return appendTime([]byte{kindLeftOut}, m) }

// LeftOut returns the minutes of [from, to) whose history is incomplete.
func (s *Store) LeftOut(_ context.Context, from, to int64) (minutes []int64, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	err = scan(w, leftOutKey(from-minute+1), leftOutKey(to), func(k, _ []byte) (bool, error) {
		if len(k) != 7 {
			return false, damaged(k, errKey)
		}
		minutes = append(minutes, readTime(k[1:]))
		return true, nil
	})
	return minutes, err
}

// forgetLeftOut removes the notes of minutes that are older than history.
func (s *Store) forgetLeftOut(ctx context.Context, before int64) (more bool, err error) {
	ks, more, err := s.keys([]byte{kindLeftOut}, leftOutKey(before-minute+1), sweepPiece)
	if len(ks) == 0 || err != nil {
		return false, err
	}
	return more, s.do(ctx, len(ks), func(g *group) error {
		for _, k := range ks {
			g.delete(k)
		}
		return nil
	})
}
