package servertest

import (
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

const (
	user     = "xtimer"
	password = "secret"
)

// MariaDB starts a MariaDB over a fresh data folder, or a MySQL where
// XTIMER_MYSQLD names its program. args are more of its options; the last of two
// wins.
func MariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	k := mariaDB
	if IsMySQL() {
		k = mySQL
	}
	return start(t, k, freshFolder(t, k, t.TempDir()), args)
}

// IsMySQL reports whether MariaDB starts a MySQL.
func IsMySQL() bool { return os.Getenv(mysqldEnv) != "" }

var databases atomic.Int64

// DSN makes the database where it is not there yet, and a user who may do all
// in it and nothing elsewhere, and tells how to reach it in the words of
// go-sql-driver/mysql. The database "" is a new one at each call.
func (s *Server) DSN(database string) string {
	s.t.Helper()
	if database == "" {
		database = fmt.Sprintf("test_%d", databases.Add(1))
	}
	s.Do(fmt.Sprintf("CREATE DATABASE IF NOT EXISTS `%[1]s`;"+
		"CREATE USER IF NOT EXISTS %[2]s@127.0.0.1 IDENTIFIED BY '%[3]s';"+
		"GRANT ALL ON `%[1]s`.* TO %[2]s@127.0.0.1", database, user, password))
	return fmt.Sprintf("%s:%s@tcp(%s)/%s", user, password, s.Addr(), database)
}

var fresh struct {
	sync.Mutex
	files fstest.MapFS
}

// freshFolder fills dir with the data of a new server. Making them takes 0.5 s
// (MariaDB) or 4 s (MySQL), so they are made once in a test process and kept in
// memory (25 and 90 MB).
func freshFolder(t testing.TB, k *kind, dir string) string {
	t.Helper()
	fresh.Lock()
	defer fresh.Unlock()
	if fresh.files == nil {
		fresh.files = initialise(t, k)
	}
	if err := os.CopyFS(dir, fresh.files); err != nil {
		t.Fatalf("cannot make a data folder for a database: %v", err)
	}
	return dir
}

func initialise(t testing.TB, k *kind) fstest.MapFS {
	t.Helper()
	dir := t.TempDir()
	if out, err := k.initialise(t, dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot make a data folder for a database: %v\n%s", err, out)
	}
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(os.DirFS(dir), path)
		files[path] = &fstest.MapFile{Data: b, Mode: 0o600}
		return err
	})
	if err != nil {
		t.Fatalf("cannot read the data folder of a new database: %v", err)
	}
	return files
}
