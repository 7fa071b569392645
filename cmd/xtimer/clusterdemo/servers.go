package clusterdemo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// servers are the MariaDB and the Redis that the nodes share.
type servers struct {
	database, redis *server
	dsn             string
}

// server is a process that listens on a port of 127.0.0.1.
type server struct {
	name string
	cmd  *exec.Cmd
	port int
}

// startServers starts both, with their files in a folder.
func startServers(ctx context.Context, dir string) (s *servers, err error) {
	database, redis := filepath.Join(dir, "mariadb"), filepath.Join(dir, "redis")
	if err := errors.Join(os.Mkdir(database, 0o700), os.Mkdir(redis, 0o700)); err != nil {
		return nil, fmt.Errorf("cannot make the folders of the servers: %w", err)
	}
	install, err := program("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	args := []string{"--no-defaults", "--datadir=" + database}
	if os.Getuid() == 0 {
		args = append(args, "--user=root")
	}
	out, err := exec.CommandContext(ctx, install, append(args, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot make the files of MariaDB: %w: %s", err, out)
	}
	create := filepath.Join(dir, "create.sql")
	if err := os.WriteFile(create, []byte("CREATE DATABASE xtimer;\n"), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write what creates the database: %w", err)
	}
	s = &servers{}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	s.database, err = startServer(ctx, dir, "mariadbd", func(port int) []string {
		return append(args, "--port="+strconv.Itoa(port), "--socket=", "--bind-address=127.0.0.1", "--pid-file="+database+"/pid", "--tmpdir="+database, "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=1", "--init-file="+create)
	})
	if err != nil {
		return nil, err
	}
	s.redis, err = startServer(ctx, dir, "redis-server", func(port int) []string {
		return []string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", redis, "--save", "", "--appendonly", "no"}
	})
	if err != nil {
		return nil, err
	}
	s.dsn = fmt.Sprintf("root@tcp(127.0.0.1:%d)/xtimer", s.database.port)
	return s, nil
}

// stop ends both.
func (s *servers) stop() {
	for _, x := range []*server{s.redis, s.database} {
		if x != nil {
			_ = x.cmd.Process.Signal(syscall.SIGTERM)
			_ = x.cmd.Wait()
		}
	}
}

// program finds a program, also where only root looks for it. Debian's redis-tools has the
// server without a service: redis-check-rdb is the same program, which goes by its name.
func program(name string) (string, error) {
	names := []string{name}
	if name == "redis-server" {
		names = append(names, "redis-check-rdb")
	}
	for _, n := range names {
		for _, at := range []string{n, "/usr/sbin/" + n, "/usr/local/sbin/" + n} {
			if path, err := exec.LookPath(at); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("the demonstration needs %s: apt-get install mariadb-server redis-server", name)
}

// startServer starts a program on a free port, and waits until it listens. Its output goes
// into a file of the folder.
func startServer(ctx context.Context, dir, name string, args func(port int) []string) (*server, error) {
	path, err := program(name)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	x := &server{name: name, port: port, cmd: exec.Command(path, args(port)...)}
	x.cmd.Args[0] = name
	if err := begin(x.cmd, filepath.Join(dir, name+".log")); err != nil {
		return nil, err
	}
	for until := time.Now().Add(patience); time.Now().Before(until); {
		if c, err := net.DialTimeout("tcp", "127.0.0.1:"+strconv.Itoa(port), time.Second); err == nil {
			c.Close()
			return x, nil
		}
		if !rest(ctx, 50*time.Millisecond) {
			break
		}
	}
	_ = x.cmd.Process.Kill()
	_ = x.cmd.Wait()
	return nil, fmt.Errorf("%s does not listen on port %d; its log is %s", name, port, filepath.Join(dir, name+".log"))
}

// begin starts a process with its output in a file. Ctrl-C at the terminal does not reach it.
func begin(cmd *exec.Cmd, log string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot make a log: %w", err)
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = f, f, &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start %s: %w", cmd.Path, err)
	}
	return nil
}

func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}
