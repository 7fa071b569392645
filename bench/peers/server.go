package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a private Redis or PostgreSQL on a free port of loopback.
type server struct{ cmd *exec.Cmd }

// errNoServer is why a peer is left out.
var errNoServer = errors.New("its server is not installed")

func startStore(kind, dir string) (s *server, addr string, err error) {
	if kind == "redis" {
		return startRedis(dir)
	}
	return startPostgres(dir)
}

// program finds one by its names, also where no PATH leads.
func program(names ...string) (string, error) {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("%w: %s", errNoServer, names[0])
}

func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port), nil
}

// startRedis with its journal synced each second, as is usual where data counts.
func startRedis(dir string) (*server, string, error) {
	// redis-check-rdb of Debian's redis-tools is the server under another name.
	name, err := program("redis-server", "redis-check-rdb")
	if err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(name, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec")
	cmd.Args[0] = "redis-server"
	addr := "127.0.0.1:" + port
	s, err := startServer(cmd, func() error {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	})
	return s, addr, err
}

// startPostgres with the settings that it comes with, but one: it looks each
// second whether the planner's statistics are old, not each minute. Without any,
// as in the first minute of a database, River's scheduler takes 5 s for 2,000 jobs.
func startPostgres(dir string) (*server, string, error) {
	initdb, err := program("initdb")
	if err != nil {
		return nil, "", err
	}
	postgres, err := program("postgres")
	if err != nil {
		return nil, "", err
	}
	port, err := freePort()
	if err != nil {
		return nil, "", err
	}
	// It refuses to run as root, and wants the folder to be its own.
	var as *syscall.Credential
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", errNoServer, err)
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, int(uid), int(gid)); err != nil {
			return nil, "", err
		}
	}
	data := filepath.Join(dir, "data")
	create := exec.Command(initdb, "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
	create.Dir, create.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	if out, err := create.CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("initdb: %w\n%s", err, out)
	}
	cmd := exec.Command(postgres, "-D", data, "-p", port, "-k", dir, "-c", "listen_addresses=127.0.0.1", "-c", "autovacuum_naptime=1s")
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as}
	dsn := "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable&pool_max_conns=40"
	s, err := startServer(cmd, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err := pgx.Connect(ctx, strings.TrimSuffix(dsn, "&pool_max_conns=40"))
		if err == nil {
			err = c.Close(ctx)
		}
		return err
	})
	return s, dsn, err
}

func startServer(cmd *exec.Cmd, ready func() error) (*server, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := ready()
		if err == nil {
			return s, nil
		}
		if time.Now().After(deadline) {
			s.kill()
			return nil, fmt.Errorf("%s does not start: %w\n%s", cmd.Path, err, &log)
		}
	}
}

// kill ends it, and the processes it has started: PostgreSQL's end by themselves
// when the first of them is gone.
func (s *server) kill() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(syscall.SIGQUIT) // PostgreSQL: at once, without a checkpoint
		late := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
		defer late.Stop()
		_ = s.cmd.Wait()
	}
}

// family is its process and all children.
func (s *server) family() []int {
	pids := []int{s.cmd.Process.Pid}
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, name := range stats {
		b, err := os.ReadFile(name)
		if err == nil && field(string(b), "PPid:") == int64(pids[0]) {
			pids = append(pids, int(field(string(b), "Pid:")))
		}
	}
	return pids
}

// field of a file of /proc: the number after a name at a line's begin.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// serverVersion is what the program says of itself.
func serverVersion(kind string) string {
	names := []string{"redis-server", "redis-check-rdb"}
	if kind == "postgres" {
		names = []string{"postgres"}
	}
	path, err := program(names...)
	if err != nil {
		return ""
	}
	cmd := exec.Command(path, "--version")
	cmd.Args[0] = names[0]
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
