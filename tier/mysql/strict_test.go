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

// A server that may lose what it has committed is told of; the usual one is not.
func TestWeaknesses(t *testing.T) {
	for _, x := range []struct {
		args []string
		want []string
	}{
		{nil, nil},
		{[]string{"--innodb-flush-log-at-trx-commit=2"}, []string{"innodb_flush_log_at_trx_commit of the database is 2"}},
		{[]string{"--log-bin=binlog", "--server-id=1", "--sync-binlog=0"}, []string{"sync_binlog of the database is 0"}},
	} {
		s := open(t, New(Config{DSN: servertest.MariaDB(t, x.args...).DSN("xtimer")}))
		got, err := s.Weaknesses(t.Context())
		if err != nil || len(got) != len(x.want) {
			t.Fatalf("%q: %q, %v", x.args, got, err)
		}
		for i, w := range x.want {
			if !strings.HasPrefix(got[i], w) {
				t.Errorf("%q: %q", x.args, got)
			}
		}
	}
}

// Of a Galera cluster all of xtimer must write to one server; a cluster of one is as any server.
func TestGaleraIsToldOf(t *testing.T) {
	for size, want := range map[string]int{"3": 1, "1": 0, "0": 0} {
		got := weaknesses(map[string]string{"innodb_flush_log_at_trx_commit": "1", "wsrep_on": "ON", "wsrep_cluster_size": size})
		if len(got) != want || want == 1 && !strings.Contains(got[0], "Galera cluster of 3 servers") {
			t.Errorf("of %s servers: %q", size, got)
		}
	}
}
