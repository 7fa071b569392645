package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

// Timer finds one timer as it is now.
func (s *Store) Timer(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	return s.timer(ctx, fmt.Sprintf("%s WHERE id=%d", selectRow, id))
}

// TimerByName finds one timer by its name.
func (s *Store) TimerByName(ctx context.Context, app, name string) (*engine.Timer, error) {
	if name == "" {
		return nil, engine.ErrNotFound
	}
	b := appendBytes([]byte(selectRow+" WHERE nameless=0 AND app="), app)
	return s.timer(ctx, string(appendBytes(append(b, " AND name="...), name)))
}

func (s *Store) timer(ctx context.Context, query string) (found *engine.Timer, err error) {
	err = s.readWithin(ctx, s.answer, "read a timer", func(ctx context.Context) error {
		found = nil
		return s.scan(ctx, query, func(rows *sql.Rows) error {
			r, err := scanRow(rows)
			if err == nil {
				found = r.timer
			}
			return err
		})
	})
	if err == nil && found == nil {
		err = engine.ErrNotFound
	}
	return found, err
}

// firstLoad is how many definitions are read first where nobody knows how large they are:
// what one statement reads has to come within the patience for it, over a slow link, too.
const firstLoad = 64

// Load reads many encoded definitions, as they are carried, in the order of ids.
func (s *Store) Load(ctx context.Context, ids []engine.TimerID) ([][]byte, error) {
	places := make(map[engine.TimerID]int, len(ids)) // the first of each
	out := make([][]byte, len(ids))
	for i, id := range ids {
		if _, ok := places[id]; !ok {
			places[id] = i
		}
	}
	for n, rest := firstLoad, ids; len(rest) > 0; {
		part, size := rest[:min(n, len(rest))], 0
		err := s.read(ctx, "load timers", func(ctx context.Context) error {
			size = 0
			return s.scan(ctx, selectRow+" WHERE id IN "+string(appendIDs(nil, part)), func(rows *sql.Rows) error {
				id, b, read, err := scanEncoded(rows)
				if err == nil {
					out[places[id]] = b
					size += read
				}
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		rest = rest[len(part):]
		n = min(max(s.pageBytes*len(part)/max(size, 1), 1), statementRows)
	}
	for i, id := range ids {
		out[i] = out[places[id]]
	}
	return out, nil
}

// scanEncoded reads what selectRow selects as it is carried, and decodes only what has to
// be; size is how many bytes were read for it.
func scanEncoded(rows *sql.Rows) (id engine.TimerID, encoded []byte, size int, err error) {
	var status engine.Status
	var bound int64
	var b sql.RawBytes
	if err := rows.Scan(&id, &status, &bound, &b); err != nil {
		return 0, nil, 0, err
	}
	if status == engine.Finished {
		if t, err := decodeTimer(id, status, b); err == nil {
			return id, engine.Carried(t), len(b), nil
		}
	}
	return id, engine.AppendCarried(nil, b), len(b), nil
}

// Versions lists former versions of a timer, newest first.
func (s *Store) Versions(ctx context.Context, id engine.TimerID, before uint32, limit int) (ts []*engine.Timer, err error) {
	err = s.read(ctx, "read the versions of a timer", func(ctx context.Context) error {
		ts = nil
		where := is("timer", id.String())
		if before != 0 {
			where += fmt.Sprintf(" AND version<%d", before)
		}
		q := fmt.Sprintf("SELECT timer,definition FROM versions WHERE %s ORDER BY version DESC LIMIT %d", where, max(limit, 0))
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			t, err := scanTimer(rows, "versions")
			ts = append(ts, t)
			return err
		})
	})
	return ts, err
}

// Counts counts the timers by stored status.
func (s *Store) Counts(ctx context.Context) (n engine.Counts, err error) {
	err = s.read(ctx, "count the timers", func(ctx context.Context) error {
		n = engine.Counts{}
		return s.scan(ctx, "SELECT status,CAST(SUM(n) AS SIGNED) FROM counts GROUP BY status", func(rows *sql.Rows) error {
			var st engine.Status
			var sum int64
			if err := rows.Scan(&st, &sum); err != nil {
				return err
			}
			switch st {
			case engine.Enabled:
				n.Enabled = sum
			case engine.Disabled:
				n.Disabled = sum
			case engine.Finished:
				n.Finished = sum
			}
			return nil
		})
	})
	return n, err
}

// What the plan derives of a timer, as by_due has it.
const (
	kindNone      = 0
	kindOneShot   = 1 // one due: bound
	kindRecurring = 2 // dues from bound on
)

// place is where a timer lies in the indexes.
type place struct{ ends, kind, bound int64 }

func placeOf(t *engine.Timer, bound int64) place {
	last := lastDue(t)
	switch {
	case t.Status == engine.Finished:
		return place{ends: max(last, t.UpdatedAt)}
	case t.Status != engine.Enabled:
		return place{}
	case !t.Schedule.OneShot():
		return place{last, kindRecurring, bound}
	case last > t.ValidFrom:
		return place{last, kindOneShot, last}
	default: // its due is in owed, from the transaction that took it
		return place{ends: last}
	}
}

// lastDue is the last due of a timer, of a one-shot the only one; 0 when there
// is no end.
func lastDue(t *engine.Timer) int64 {
	if t.LastDue != 0 {
		return t.LastDue
	}
	return t.At
}

// values are the columns of a row, in the order of the insert.
func (r *row) values(args []any) []any {
	t, p := r.timer, placeOf(r.timer, r.bound)
	nameless := int64(0)
	if t.Name == "" {
		nameless = int64(t.ID)
	}
	return append(args, int64(t.ID.Shard()), int64(t.ID), t.App, t.Name, nameless, int64(t.Status), int64(t.Version), p.ends, p.kind, p.bound, r.encoded)
}

// scanRow reads what selectRow selects.
func scanRow(rows *sql.Rows) (*row, error) {
	var id engine.TimerID
	var status engine.Status
	var b sql.RawBytes
	r := &row{}
	if err := rows.Scan(&id, &status, &r.bound, &b); err != nil {
		return nil, err
	}
	var err error
	r.encoded = bytes.Clone(b)
	if r.timer, err = decodeTimer(id, status, r.encoded); err != nil {
		return nil, err
	}
	if r.timer.Status == engine.Finished {
		r.encoded = engine.AppendTimer(nil, r.timer)
	}
	return r, nil
}

// decodeTimer reads a stored definition. Archiving writes the column alone: the
// status in the definition may still be the former one.
func decodeTimer(id engine.TimerID, status engine.Status, b []byte) (*engine.Timer, error) {
	t, err := engine.DecodeTimer(b)
	if err != nil {
		return nil, &rowError{damaged("timers", id, err)}
	}
	t.Status = status
	return t, nil
}

// scanTimer reads a row of (timer, definition).
func scanTimer(rows *sql.Rows, table string) (*engine.Timer, error) {
	var id engine.TimerID
	var b sql.RawBytes
	if err := rows.Scan(&id, &b); err != nil {
		return nil, err
	}
	t, err := engine.DecodeTimer(bytes.Clone(b))
	if err != nil {
		return nil, &rowError{damaged(table, id, err)}
	}
	return t, nil
}
