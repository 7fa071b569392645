package bench

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// failpoint is a place of engine.Failpoint, and how a load gets there.
type failpoint struct {
	name string
	nth  int // of its passings after a start under load
	// drive does what the load does not: nil when the load gets there by itself.
	drive func(*failTrial)
}

// failpoints are all places, along the way of a task.
var failpoints = []failpoint{
	{"create-before-commit", 3, nil},
	{"create-after-commit", 3, nil},
	{"create-before-ack", 3, nil},
	{"change-before-commit", 2, (*failTrial).change},
	{"change-after-commit", 2, (*failTrial).change},
	{"ended-before-settle", 1, (*failTrial).end},
	{"cold-in-commit", 20, nil},
	{"cold-after-commit", 20, nil},
	{"warm-rebuild", 1, nil},
	{"mid-load", 1, nil},
	{"next-compute", 40, nil},
	{"pop-before-intent", 40, nil},
	{"intent-before-send", 60, nil},
	{"connected-before-write", 60, nil},
	{"mid-write", 60, nil},
	{"sent-before-response", 60, nil},
	{"response-before-result", 60, nil},
	{"result-before-commit", 10, nil},
	{"in-commit", 10, nil},
	{"after-commit", 10, nil},
	{"before-w", 2, nil},
	{"after-w", 2, nil},
	{"take-before-recovery", 1, nil},
	{"recovery-scan", 1, nil},
	{"recovery-before-forget", 1, nil},
	{"archive", 1, nil},
	{"retention-delete", 1, (*failTrial).past},
	{"checkpoint", 1, (*failTrial).backup},
	{"drain", 1, (*failTrial).drain},
}

// TestFailpoints has the real binary die, panic or sleep at each failpoint while
// it fires: nothing is missing, nothing early, and every repeat stands beside an
// end of the process. In the short form it dies once at each; XTIMER_FAILPOINTS=n
// is n rounds of all three.
func TestFailpoints(t *testing.T) {
	beside(t)
	named := namedInSource(t)
	for _, f := range failpoints {
		if !slices.Contains(named, f.name) {
			t.Errorf("no line of the program says failpoint.Hit(%q)", f.name)
		}
	}
	if len(named) != len(failpoints) {
		t.Errorf("the program has %d failpoints, the trial %d: %q", len(named), len(failpoints), named)
	}
	actions, rounds := []string{"kill"}, 1
	if n := setting("XTIMER_FAILPOINTS", 0); n > 0 {
		actions, rounds = []string{"kill", "panic", "sleep"}, n
	}
	program := buildArmed(t)
	const parts = 3 // each a process of its own
	for part := range parts {
		t.Run(fmt.Sprint("part-", part+1), func(t *testing.T) {
			t.Parallel()
			ft := &failTrial{trial: trial{t: t, program: program, rate: setting("XTIMER_RATE", 300), intervals: 10}}
			ft.begin("--history-retention", "24h", "--backup-dir", t.TempDir())
			ft.chance = draw(ft.seed, 2)
			for range rounds {
				for i := part; i < len(failpoints); i += parts {
					for _, a := range actions {
						ft.fail(failpoints[i], a)
					}
				}
			}
			ft.up("")
			ft.finish()
			ft.check(true)
		})
	}
}

// buildArmed builds xtimer with its failpoints.
func buildArmed(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "xtimer")
	build := exec.Command("go", "build", "-tags", "failpoints", "-ldflags", "-s -w", "-o", path, "xtimer/cmd/xtimer")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build xtimer: %v\n%s", err, out)
	}
	return path
}

