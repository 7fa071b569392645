package servertest

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// mysqldEnv names a mysqld: every MariaDB asked for is a MySQL then. `make
// test-mysql` sets it.
const mysqldEnv = "XTIMER_MYSQLD"

// mysqlLayout makes the files small. It must be the same when they are made and
// used. What the doublewrite buffer is good for is a power loss.
var mysqlLayout = []string{
	"--innodb-redo-log-capacity=16M",
	"--innodb-data-file-path=ibdata1:5M:autoextend",
	"--innodb-autoextend-increment=1",
	"--innodb-doublewrite=OFF",
}

var mySQL = &kind{
	program: mysqld,
	args: func(dir string, port int) []string {
		return append([]string{
			"--datadir=" + dir,
			"--tmpdir=" + dir,
			"--pid-file=" + dir + "/pid",
			"--socket=",
			"--bind-address=127.0.0.1",
			"--port=" + strconv.Itoa(port),
			"--mysqlx=OFF", // it would take a standard port
			"--skip-log-bin",
			"--performance-schema=OFF",
			"--innodb-buffer-pool-size=64M",
			"--innodb-buffer-pool-dump-at-shutdown=0",
			"--innodb-flush-log-at-trx-commit=1", // what is answered is on the disk
		}, mysqlLayout...)
	},
	isReady: mariaDB.isReady,
	client:  mariaDB.client, // it speaks caching_sha2_password too
	initialise: func(t testing.TB, dir string) *exec.Cmd {
		cmd := mysqld(t)
		cmd.Args = append(append(cmd.Args, "--initialize-insecure", "--datadir="+dir), mysqlLayout...)
		return cmd
	},
}

func mysqld(t testing.TB) *exec.Cmd {
	cmd := exec.Command(find(t, os.Getenv(mysqldEnv)), "--no-defaults", "--secure-file-priv=NULL")
	if os.Getuid() == 0 {
		cmd.Args = append(cmd.Args, "--user=root")
	}
	return cmd
}
