package mysql

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// patient waits until a condition holds.
func patient(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// holder begins a transaction of a session that may be silent for as long as a test takes.
func holder(t testing.TB, s *Store) *sql.Tx {
	t.Helper()
	tx, err := s.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	if _, err := tx.Exec(maySilent); err != nil {
		t.Fatal(err)
	}
	return tx
}

// maySilent lets a session be silent for ten minutes.
const maySilent = "SET SESSION wait_timeout=600/*M!100300 , idle_transaction_timeout=600*/"

// waiting reports whether n sessions wait for a lock. It reads the status, not the table
// INNODB_TRX: MariaDB renews the table only when nobody read it for 100 ms, so a test
// that reads it more often would see the first content for ever.
func waiting(server *servertest.Server, n int) func() bool {
	return func() bool {
		out := server.Do("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
		return strings.HasSuffix(strings.TrimSpace(out), fmt.Sprintf("\t%d", n))
	}
}

// TestDeadlock: a change that the server gives up for another's is made again.
func TestDeadlock(t *testing.T) {
	s := opened(t)
	server := servertest.SharedMariaDB(t)
	mustApply(t, s, create(shot(1, "a")))
	mustApply(t, s, create(shot(2, "b")))
	other := holder(t, s)
	exec := func(q string) {
		t.Helper()
		if _, err := other.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	// It has more to undo, so the server gives up the other one.
	for i := range 50 {
		exec(fmt.Sprintf("INSERT INTO labels VALUES ('x','%d',1)", i))
	}
	exec("SELECT 1 FROM timers WHERE id=2 FOR UPDATE")
	var out []engine.Applied
	var wg sync.WaitGroup
	wg.Go(func() { // locks 1, then waits for 2
		out = s.ApplyAll(t.Context(), []*engine.Change{{ID: 1, Was: 1, At: benchNow}, {ID: 2, Was: 1, At: benchNow}})
	})
	patient(t, "a wait for a lock", waiting(server, 1))
	exec("SELECT 1 FROM timers WHERE id=1 FOR UPDATE") // a deadlock
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	for _, a := range out {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if n, err := s.Counts(t.Context()); err != nil || n != (engine.Counts{}) {
		t.Fatalf("%+v, %v", n, err)
	}
}

// TestLockWait: the server rolls back only the statement that waited too long;
// nothing of its transaction may stay.
func TestLockWait(t *testing.T) {
	t.Parallel()
	s := opened(t)
	f := &faulty{extra: "SET SESSION innodb_lock_wait_timeout=1"}
	f.under(t, s)
	o := engine.Owed{Key: engine.Key{Timer: 1, Due: benchNow}, NotBefore: benchNow}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{o}}); err != nil {
		t.Fatal(err)
	}
	other := holder(t, s)
	if _, err := other.Exec("SELECT 1 FROM owed FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	st := &engine.Settlement{Owner: "n", Pay: []engine.Key{o.Key}, Marks: []engine.Mark{{Shard: 3, W: benchNow}}}
	if err := s.Settle(t.Context(), st); !errors.Is(err, engine.ErrUnavailable) {
		t.Fatalf("settled over another's lock: %v", err)
	}
	watermark := func() int64 {
		t.Helper()
		shards, err := s.Shards(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return shards[3].Watermark
	}
	if w := watermark(); w != 0 {
		t.Fatalf("half a settlement was committed: %d", w)
	}
	begun := f.transactions()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Settle(t.Context(), st); err != nil {
			t.Error(err)
		}
	})
	patient(t, "a second try", func() bool { return f.transactions() >= begun+2 })
	if err := other.Rollback(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if w := watermark(); w != benchNow {
		t.Fatal(w)
	}
}

// TestNeighbours: of creates that share commits, those that cannot be made do
// not touch the others.
func TestNeighbours(t *testing.T) {
	s := opened(t)
	for i := range 10 {
		mustApply(t, s, create(shot(engine.TimerID(i+1), fmt.Sprint("taken", i))))
	}
	first := create(shot(90, "first"))
	first.Once = &engine.Once{App: "billing", Key: "k", Body: [32]byte{1}, Expires: benchNow + dayMs}
	mustApply(t, s, first)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			c := create(shot(engine.TimerID(1000+i), fmt.Sprint("free", i)))
			switch i % 4 {
			case 1:
				c.Timer.Name = fmt.Sprint("taken", i%10)
			case 2:
				c.Once = &engine.Once{App: "billing", Key: "k", Body: [32]byte{byte(i/4%2 + 1)}, Expires: benchNow + dayMs}
			case 3:
				c.Timer.ID, c.ID = 5, 5 // is taken
			}
			a, err := s.Apply(t.Context(), c)
			var f *engine.Fault
			switch {
			case i%4 == 0 && err == nil:
			case i%4 == 1 && errors.Is(err, engine.ErrConflict) && a.Existing != nil && a.Existing.Name == c.Timer.Name:
			case i%4 == 2 && i/4%2 == 0 && err == nil && a.Replayed && a.Existing.ID == 90:
			case i%4 == 2 && i/4%2 == 1 && errors.As(err, &f) && f.Code == "idempotency_key_reused":
			case i%4 == 3 && errors.Is(err, engine.ErrConflict) && a.Existing == nil:
			default:
				t.Errorf("%d: %+v, %v", i, a, err)
			}
		})
	}
	wg.Wait()
	if n, err := s.Counts(t.Context()); err != nil || n.Enabled != 61 {
		t.Fatalf("%+v, %v", n, err)
	}
}

