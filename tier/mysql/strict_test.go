package mysql

import (
	"errors"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestStrictMySQL: a MySQL that is set as a replicated, hosted one often is: all
// over TLS, a binary log by GTID, a primary key for each table. Its super_read_only
// is a read-only server, its offline_mode one that is away.
func TestStrictMySQL(t *testing.T) {
	if !servertest.IsMySQL() {
		t.Skip("MariaDB has none of these: make test-mysql")
	}
	t.Parallel()
	server := servertest.MariaDB(t, "--log-bin=binlog", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--sql-require-primary-key=ON", "--require-secure-transport=ON")
	dsn := server.DSN("x")
	if err := New(Config{DSN: dsn}).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "Error 3159") {
		t.Fatalf("without TLS: %v", err)
	}
	s := open(t, New(Config{DSN: dsn + "?tls=skip-verify"}))
	works(t, s)

	server.Do("SET GLOBAL super_read_only=1")
	if _, err := s.Apply(t.Context(), create(shot(1, "a"))); !errors.Is(err, errReadOnly) || !strings.Contains(err.Error(), "Error 1290") {
		t.Errorf("super_read_only: %v", err)
	}
	if _, _, err := s.Take(t.Context(), "n"); !errors.Is(err, errReadOnly) {
		t.Errorf("super_read_only, take: %v", err)
	}
	if _, err := s.Counts(t.Context()); err != nil {
		t.Errorf("it can be read: %v", err)
	}
	server.Do("SET GLOBAL super_read_only=0, GLOBAL read_only=0")
	works(t, s)

	server.Do("SET GLOBAL offline_mode=1")
	all(t, s, engine.ErrUnavailable)
	server.Do("SET GLOBAL offline_mode=0")
	works(t, s)
}
