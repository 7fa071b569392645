package servertest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// sentinel is a Redis that watches others. It keeps what it finds in the file
// that it was configured with.
var sentinel = &kind{
	program: redis.program,
	args: func(dir string, _ int) []string {
		return []string{filepath.Join(dir, sentinelFile), "--sentinel"}
	},
	isReady: redis.isReady,
	client:  redis.client,
}

const sentinelFile = "sentinel.conf"

// SentinelMaster is the name of the master that RedisSentinel watches.
const SentinelMaster = "main"

// RedisSentinel starts a Sentinel that watches the master, and returns when it
// knows a replica of it. It replaces a master when it is told to, SENTINEL
// FAILOVER, or after a minute of silence: a busy machine must not look like one.
func RedisSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	dir, port := t.TempDir(), reservePort(t)
	_, watched, _ := net.SplitHostPort(master.Addr())
	conf := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %[4]s 1
sentinel down-after-milliseconds %[3]s 60000
sentinel failover-timeout %[3]s 20000
`, port, dir, SentinelMaster, watched)
	if err := os.WriteFile(filepath.Join(dir, sentinelFile), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startOn(t, sentinel, dir, port, nil)
	for deadline := time.Now().Add(patience); len(s.Do("SENTINEL REPLICAS "+SentinelMaster)) < 10; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the Sentinel knows no replica of %s after %v", master.Addr(), patience)
		}
	}
	return s
}
