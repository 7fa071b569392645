package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"strings"

	"xtimer/engine"
)

// What one page of history looks at, and how much of it in one statement.
const (
	taskSteps = 5000
	taskChunk = 1000
)

// recordColumns are what scanTask reads.
const recordColumns = "timer,due,record"

// scanTask reads a record; one that cannot be right is damage, and no error.
func scanTask(rows *sql.Rows) (t *engine.Task, damage *engine.Damage, err error) {
	var b sql.RawBytes
	var k engine.Key
	if err := rows.Scan(&k.Timer, &k.Due, &b); err != nil {
		return nil, nil, err
	}
	t, err = engine.DecodeTask(bytes.Clone(b))
	if err == nil && t.Key != k {
		err = fmt.Errorf("it is the record of task %s", t.Key)
	}
	if err != nil {
		return nil, &engine.Damage{Row: fmt.Sprintf("the row %s of tasks", k), Key: k, Err: err}, nil
	}
	return t, nil, nil
}

// Task finds one record of history.
func (s *Store) Task(ctx context.Context, k engine.Key) (found *engine.Task, err error) {
	err = s.read(ctx, "read a task", func(ctx context.Context) error {
		found = nil
		return s.scan(ctx, fmt.Sprintf("SELECT "+recordColumns+" FROM tasks WHERE timer=%d AND due=%d", k.Timer, k.Due), func(rows *sql.Rows) error {
			t, damage, err := scanTask(rows)
			if found = t; damage != nil {
				err = &rowError{damage}
			}
			return err
		})
	})
	if err == nil && found == nil {
		err = engine.ErrNotFound
	}
	return found, err
}

// Ranks are the ranks of records.
func (s *Store) Ranks(ctx context.Context, ks []engine.Key) ([]engine.Rank, error) {
	var ranks map[engine.Key]engine.Rank
	err := s.read(ctx, "read what records tell", func(ctx context.Context) (err error) {
		var buf []byte
		ranks, err = readRanks(&buf, "", len(ks), func(i int) engine.Key { return ks[i] }, func(q string, f func(*sql.Rows) error) error { return s.scan(ctx, q, f) })
		return err
	})
	list := make([]engine.Rank, len(ks))
	for i, k := range ks {
		list[i] = ranks[k]
	}
	return list, err
}

// readRanks reads the ranks of the records under n keys. One that is damaged has none.
func readRanks(buf *[]byte, tail string, n int, key func(i int) engine.Key, scan func(q string, f func(*sql.Rows) error) error) (map[engine.Key]engine.Rank, error) {
	ranks := map[engine.Key]engine.Rank{}
	return ranks, keyed(buf, "SELECT t.timer,t.due,t.record FROM tasks", keyColumns, tail, n,
		func(b []byte, i int) []byte { return appendKey(b, key(i)) },
		func(q string) error {
			return scan(q, func(rows *sql.Rows) error {
				t, damage, err := scanTask(rows)
				if err == nil && damage == nil {
					ranks[t.Key] = engine.RankOf(t)
				}
				return err
			})
		})
}