// TestFenced: where a fence has moved on nothing is stored, whatever comes with it.
func TestFenced(t *testing.T) {
	s := opened(t)
	if _, _, err := s.Take(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	k := engine.Key{Timer: 1, Due: benchNow}
	st := &engine.Settlement{
		Owner: "a", Tasks: []engine.Record{succeeded(k)}, Owe: []engine.Owed{{Key: k, NotBefore: benchNow}},
		Marks: []engine.Mark{{Shard: 1, Fence: 1, W: benchNow}, {Shard: 7, Fence: 0, W: benchNow}},
	}
	for _, fence := range []uint64{0, 2} {
		st.Marks[1].Fence = fence
		if err := s.Settle(t.Context(), st); !errors.Is(err, engine.ErrFenced) {
			t.Fatalf("fence %d: %v", fence, err)
		}
	}
	if _, err := s.Task(t.Context(), k); !errors.Is(err, engine.ErrNotFound) {
		t.Fatal(err)
	}
	shards, err := s.Shards(t.Context())
	if err != nil || shards[1] != (engine.Shard{Fence: 1, Owner: "b"}) {
		t.Fatalf("%+v, %v", shards[1], err)
	}
	st.Marks[1].Fence = 1
	for range 2 { // the same values once more: the rows are found, if not changed
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTakenOver: once another process has taken the shards, the former one stores
// nothing more, whatever it is: the new one has read already what there is.
func TestTakenOver(t *testing.T) {
	a := opened(t)
	b := open(t, New(a.cfg))
	b.heirWaits = time.Millisecond
	if _, _, err := a.Take(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	made := create(shot(1, "before"))
	if _, err := a.Apply(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	k := engine.Key{Timer: 1, Due: benchNow}
	owe := &engine.Settlement{Owner: "a", Owe: []engine.Owed{{Key: k, NotBefore: benchNow}}}
	if err := a.Settle(t.Context(), owe); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Take(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	var f *engine.Fault
	_, err := a.Apply(t.Context(), create(shot(2, "after")))
	if !errors.Is(err, engine.ErrFenced) || !errors.As(err, &f) || f.Kind != engine.FaultUnavailable {
		t.Errorf("a create after it: %v", err)
	}
	if _, err := a.Apply(t.Context(), &engine.Change{ID: made.ID, Was: 1}); !errors.Is(err, engine.ErrFenced) {
		t.Errorf("a delete after it: %v", err)
	}
	owe.Pay, owe.Owe = []engine.Key{k}, nil
	if err := a.Settle(t.Context(), owe); !errors.Is(err, engine.ErrFenced) {
		t.Errorf("a settle without marks after it: %v", err)
	}
	if _, err := b.Apply(t.Context(), create(shot(3, "after"))); err != nil {
		t.Errorf("the new owner: %v", err)
	}
	if rows, err := b.OwedPage(t.Context(), 1, -1, 1<<20); err != nil || len(rows) != 1 {
		t.Errorf("%d rows are owed, %v", len(rows), err)
	}
}

// succeeded is the record of a task that succeeded, at once where no attempts are given.
func succeeded(k engine.Key, attempts ...engine.Attempt) engine.Record {
	if attempts == nil {
		attempts = []engine.Attempt{{N: 1, Code: 200}}
	}
	task := &engine.Task{Key: k, App: "billing", Status: engine.Succeeded, Attempts: attempts}
	return engine.Record{Key: k, Status: task.Status, Encoded: engine.AppendTask(nil, task)}
}
