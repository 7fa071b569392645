package mysql

import (
	"bytes"
	"database/sql"

	"xtimer/engine"
)

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
