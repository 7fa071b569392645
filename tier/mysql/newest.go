package mysql

import (
	"context"
	"database/sql"
	"sync/atomic"

	"xtimer/engine"
)

// newest knows the greatest id that was ever stored, so that no id is issued twice.
// A stored timer holds its own id. The table ids holds the ids of timers that were
// removed, and of timers that were never stored here but have a record or a row. So
// a create costs nothing.
//
// Both fields are known to be committed: they may be lower than what the database
// holds, never higher.
type newest struct {
	used  atomic.Uint64 // held by a stored timer, or by the table ids
	noted atomic.Uint64 // held by the table ids
}

// read asks the database.
func (n *newest) read(ctx context.Context, from querier) (engine.TimerID, error) {
	var id, noted engine.TimerID
	const q = "SELECT COALESCE((SELECT MAX(id) FROM timers),0),COALESCE((SELECT MAX(newest) FROM ids),0)"
	err := scan(ctx, from, q, func(rows *sql.Rows) error { return rows.Scan(&id, &noted) })
	n.committed(id, noted)
	return max(id, noted), err
}

// committed is called with the greatest ids that a commit created and noted.
func (n *newest) committed(created, noted engine.TimerID) {
	lift(&n.used, max(created, noted))
	lift(&n.noted, noted)
}

func lift(v *atomic.Uint64, to engine.TimerID) {
	for was := v.Load(); uint64(to) > was && !v.CompareAndSwap(was, uint64(to)); was = v.Load() {
	}
}

// note writes an id to the table ids, unless known is greater. It must be the last
// statement of a transaction: the lock on the row of the slot then waits for nothing
// but the commit.
func note(t *transaction, known *atomic.Uint64, slot int64, id engine.TimerID) error {
	if uint64(id) <= known.Load() {
		return nil
	}
	t.noted = id
	b := appendInts(append(t.buf[:0], "INSERT INTO ids (slot,newest) VALUES ("...), slot, int64(id))
	t.buf = append(b, ") ON DUPLICATE KEY UPDATE newest=GREATEST(newest,VALUES(newest))"...)
	return t.run(string(t.buf))
}
