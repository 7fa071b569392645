package servertest

import (
	"net"
	"os/exec"
	"strconv"
	"testing"
)

var redis = &kind{
	program: func(t testing.TB) *exec.Cmd {
		// Debian's redis-tools has the server, and no service with it:
		// redis-check-rdb is the same program, which goes by its name.
		cmd := exec.Command(find(t, "redis-server", "redis-check-rdb"))
		cmd.Args[0] = "redis-server"
		return cmd
	},
	args: func(dir string, port int) []string {
		return []string{
			"--port", strconv.Itoa(port),
			"--bind", "127.0.0.1",
			"--dir", dir,
			"--save", "",
			// Each answered write was given to the kernel, so it outlives a
			// SIGKILL; a sync would only help against a power loss.
			"--appendonly", "yes",
			"--appendfsync", "no",
		}
	},
	isReady: func(c net.Conn) bool {
		if _, err := c.Write([]byte("PING\r\n")); err != nil {
			return false
		}
		var b [5]byte // "+PONG", or an error while it loads
		n, _ := c.Read(b[:])
		return string(b[:n]) == "+PONG"
	},
	client: func(t testing.TB, port int) *exec.Cmd {
		return exec.Command(find(t, "redis-cli"), "-e", "-h", "127.0.0.1", "-p", strconv.Itoa(port))
	},
}

// Redis starts a Redis. args are more of its options: "--maxmemory", "10mb". It
// keeps its data over Kill; with "--appendonly", "no" it comes back empty.
func Redis(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, redis, t.TempDir(), args)
}
