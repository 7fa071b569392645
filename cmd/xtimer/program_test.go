package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/remote"
)

// raceFlag builds the program as the tests are built.
var raceFlag []string

// binDir is where the program is built; set by TestMain.
var binDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "xtimer-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binDir = dir
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")) // not the contexts of the user
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// binary is the real program, built once.
var binary = sync.OnceValues(func() (string, error) {
	name := filepath.Join(binDir, "xtimer")
	args := append([]string{"build", "-ldflags", "-s -w", "-o", name}, raceFlag...)
	out, err := exec.Command("go", append(args, ".")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return name, nil
})

// program is the command with its output, to be started.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	cmd.Dir = t.TempDir()
	return cmd
}

// runs the program to its end, which must come within a minute.
func runs(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := program(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// server is a running "xtimer serve".
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	url  string
	done chan struct{} // closed when it has ended and all its log is read

	mu  sync.Mutex
	log []string // guarded by mu
}

// serves starts a server on a free port and waits until it is ready.
func serves(t *testing.T, args ...string) *server {
	t.Helper()
	s := starts(t, args...)
	s.awaitReady()
	return s
}

// starts starts a server on a free port and waits until it listens.
func starts(t *testing.T, args ...string) *server {
	t.Helper()
	cmd := program(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, cmd: cmd, done: make(chan struct{})}
	addr := make(chan string, 1)
	go s.read(stderr, addr)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
	})
	select {
	case a := <-addr:
		s.url = "http://" + a
	case <-s.done:
		t.Fatalf("the server ended:\n%s", s.lines())
	}
	return s
}

func (s *server) awaitReady() {
	s.t.Helper()
	for {
		if code, _ := s.get("/readyz"); code == http.StatusOK {
			return
		}
		select {
		case <-s.done:
			s.t.Fatalf("the server ended:\n%s", s.lines())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// read keeps the log and finds the address in it.
func (s *server) read(stderr io.Reader, addr chan<- string) {
	defer close(s.done)
	for sc := bufio.NewScanner(stderr); sc.Scan(); {
		s.mu.Lock()
		s.log = append(s.log, sc.Text())
		s.mu.Unlock()
		var line struct{ Msg, Addr string }
		if json.Unmarshal(sc.Bytes(), &line) == nil && line.Msg == "listening" {
			addr <- line.Addr
		}
	}
	_ = s.cmd.Wait()
}

func (s *server) lines() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

// get asks the server; 0 is no answer.
func (s *server) get(path string) (code int, body string) {
	resp, err := http.Get(s.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// post makes something on the server.
func (s *server) post(path string, in, out any) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := (&remote.Plain{Base: s.url}).Do(ctx, http.MethodPost, path, in, out); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the end of the process and returns its status.
func (s *server) ends() int {
	s.t.Helper()
	select {
	case <-s.done:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		s.t.Fatalf("the server does not end:\n%s", s.lines())
		return 0
	}
}
