package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// process is a running xtimer, the real binary, that can be killed and started
// again over the same data.
type process struct {
	t testing.TB
	// program is binary, or what runs in its place.
	program string
	dir     string
	addr    string
	cmd     *exec.Cmd     // nil while it is down
	done    chan struct{} // closed when cmd has ended
	log     *tail
	args    []string
	// running is cmd's, for receivers that end it: they run beside the trial.
	running atomic.Pointer[os.Process]
}

// startProcess starts xtimer serve on a free port over a data folder of its own.
func startProcess(t testing.TB, args ...string) *process {
	t.Helper()
	return startProgram(t, binary, args...)
}

func startProgram(t testing.TB, program string, args ...string) *process {
	t.Helper()
	p := newProcess(t, program, args...)
	p.start()
	return p
}

// newProcess is a process that is not started yet.
func newProcess(t testing.TB, program string, args ...string) *process {
	p := &process{t: t, program: program, dir: t.TempDir(), addr: servertest.FreeAddr(t), args: args, log: &tail{}}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			dir, err := p.keep()
			t.Logf("its data is kept in %s (%v); the last of xtimer's log:\n%s", dir, err, p.log)
		}
	})
	return p
}

// keep brings the data to where it stays when the test is over.
func (p *process) keep() (string, error) {
	dir, err := os.MkdirTemp("", "xtimer-data-")
	if err != nil {
		return p.dir, err
	}
	dir = filepath.Join(dir, "data")
	if os.Rename(p.dir, dir) != nil { // on another file system
		err = os.CopyFS(dir, os.DirFS(p.dir))
	}
	return dir, err
}

// failed is a test that has failed, whose cleanup and log can be looked at.
type failed struct {
	testing.TB
	cleanup []func()
	log     string
}

func (f *failed) Failed() bool                 { return true }
func (f *failed) Cleanup(do func())            { f.cleanup = append(f.cleanup, do) }
func (f *failed) Logf(format string, a ...any) { f.log += fmt.Sprintf(format, a...) }

// TestFailedTrialKeepsItsData: what a failure is looked into with.
func TestFailedTrialKeepsItsData(t *testing.T) {
	f := &failed{TB: t}
	startProcess(f)
	for _, do := range slices.Backward(f.cleanup) {
		do()
	}
	_, rest, _ := strings.Cut(f.log, "its data is kept in ")
	dir, _, _ := strings.Cut(rest, " ")
	if dir == "" {
		t.Fatalf("the log names no folder: %s", f.log)
	}
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(dir)) })
	if _, err := os.Stat(filepath.Join(dir, "journal")); err != nil || strings.HasPrefix(dir, filepath.Dir(t.TempDir())) {
		t.Errorf("%s has no journal, or goes with the test: %v", dir, err)
	}
}

func (p *process) url(path string) string { return "http://" + p.addr + path }

// start starts it and waits until it is ready.
func (p *process) start() (took time.Duration) {
	p.t.Helper()
	started := time.Now()
	p.launch()
	for time.Since(started) < 60*time.Second {
		if r, err := http.Get(p.url("/readyz")); err == nil {
			r.Body.Close()
			if r.StatusCode == 200 {
				return time.Since(started)
			}
		}
		select {
		case <-p.done:
			p.t.Fatalf("xtimer ended at its start:\n%s", p.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
	p.t.Fatalf("xtimer was not ready within a minute:\n%s", p.log)
	return 0
}

// launch starts it, and does not wait until it is ready.
func (p *process) launch() {
	p.t.Helper()
	p.cmd = exec.Command(p.program, append([]string{"serve", "--listen", p.addr, "--data-dir", p.dir}, p.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.running.Store(p.cmd.Process)
	cmd, done := p.cmd, make(chan struct{})
	p.done = done
	go func() {
		cmd.Wait()
		close(done)
	}()
}

// kill ends it with SIGKILL.
func (p *process) kill() {
	if p.cmd != nil {
		p.cmd.Process.Kill()
		<-p.done
		p.cmd = nil
	}
}

// terminate ends it with SIGTERM and tells its exit status.
func (p *process) terminate() int {
	p.cmd.Process.Signal(syscall.SIGTERM)
	return p.awaitEnd()
}

// awaitEnd waits until it has ended, and tells its exit status.
func (p *process) awaitEnd() int {
	<-p.done
	code := p.cmd.ProcessState.ExitCode()
	p.cmd = nil
	return code
}

// deleteAll deletes the timers of an app.
func (p *process) deleteAll(app string) {
	p.t.Helper()
	r, err := client.Post(p.url("/v1/timers/delete?app="+app), "application/json", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err != nil || r.StatusCode/100 != 2 {
		p.t.Fatalf("status %d: %s (%v)", r.StatusCode, b, err)
	}
}

// rss is the resident memory of the process, in bytes.
func (p *process) rss() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == "VmRSS:" {
			kb, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// cpu is the processor time that the process has used.
func (p *process) cpu() time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+2:])
	user, _ := strconv.ParseInt(string(f[11]), 10, 64)
	system, _ := strconv.ParseInt(string(f[12]), 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// metric is one of the process, by its name and labels as /metrics has them.
func (p *process) metric(name string) float64 {
	p.t.Helper()
	x, err := p.askMetric(name)
	if err != nil {
		p.t.Fatal(err)
	}
	return x
}

func (p *process) askMetric(name string) (float64, error) {
	r, err := client.Get(p.url("/metrics"))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(name+" ")); ok {
			return strconv.ParseFloat(string(v), 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (l *tail) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b = append(l.b, b...); len(l.b) > 64<<10 {
		l.b = append([]byte(nil), l.b[len(l.b)-32<<10:]...)
	}
	return len(b), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.b)
}
