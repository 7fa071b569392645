package servertest

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

const (
	user     = "xtimer"
	password = "secret"
)

// layout makes the files small. It must be the same when they are made and used.
var layout = []string{
	"--innodb-log-file-size=16M",
	"--innodb-data-file-path=ibdata1:4M:autoextend",
	"--innodb-autoextend-increment=1",
	"--innodb-undo-tablespaces=0",
}

var mariaDB = &kind{
	program: func(t testing.TB) *exec.Cmd { return exec.Command(find(t, "mariadbd"), "--no-defaults") },
	args: func(dir string, port int) []string {
		args := append([]string{
			"--datadir=" + dir,
			"--tmpdir=" + dir,
			"--pid-file=" + dir + "/pid",
			"--socket=", // none: TCP is enough, and a socket's path must not be long
			"--bind-address=127.0.0.1",
			"--port=" + strconv.Itoa(port),
			"--skip-name-resolve",
			"--skip-log-bin",
			"--innodb-buffer-pool-size=64M",
			"--innodb-buffer-pool-dump-at-shutdown=0",
			"--innodb-flush-log-at-trx-commit=1", // what is answered is on the disk
			"--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
			"--aria-pagecache-buffer-size=1M",
			"--key-buffer-size=1M",
		}, layout...)
		if os.Getuid() == 0 {
			args = append(args, "--user=root")
		}
		return args
	},
	isReady: func(c net.Conn) bool {
		// It speaks first: 4 bytes of header, then the protocol's version.
		var b [5]byte
		n, _ := c.Read(b[:])
		return n == len(b) && b[4] == 10
	},
	client: func(t testing.TB, port int) *exec.Cmd {
		return exec.Command(find(t, "mariadb"), "--no-defaults", "--protocol=tcp", "--host=127.0.0.1",
			"--port="+strconv.Itoa(port), "--user=root", "--batch", "--skip-column-names")
	},
}

// MariaDB starts a MariaDB over a fresh data folder. args are more of its
// options; the last of two wins.
func MariaDB(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, mariaDB, freshFolder(t, t.TempDir()), args)
}

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

// freshFolder fills dir with the data of a new MariaDB. Making them takes 0.5 s,
// so they are made once in a test process and kept in memory (25 MB).
func freshFolder(t testing.TB, dir string) string {
	t.Helper()
	fresh.Lock()
	defer fresh.Unlock()
	if fresh.files == nil {
		fresh.files = initialise(t)
	}
	if err := os.CopyFS(dir, fresh.files); err != nil {
		t.Fatalf("cannot make a data folder for MariaDB: %v", err)
	}
	return dir
}

func initialise(t testing.TB) fstest.MapFS {
	t.Helper()
	find(t, "mariadbd")
	dir := t.TempDir()
	cmd := exec.Command(find(t, "mariadb-install-db"), append([]string{
		"--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
	}, layout...)...)
	if os.Getuid() == 0 {
		cmd.Args = append(cmd.Args, "--user=root")
	}
	// A MariaDB that starts removes the temporary tables of others from the folder
	// that they share.
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cannot make a data folder for MariaDB: %v\n%s", err, out)
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
		t.Fatalf("cannot read the data folder of MariaDB: %v", err)
	}
	return files
}
