package servertest

import (
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
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
	initialise: func(t testing.TB, dir string) *exec.Cmd {
		find(t, "mariadbd")
		cmd := exec.Command(find(t, "mariadb-install-db"), append([]string{
			"--no-defaults", "--datadir=" + dir, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve",
		}, layout...)...)
		if os.Getuid() == 0 {
			cmd.Args = append(cmd.Args, "--user=root")
		}
		// A MariaDB that starts removes the temporary tables of others from the folder
		// that they share.
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		return cmd
	},
}