// namedInSource are the names of all failpoints in the program.
func namedInSource(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../*/*.go")
	deeper, err2 := filepath.Glob("../*/*/*.go")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, f := range append(files, deeper...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bfailpoint\.Hit\("([^"]*)"\)`).FindAllSubmatch(b, -1) {
			if n := string(m[1]); !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// failTrial is a trial with a process that fails on demand.
type failTrial struct {
	trial
	chance  *rand.Rand
	changed int
	drained *exec.Cmd // the last process that was asked to end
	ended   time.Time // when the last process ended by itself, once its done is closed
}

// fail starts the process anew with a failpoint armed, waits until it is reached,
// and ends the process if that did not.
func (ft *failTrial) fail(f failpoint, action string) {
	t := ft.t
	t.Helper()
	ft.up(f.name + ":" + action + ":" + fmt.Sprint(f.nth))
	reached := func() bool { return strings.Contains(ft.p.log.String(), "FAILPOINT "+f.name+": "+action) }
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(5 * time.Millisecond) {
		if f.drive != nil {
			f.drive(ft)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not reached", f.name)
		}
	}
	if action != "kill" {
		select {
		case <-ft.p.done:
		case <-time.After(time.Duration(ft.chance.IntN(1500)) * time.Millisecond):
		}
	}
	ft.down()
}

// down ends the process, if it has not ended.
func (ft *failTrial) down() {
	if action := ft.p.cmd; action != nil {
		down := time.Now()
		select {
		case <-ft.p.done: // by itself, at a failpoint
			down = ft.ended
		default:
		}
		ft.stops = append(ft.stops, stop{down: down})
		ft.p.kill()
	}
}

// up starts the process with a failpoint, or with none. It need not get ready: it
// may die first.
func (ft *failTrial) up(env string) {
	ft.t.Helper()
	ft.down()
	p := ft.p
	p.log = &tail{}
	p.cmd = exec.Command(p.program, append([]string{"serve", "--listen", p.addr, "--data-dir", p.dir}, p.args...)...)
	p.cmd.Env = append(os.Environ(), "XTIMER_FAILPOINT="+env)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		ft.t.Fatal(err)
	}
	p.running.Store(p.cmd.Process)
	cmd, done := p.cmd, make(chan struct{})
	p.done = done
	go func() {
		cmd.Wait()
		ft.ended = time.Now()
		close(done)
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if r, err := http.Get(p.url("/readyz")); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				break
			}
		}
		select {
		case <-done:
			if status := cmd.ProcessState.ExitCode(); env == "" && status >= 0 { // -1: killed
				ft.t.Fatalf("xtimer ended at its start:\n%s", p.log)
			}
			ft.stops[len(ft.stops)-1].up = time.Now()
			return
		default:
		}
		if time.Now().After(deadline) {
			ft.t.Fatalf("xtimer was not ready within a minute:\n%s", p.log)
		}
	}
	ft.stops[len(ft.stops)-1].up = time.Now()
}

// post makes a request and forgets what comes of it.
func (ft *failTrial) post(path, body string) {
	r, err := client.Post(ft.p.url(path), "application/json", strings.NewReader(body))
	if err == nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
}

// change makes a timer for a far day and deletes it.
func (ft *failTrial) change() {
	ft.changed++
	name := fmt.Sprintf("/v1/apps/bench/timers/changed-%d", ft.changed)
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		body := fmt.Sprintf(`{"schedule":{"delay":"1000h"},"callback":{"url":%q}}`, ft.r.url)
		req, _ := http.NewRequest(method, ft.p.url(name), bytes.NewBufferString(body))
		req.Header.Set("Content-Type", "application/json")
		if r, err := client.Do(req); err == nil {
			r.Body.Close()
		}
	}
}

// end makes a timer whose retries are far away, and deletes it when more of its tasks wait
// than the delete takes along: a task has a row when it has waited for 15 s.
func (ft *failTrial) end() {
	ft.changed++
	path := ft.p.url(fmt.Sprintf("/v1/apps/bench/timers/ended-%d", ft.changed))
	body := `{"schedule":{"every":"10ms"},"retry":{"max_attempts":2,"backoff":"10h","max_backoff":"10h"},"callback":{"url":"http://127.0.0.1:1/"}}`
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		req, _ := http.NewRequest(method, path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		if r, err := client.Do(req); err == nil {
			r.Body.Close()
		}
		if method == http.MethodPut {
			select {
			case <-ft.p.done:
			case <-time.After(22 * time.Second):
			}
		}
	}
}

// past fires something that was due three days ago: there is history to drop.
func (ft *failTrial) past() {
	ft.changed++
	ft.post("/v1/timers", fmt.Sprintf(`{"app":"bench","name":"past-%d","schedule":{"at":%d},"misfire":{"policy":"latest","window":"100h"},"callback":{"url":%q}}`,
		ft.changed, time.Now().Add(-72*time.Hour).UnixMilli(), ft.r.url))
	time.Sleep(500 * time.Millisecond)
}

func (ft *failTrial) backup() { ft.post("/v1/admin/backup", "") }

// drain asks the process to end, once: a second signal would end it at once.
func (ft *failTrial) drain() {
	if ft.drained != ft.p.cmd {
		ft.drained = ft.p.cmd
		ft.p.cmd.Process.Signal(syscall.SIGTERM)
	}
}