// Taken reports whether dues in ranges have a record, or a row of their own. It does not tell several
// ranges of one timer apart.
func (s *Store) Taken(ctx context.Context, ranges []engine.Owed) ([]bool, error) {
	taken := make([]bool, len(ranges))
	for from := 0; from < len(ranges); from += keyedRows {
		part := ranges[from:min(from+keyedRows, len(ranges))]
		in := make([]string, len(part))
		for i, o := range part {
			in[i] = fmt.Sprintf("timer=%d AND due>=%d AND due<=%d", o.Key.Timer, o.Key.Due, o.To)
		}
		where := "(" + strings.Join(in, " OR ") + ")"
		var timers map[engine.TimerID]bool
		err := s.read(ctx, "read which dues are taken", func(ctx context.Context) error {
			timers = map[engine.TimerID]bool{}
			for _, q := range []string{
				"SELECT DISTINCT timer FROM owed FORCE INDEX (PRIMARY) WHERE `until`=0 AND " + where, // first: a due that has lost its row has a record
				"SELECT DISTINCT timer FROM tasks FORCE INDEX (by_timer) WHERE " + where,
			} {
				err := s.scan(ctx, q, func(rows *sql.Rows) error {
					var id engine.TimerID
					err := rows.Scan(&id)
					timers[id] = true
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		for i, o := range part {
			taken[from+i] = timers[o.Key.Timer]
		}
	}
	return taken, nil
}

// LastTask is the newest record of a timer.
func (s *Store) LastTask(ctx context.Context, id engine.TimerID) (*engine.Task, error) {
	ts, _, err := s.Tasks(ctx, engine.TaskFilter{Timer: id}, engine.Key{}, 1)
	if err == nil && len(ts) == 0 {
		err = engine.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return ts[0], nil
}

// Tasks lists history newest first, by due and then by timer.
func (s *Store) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	if before == (engine.Key{}) || before.Timer > math.MaxInt64 {
		if before.Due == 0 {
			before.Due = math.MaxInt64
		}
		before.Timer = math.MaxInt64
	}
	if f.To != 0 && f.To <= before.Due {
		before = engine.Key{Due: f.To} // due < To: nothing is before the timer 0
	}
	where, order := taskPath(&f)
	for steps := 0; limit > 0; {
		n := min(taskChunk, max(limit-len(ts), 64), taskSteps-steps)
		var chunk []*engine.Task
		var damage *engine.Damage // of the row after them
		err := s.read(ctx, "read the history", func(ctx context.Context) error {
			chunk, damage = chunk[:0], nil
			q := fmt.Sprintf("SELECT "+recordColumns+" FROM tasks WHERE %s AND due>=%d AND (due<%[3]d OR due=%[3]d AND timer<%[4]d) ORDER BY %[5]s LIMIT %[6]d",
				where, f.From, before.Due, before.Timer, order, n)
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				t, bad, err := scanTask(rows)
				if damage == nil && bad == nil {
					chunk = append(chunk, t)
				} else if damage == nil {
					damage = bad
				}
				return err
			})
		})
		if err != nil {
			return nil, engine.Key{}, err
		}
		for _, t := range chunk {
			before = t.Key
			if f.Matches(t) {
				ts = append(ts, t)
			}
			if len(ts) == limit {
				return ts, before, nil
			}
		}
		switch {
		case damage != nil && steps == 0 && len(chunk) == 0:
			return nil, engine.Key{}, damage
		case damage != nil:
			return ts, before, nil
		case len(chunk) < n:
			return ts, engine.Key{}, nil
		}
		if steps += n; steps >= taskSteps {
			break
		}
	}
	return ts, before, nil
}

// taskPath picks the index that leaves the least to look at.
func taskPath(f *engine.TaskFilter) (where, order string) {
	switch {
	case f.Timer != 0:
		return is("timer", f.Timer.String()), "timer DESC,due DESC"
	case f.Misfires:
		return is("failure", "2"), "failure DESC,due DESC,timer DESC"
	case len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, func(st engine.TaskStatus) bool { return !st.IsFailure() }):
		return is("failure", "1"), "failure DESC,due DESC,timer DESC"
	}
	return "TRUE", "due DESC,timer DESC"
}

const minute = 60_000 // ms

// LeftOut lists the minutes of [from, to) whose history is incomplete.
func (s *Store) LeftOut(ctx context.Context, from, to int64) (minutes []int64, err error) {
	err = s.read(ctx, "read what was left out", func(ctx context.Context) error {
		minutes = nil
		q := fmt.Sprintf("SELECT minute FROM left_out WHERE minute>%d AND minute<%d ORDER BY minute", from-minute, to)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			var m int64
			err := rows.Scan(&m)
			minutes = append(minutes, m)
			return err
		})
	})
	return minutes, err
}

// leaveOut notes minutes; most are noted already.
func leaveOut(t *transaction, minutes []int64) error {
	if len(minutes) == 0 {
		return nil
	}
	return t.many("INSERT IGNORE INTO left_out (minute) VALUES ", ",", "", len(minutes), func(b []byte, i int) []byte {
		return append(appendInts(append(b, '('), minutes[i]), ')')
	})
}

// forgetLeftOut removes the first minutes of before history begins: an import may note
// millions.
func (s *Store) forgetLeftOut(ctx context.Context, before int64) (more bool, err error) {
	const piece = 5000
	n, last := 0, int64(0)
	err = s.read(ctx, "look for what was left out", func(ctx context.Context) error {
		n = 0
		q := fmt.Sprintf("SELECT minute FROM left_out WHERE minute<=%d ORDER BY minute LIMIT %d", before-minute, piece)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			n++
			return rows.Scan(&last)
		})
	})
	if n == 0 || err != nil {
		return false, err
	}
	err = s.write(ctx, "forget what was left out", slotSweep, func(t *transaction) error {
		return t.run(fmt.Sprintf("DELETE FROM left_out WHERE minute<=%d", last))
	})
	return n == piece, err
}
