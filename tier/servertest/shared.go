package servertest

import (
	"os"
	"sync"
	"testing"
)

var shared struct {
	sync.Mutex
	mariaDB *Server // nil until the first test asks
	ends    []func()
	isHeld  bool // Main runs
}

// Main runs the tests of a package that uses SharedMariaDB and ends what they
// shared: func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }.
func Main(m interface{ Run() int }) int {
	shared.Lock()
	shared.isHeld = true
	shared.Unlock()
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	for i := len(shared.ends) - 1; i >= 0; i-- {
		shared.ends[i]()
	}
	return code
}

// SharedMariaDB is one MariaDB for all tests of the process, started by the
// first: take a new database with DSN(""), and leave it running. It needs Main.
func SharedMariaDB(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.isHeld {
		t.Fatal("BUG: SharedMariaDB needs func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }")
	}
	if shared.mariaDB == nil {
		shared.mariaDB = MariaDB(lasting{t})
	}
	s := *shared.mariaDB
	s.t = t
	return &s
}

// lasting is a test whose folders and cleanups last until Main ends.
type lasting struct{ testing.TB }

func (l lasting) Cleanup(f func()) { shared.ends = append(shared.ends, f) }

func (l lasting) Failed() bool { return false } // nobody reads a log by then

func (l lasting) TempDir() string {
	l.Helper()
	dir, err := os.MkdirTemp("", "servertest-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
