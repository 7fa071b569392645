package clusterdemo

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// node is a node of the cluster: a process of this program.
type node struct {
	name string
	addr string
	dir  string
	args []string
	env  []string
	cmd  *exec.Cmd // nil while it is down
}

func newNode(dir, name string, s *servers) (*node, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &node{name: name, addr: "127.0.0.1:" + strconv.Itoa(port), dir: filepath.Join(dir, name)}
	n.args = []string{"serve", "--cluster", "--node", name, "--listen", n.addr, "--data-dir", n.dir, "--redis-addr", "127.0.0.1:" + strconv.Itoa(s.redis.port), "--drain", "5s"}
	n.env = append(os.Environ(), "XTIMER_MYSQL_DSN="+s.dsn)
	return n, nil
}

func (n *node) url() string { return "http://" + n.addr }

// start starts the process, and waits until it is ready.
func (n *node) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find this program: %w", err)
	}
	cmd := exec.Command(self, n.args...)
	cmd.Env = n.env
	if err := begin(cmd, n.dir+".log"); err != nil {
		return err
	}
	n.cmd = cmd
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if r, err := http.Get(n.url() + "/readyz"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		if !rest(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
	log, _ := os.ReadFile(n.dir + ".log")
	return fmt.Errorf("node %s is not ready after %v:\n%s", n.name, patience, log[max(len(log)-2000, 0):])
}

// kill ends the process at once.
func (n *node) kill() { n.signal(syscall.SIGKILL) }

// end ends the process.
func (n *node) end() { n.signal(syscall.SIGTERM) }

func (n *node) signal(s syscall.Signal) {
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(s)
		_ = n.cmd.Wait()
		n.cmd = nil
	}
}
