package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"xtimer/engine"
)

// faulty puts commits in doubt: what commit returns is what the tier hears.
type faulty struct {
	driver.Connector
	mu     sync.Mutex
	begun  int
	extra  string // said by each new connection
	commit func(commit func() error, cut func()) error
}

// make puts a faulty way to the database under an open store.
func (f *faulty) under(t *testing.T, s *Store) {
	t.Helper()
	c, err := parseDSN(s.cfg.DSN)
	if err != nil {
		t.Fatal(err)
	}
	c.Logger = &mysql.NopLogger{}
	inner, err := mysql.NewConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	f.Connector = connector{inner}
	was := s.db
	s.db = sql.OpenDB(f)
	t.Cleanup(func() { was.Close() })
	if err := s.inserts.prepare(t.Context(), s.db); err != nil {
		t.Fatal(err)
	}
}

func (f *faulty) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	conn := c.(realConn)
	if f.extra != "" {
		if _, err := conn.ExecContext(ctx, f.extra, nil); err != nil {
			return nil, err
		}
	}
	return &faultyConn{realConn: conn, f: f}, nil
}

// fail sets what the next commits do; nil: commit.
func (f *faulty) fail(commit func(commit func() error, cut func()) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit = commit
}

func (f *faulty) transactions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.begun
}

type faultyConn struct {
	realConn
	f      *faulty
	isLost atomic.Bool // for the tier; the server's session stands until it is cut
}

func (c *faultyConn) IsValid() bool { return !c.isLost.Load() && c.realConn.IsValid() }

func (c *faultyConn) Close() error {
	if c.isLost.Load() {
		return nil
	}
	return c.realConn.Close()
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.realConn.BeginTx(ctx, o)
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.begun++
	return &faultyTx{tx, c}, err
}

type faultyTx struct {
	driver.Tx
	c *faultyConn
}

func (t *faultyTx) Commit() error {
	t.c.f.mu.Lock()
	commit := t.c.f.commit
	t.c.f.mu.Unlock()
	if commit == nil {
		return t.Tx.Commit()
	}
	t.c.isLost.Store(true)
	return commit(t.Tx.Commit, func() { t.c.realConn.Close() })
}

// once lets only the first commit fail.
func (f *faulty) failOnce(commit func(commit func() error, cut func()) error) {
	f.fail(func(c func() error, cut func()) error {
		f.fail(nil)
		return commit(c, cut)
	})
}

func shot(id engine.TimerID, name string) *engine.Timer {
	t := benchTimer(int(id))
	t.ID, t.Name = id, name
	return t
}

func create(t *engine.Timer) *engine.Change {
	return &engine.Change{Timer: t, ID: t.ID, At: t.CreatedAt}
}

func mustApply(t testing.TB, s *Store, c *engine.Change) {
	t.Helper()
	if _, err := s.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestCommitWithoutAnswer: a commit whose answer is lost is found out, whether it
// was made or not, and made once.
func TestCommitWithoutAnswer(t *testing.T) {
	s := opened(t)
	f := &faulty{}
	f.under(t, s)
	made := func(commit func() error, cut func()) error { commit(); cut(); return mysql.ErrInvalidConn }
	lost := func(_ func() error, cut func()) error { cut(); return mysql.ErrInvalidConn }
	for i, fail := range []func(func() error, func()) error{made, lost} {
		name := fmt.Sprint("n", i)
		id := engine.TimerID(i*10 + 1)
		f.failOnce(fail)
		mustApply(t, s, create(shot(id, name)))

		// With an Idempotency-Key: its own row is no repeat.
		c := create(shot(id+1, name+"-once"))
		c.Once = &engine.Once{App: c.Timer.App, Key: name, Expires: benchNow + dayMs}
		f.failOnce(fail)
		if a, err := s.Apply(t.Context(), c); err != nil || a.Replayed {
			t.Fatalf("%+v, %v", a, err)
		}

		// A change that leaves the version alone.
		o := engine.Owed{Key: engine.Key{Timer: id, Due: benchNow + 1}, NotBefore: benchNow}
		f.failOnce(fail)
		mustApply(t, s, &engine.Change{Timer: shot(id, name), ID: id, Was: 1, Owe: []engine.Owed{o}})
		if rows, err := s.OwedPage(t.Context(), id, -1, 1<<20); err != nil || len(rows) != 1 {
			t.Fatalf("%v, %v", rows, err)
		}

		f.failOnce(fail)
		mustApply(t, s, &engine.Change{ID: id, Was: 1, At: benchNow})
		if _, err := s.Timer(t.Context(), id); !errors.Is(err, engine.ErrNotFound) {
			t.Fatal(err)
		}

		f.failOnce(fail)
		if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Pay: []engine.Key{o.Key}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := s.Counts(t.Context()); err != nil || n != (engine.Counts{Enabled: 2}) {
		t.Fatalf("%+v, %v", n, err)
	}
}

// TestCommitInDoubt: while a session that was cut off may still commit, the
// outcome is not known, and nothing may act on what is read: a settle waits until
// the session is over.
func TestCommitInDoubt(t *testing.T) {
	t.Parallel()
	s := opened(t)
	s.patience = 3 * time.Second
	f := &faulty{extra: maySilent + ", innodb_lock_wait_timeout=1"}
	f.under(t, s)
	for i, late := range []bool{true, false} { // the session commits in the end; or not
		id := engine.TimerID(i + 1)
		end := make(chan func(), 1)
		f.failOnce(func(commit func() error, cut func()) error {
			end <- func() {
				if late {
					commit()
				}
				cut()
			}
			return mysql.ErrInvalidConn
		})
		var err error
		for len(end) == 0 { // on a busy machine it may not come as far as the commit in time
			_, err = s.Apply(t.Context(), create(shot(id, fmt.Sprint("n", i))))
		}
		if !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("the outcome cannot be known, and yet: %v", err)
		}
		settle := func() error { return s.Settle(t.Context(), &engine.Settlement{Owner: "n"}) }
		if err := settle(); !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("settled over a commit in doubt: %v", err)
		}
		(<-end)()
		for deadline := time.Now().Add(time.Minute); settle() != nil; {
			if time.Now().After(deadline) {
				t.Fatal("the doubt stays")
			}
		}
		_, err = s.Timer(t.Context(), id)
		if late && err != nil || !late && !errors.Is(err, engine.ErrNotFound) {
			t.Fatalf("committed: %v; read: %v", late, err)
		}
		if len(s.doubts.proofs) != 0 {
			t.Fatal("a doubt that is settled is kept")
		}
	}
}

// The number of a commit that was not made may be somebody else's by now.
func TestProofOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := opened(t)
	mustApply(t, s, create(shot(1, "a")))
	var p proof
	if err := scan(t.Context(), s.db, "SELECT seq,made FROM changes", func(rows *sql.Rows) error { return rows.Scan(&p.seq, &p.made) }); err != nil {
		t.Fatal(err)
	}
	for _, mine := range []bool{true, false} {
		if !mine {
			p.made = append([]byte(nil), p.made...)
			p.made[7]++
		}
		if made, err := s.doubts.settle(t.Context(), s.db, p); err != nil || made != mine {
			t.Errorf("its row is mine: %v; made: %v, %v", mine, made, err)
		}
	}
}
