package mysql

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
	"xtimer/tier/servertest"
	"xtimer/tier/tiertest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("rapid.checks", "8") // each has a database of its own
	os.Exit(servertest.Main(m))
}

// unsynced lets the shared server keep its commits in memory: nothing that uses
// it crashes it.
var unsynced sync.Once

// fresh is a store on a database of its own, not open yet.
func fresh(t testing.TB) *Store {
	t.Helper()
	server := servertest.SharedMariaDB(t)
	unsynced.Do(func() {
		server.Do("SET GLOBAL innodb_flush_log_at_trx_commit=0")
		if !servertest.IsMySQL() {
			server.Do("SET GLOBAL sync_frm=0")
		}
	})
	return New(Config{DSN: server.DSN("")})
}

// opened is an unhurried store on a database of its own.
func opened(t testing.TB) *Store {
	t.Helper()
	return open(t, unhurried(t))
}

func open(t testing.TB, s *Store) *Store {
	t.Helper()
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// unhurried is a fresh store that takes a slow machine for one, and not for a
// database that is away.
func unhurried(t testing.TB) *Store {
	t.Helper()
	s := fresh(t)
	s.patience, s.answer = time.Minute, time.Minute
	return s
}

func TestCold(t *testing.T) {
	tiertest.Cold(t, func(t *testing.T) engine.Cold { return unhurried(t) })
}

func TestMembers(t *testing.T) {
	tiertest.Members(t, func(t *testing.T) func() (engine.Cold, engine.Members) {
		cfg := fresh(t).cfg
		return func() (engine.Cold, engine.Members) {
			s := New(cfg)
			s.patience, s.answer = time.Minute, time.Minute
			return s, NewMembers(s)
		}
	})
}

func TestModel(t *testing.T) {
	tiertest.Model(t,
		func() engine.Cold { return unhurried(t) },
		func() engine.Cold { return memory.NewCold() },
	)
}
