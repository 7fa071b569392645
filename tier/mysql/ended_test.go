package mysql

import "testing"

// TestEndedByServer: the server ends the session of a process that was stopped for
// long in the middle of a transaction. That is not the caller's fault, and all of
// the transaction is done again. MySQL says 4031 before it ends one.
func TestEndedByServer(t *testing.T) {
	t.Parallel()
	s := opened(t)
	tried := 0
	err := s.transact(t.Context(), "write", func(tx *transaction) error {
		if tried++; tried > 1 {
			return tx.run("INSERT INTO owed VALUES (1,1,0,1,'')")
		}
		id := 0
		if err := tx.tx.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
			return err
		}
		if err := tx.run("SET SESSION wait_timeout=1"); err != nil {
			return err
		}
		patient(t, "the session is ended", func() bool {
			n := 0
			return s.db.QueryRow("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID=?", id).Scan(&n) == nil && n == 0
		})
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
