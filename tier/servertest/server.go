// Package servertest starts servers of a test's own: MariaDB and Redis, on
// free loopback ports over temporary folders, ended with the test. Where
// XTIMER_MYSQLD names a mysqld, it is started in the place of MariaDB.
//
// It never uses a server that already runs, nor a standard port. A MariaDB costs
// 0.5 s (the first of a process 3 s), a Redis 0.1 s, a database of SharedMariaDB
// 0.04 s, on 2 cores where 9 processes want to run. Everything that cannot be
// done ends the test: a missing program with one line that says how to get it.
//
// A server dies by its process id at the end of its test, and by the kernel
// (PR_SET_PDEATHSIG, Linux) when the test process itself is killed.
package servertest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait. It is generous: a wait ends when its condition
// holds, and a machine may be busy.
const patience = 60 * time.Second

// Server is a running MariaDB or Redis. Its methods are for one goroutine at a
// time.
type Server struct {
	t    testing.TB
	kind *kind
	dir  string // of its data and its log
	port int
	cmd  *exec.Cmd     // nil while it is down
	done chan struct{} // closed when cmd has ended
	args []string
}

// kind is what differs between MariaDB and Redis.
type kind struct {
	program func(testing.TB) *exec.Cmd
	args    func(dir string, port int) []string
	// isReady tells from a new connection whether the server would answer.
	isReady func(net.Conn) bool
	// client is the client program, which reads statements from its standard input.
	client func(t testing.TB, port int) *exec.Cmd
	// initialise makes the files that a first start wants; nil: none.
	initialise func(t testing.TB, dir string) *exec.Cmd
}

// start starts a new server over dir and ends it with the test.
func start(t testing.TB, k *kind, dir string, args []string) *Server {
	t.Helper()
	return startOn(t, k, dir, reservePort(t), args)
}

func startOn(t testing.TB, k *kind, dir string, port int, args []string) *Server {
	t.Helper()
	s := &Server{t: t, kind: k, dir: dir, port: port, args: args}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("the last of the log of the server on %s:\n%s", s.Addr(), s.log())
		}
	})
	s.Start()
	return s
}

// Addr is its host:port, the same over restarts.
func (s *Server) Addr() string { return loopback(s.port) }

// Start starts it and returns when it answers. After Kill or Stop it finds the
// data it had.
func (s *Server) Start() {
	s.t.Helper()
	if s.cmd != nil {
		s.t.Fatalf("the server on %s runs already", s.Addr())
	}
	cmd := s.kind.program(s.t)
	cmd.Args = append(append(cmd.Args, s.kind.args(s.dir, s.port)...), s.args...)
	log, err := os.OpenFile(filepath.Join(s.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	dieWithParent(cmd.SysProcAttr)

	started, done := make(chan error), make(chan struct{})
	go func() {
		// The kernel's "parent" is the thread that forked, not the process: this
		// one stays until the server has ended.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatalf("cannot start a server: %v", err)
	}
	s.cmd, s.done = cmd, done
	s.await()
}

// await waits until it answers.
func (s *Server) await() {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		select {
		case <-s.done:
			s.t.Fatalf("%s ended at its start:\n%s", s.cmd.Path, s.log())
		case <-time.After(3 * time.Millisecond):
		}
		if c, err := net.DialTimeout("tcp", s.Addr(), time.Second); err == nil {
			c.SetDeadline(time.Now().Add(5 * time.Second))
			ready := s.kind.isReady(c)
			c.Close()
			if ready {
				return
			}
		}
	}
	s.t.Fatalf("%s does not answer on %s after %v:\n%s", s.cmd.Path, s.Addr(), patience, s.log())
}

// Kill ends it with SIGKILL.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends it with SIGTERM: it writes and closes its files.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) {
	s.t.Helper()
	if s.cmd == nil {
		return
	}
	s.signal(sig)
	s.signal(syscall.SIGCONT) // it might be paused
	select {
	case <-s.done:
	case <-time.After(patience):
		s.t.Errorf("the server on %s did not end within %v of %v and is killed:\n%s", s.Addr(), patience, sig, s.log())
		s.signal(syscall.SIGKILL)
		<-s.done
	}
	s.cmd = nil
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if s.cmd == nil {
		s.t.Fatalf("the server on %s is down", s.Addr())
	}
	// An error means that it has ended, which done tells.
	_ = s.cmd.Process.Signal(sig)
}

// Do gives statements (SQL as root, or Redis commands, one a line) to the
// server's own client program and returns what it prints.
func (s *Server) Do(statements string) string {
	s.t.Helper()
	cmd := s.kind.client(s.t, s.port)
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(statements), &out, &out
	err := cmd.Start()
	if err == nil {
		kill := time.AfterFunc(patience, func() { cmd.Process.Kill() }) // the server may be paused
		err = cmd.Wait()
		kill.Stop()
	}
	if err != nil {
		s.t.Fatalf("%s: %v: %s", statements, err, &out)
	}
	return out.String()
}

// log is the last of what it printed.
func (s *Server) log() string {
	b, err := os.ReadFile(filepath.Join(s.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-4<<10):])
}
