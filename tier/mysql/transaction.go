package mysql

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"

	"xtimer/engine"
)

// transaction is one transaction under way.
type transaction struct {
	tx   *sql.Tx
	ctx  context.Context
	buf  []byte // statements are built in it
	args []any  // and the values of prepared ones
	// created is the greatest id of the timers that it creates, noted that of note.
	created, noted engine.TimerID
	// proof is a row of changes that this transaction inserted. If the commit gets no
	// answer, the row shows whether it was made.
	proof proof
	// life adds to a row of fences in it: n is what slot has then. nil: none does.
	life *life
	slot int64
	n    int64
}

// proof is a row of changes. Its number alone proves nothing: a server that was
// killed before a commit may give the number to somebody else.
type proof struct {
	seq  int64 // 0: there is none
	made []byte
}

func (t *transaction) exec(query string) (sql.Result, error) { return t.tx.ExecContext(t.ctx, query) }

// run executes a statement whose result does not matter.
func (t *transaction) run(query string) error {
	_, err := t.exec(query)
	return err
}

// affect executes a statement, and returns how many rows it found.
func (t *transaction) affect(query string) (rows int64, err error) {
	res, err := t.exec(query)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (t *transaction) scan(query string, each func(*sql.Rows) error) error {
	return scan(t.ctx, t.tx, query, each)
}

// many runs statements of n items, see many.
func (t *transaction) many(head, sep, tail string, n int, item func(b []byte, i int) []byte) error {
	return many(&t.buf, head, sep, tail, n, item, t.run)
}

// keyed runs statements on the rows with one of n keys, see keyed.
func (t *transaction) keyed(head string, columns []string, tail string, n int, key func(b []byte, i int) []byte) error {
	return keyed(&t.buf, head, columns, tail, n, key, t.run)
}

// transact runs f in a transaction and commits it: again, from its beginning,
// when it lost a race or its connection. On any error all of it is rolled back,
// since the server may have rolled back the last statement only. What f writes
// can be written twice, or it leaves a proof.
//
// A nil answer means that it is committed; engine.ErrUnavailable, that it was
// not, or that nobody could tell in the time given.
func (s *Store) transact(ctx context.Context, what string, f func(*transaction) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	var err error
	for try := range tries {
		if number(err) != errDuplicate { // that is judged anew at once
			if e := pause(limited, try); e != nil {
				err = cmp.Or(err, e)
				break
			}
		}
		var made bool
		if made, err = s.attempt(limited, f); made {
			return nil
		}
		if !again(err) && number(err) != errDuplicate {
			break
		}
	}
	return s.fault(ctx, what, err)
}

func (s *Store) attempt(ctx context.Context, f func(*transaction) error) (made bool, err error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	t := &transaction{tx: tx, ctx: ctx}
	if err := f(t); err != nil {
		_ = tx.Rollback() // the error that matters is f's; a lost connection rolls back by itself
		return err == errNothing, err
	}
	err = tx.Commit()
	if err == nil {
		s.note(t)
		return true, nil
	}
	_ = tx.Rollback()
	if t.proof.seq == 0 {
		return false, err
	}
	// It has a time of its own: what is known now need not be found out later.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience/2)
	defer cancel()
	if made, e := s.doubts.settle(ctx, s.db, t.proof); e == nil {
		if made {
			s.note(t)
		}
		return made, err
	}
	s.doubts.add(t.proof)
	return false, &rowError{fmt.Errorf("the commit got no response, its outcome is not known: %w: %w: %w", errAway, engine.ErrUnavailable, err)}
}

// note notes what follows from a transaction that was committed.
func (s *Store) note(t *transaction) {
	s.newest.committed(t.created, t.noted)
	if t.life != nil {
		counted := &t.life.counted[t.slot]
		counted.Store(max(counted.Load(), t.n))
	}
}

// errNothing ends a transaction that found nothing to write: it is rolled back,
// and well.
var errNothing = &rowError{fmt.Errorf("there is nothing to write")}

// doubts are the commits whose outcome nobody could tell in time. The server
// may still make one: a session that was cut off ends when the server notices.
// Until then its rows are locked, its proof among them: who gets that lock knows.
//
// Before that, they are ops whose callers wait no more and whose committer is not
// done with them.
type doubts struct {
	mu     sync.Mutex
	proofs []proof
	ops    []*op
}

// leave notes an op that its caller has left to its committer.
func (d *doubts) leave(o *op) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ops = append(slices.DeleteFunc(d.ops, (*op).isDone), o) // an outage may be long
}

func (d *doubts) add(p proof) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proofs = append(d.proofs, p)
}

// settle waits until no session holds the proof, and reports whether it was committed.
func (d *doubts) settle(ctx context.Context, from querier, p proof) (made bool, err error) {
	for try := range tries {
		if err = pause(ctx, try); err != nil {
			return false, err
		}
		made = false
		err = scan(ctx, from, fmt.Sprintf("SELECT made FROM changes WHERE seq=%d FOR UPDATE", p.seq), func(rows *sql.Rows) error {
			var b sql.RawBytes
			err := rows.Scan(&b)
			made = bytes.Equal(b, p.made)
			return err
		})
		if !again(err) {
			break
		}
	}
	return made, err
}

// settleAll waits until none of the commits in doubt can be made any more: what
// is read after that stays.
func (d *doubts) settleAll(ctx context.Context, from querier) error {
	d.mu.Lock()
	ops := slices.Clone(d.ops)
	d.mu.Unlock()
	for _, o := range ops { // first: one that ends may leave a proof
		select {
		case <-o.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	d.mu.Lock()
	d.ops = slices.DeleteFunc(d.ops, (*op).isDone)
	proofs := slices.Clone(d.proofs)
	d.mu.Unlock()
	for _, p := range proofs {
		if _, err := d.settle(ctx, from, p); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.proofs = slices.DeleteFunc(d.proofs, func(p proof) bool {
		return slices.ContainsFunc(proofs, func(q proof) bool { return p.seq == q.seq })
	})
	return nil
}
