package mysql

import (
	"fmt"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// TestEndedByServer: the server ends the session of a process that was stopped for
// long in the middle of a transaction, or is behind a cut network. Its locks are free
// then, it is not the caller's fault, and all of the transaction is done again. MySQL says 4031 before it ends one.
func TestEndedByServer(t *testing.T) {
	t.Parallel()
	s := opened(t)
	tried := 0
	err := s.transact(t.Context(), "write", func(tx *transaction) error {
		if tried++; tried > 1 {
			return tx.run("INSERT INTO owed (timer,due,`until`,not_before,row_bytes) VALUES (1,1,0,1,'')")
		}
		id := 0
		if err := tx.tx.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
			return err
		}
		const lock = "SELECT fence FROM fences WHERE slot=0 FOR UPDATE"
		for _, q := range []string{lock, "SET SESSION wait_timeout=1"} {
			if err := tx.run(q); err != nil {
				return err
			}
		}
		patient(t, "the session is ended", func() bool {
			n := 0
			return s.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=?", id).Scan(&n) == nil && n == 0
		})
		if _, err := s.db.Exec(lock); err != nil {
			t.Errorf("the lock of a session that has ended: %v", err)
		}
		return tx.run("DELETE FROM owed")
	})
	if err != nil || tried != 2 {
		t.Fatalf("%d tries: %v", tried, err)
	}
}

// TestRolledBack: what Group Replication says to a commit that lost against
// another member's is a lost race too. Here the server is told to say so.
func TestRolledBack(t *testing.T) {
	s := opened(t)
	tried := 0
	err := s.transact(t.Context(), "write", func(tx *transaction) error {
		if tried++; tried > 1 {
			return nil
		}
		return tx.run("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=3101")
	})
	if err != nil || tried != 2 {
		t.Fatalf("%d tries: %v", tried, err)
	}
}

// TestKilledQuery: a statement that somebody killed is not the caller's fault
// either.
func TestKilledQuery(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := New(Config{DSN: server.DSN("x") + "?readTimeout=1m"})
	s.patience = time.Minute
	open(t, s)
	other := holder(t, s)
	const lock = "SELECT fence FROM fences WHERE slot=0 FOR UPDATE"
	if _, err := other.Exec(lock); err != nil {
		t.Fatal(err)
	}
	ids, done, tried := make(chan int, 1), make(chan error, 1), 0
	go func() {
		done <- s.transact(t.Context(), "lock", func(tx *transaction) error {
			if tried++; tried == 1 {
				id := 0
				if err := tx.tx.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
					return err
				}
				if err := tx.run("SET SESSION innodb_lock_wait_timeout=60"); err != nil {
					return err
				}
				ids <- id
			}
			err := tx.run(lock)
			if tried == 1 && number(err) != 1317 {
				t.Errorf("the server said: %v", err)
			}
			return err
		})
	}()
	id := <-ids
	patient(t, "it waits for the lock", waiting(server, 1))
	server.Do(fmt.Sprint("KILL QUERY ", id))
	_ = other.Rollback()
	if err := <-done; err != nil || tried != 2 {
		t.Fatalf("%d tries: %v", tried, err)
	}
}
