package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
)

func TestServeRefuses(t *testing.T) {
	wanted := exit.StatusFailed // the settings are valid
	f := func(want string, args ...string) {
		t.Helper()
		out, errs, status := runs(t, append([]string{"serve"}, args...)...)
		if status != wanted || out != "" || !strings.HasPrefix(errs, "xtimer: ") || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("serve %v: status %d, %q, %q; want %d and one line with %q", args, status, out, errs, wanted, want)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("nonsense: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	f("cannot listen on "+taken.Addr().String()+": address already in use", "--listen", taken.Addr().String())
	f("cannot make the data directory", "--data-dir", filepath.Join(file, "data"))
	wanted = exit.StatusUsage
	f("no token is set", "--listen", "0.0.0.0:0")
	f("--listen 127.0.0.1: ", "--listen", "127.0.0.1")
	f("nonsense: unknown key", "--config", file)
	f("cannot read the settings", "--config", filepath.Join(file, "none"))
	f("--drain must be at least 1s", "--drain", "1ms")
	f("--secret-key-file", "--secret-key-file", file, "--data-dir", filepath.Join(t.TempDir(), "data"))
	f("--mysql-dsn: cannot read the DSN", "--mysql-dsn", "nonsense", "--data-dir", filepath.Join(t.TempDir(), "data"))
	f("unknown flag --nonsense", "--nonsense")
	f(`"soon" is not a duration`, "--drain", "soon")
}

func TestServeOneOnADirectory(t *testing.T) {
	dir := t.TempDir()
	serves(t, "--data-dir", dir)
	_, errs, status := runs(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	if want := "xtimer: " + dir + ": another xtimer uses this data directory\n"; status != 1 || errs != want {
		t.Errorf("status %d, %q; want 1 and %q", status, errs, want)
	}
	_, errs, status = runs(t, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "b"))
	if status != 1 || !strings.Contains(errs, "ask the server to write the copy with --server") {
		t.Errorf("backup: status %d, %q", status, errs)
	}
}

// slowTarget answers a call when it is told to, and says when one is there.
func slowTarget(t *testing.T) (url string, arrived <-chan string, answer chan<- struct{}) {
	t.Helper()
	came, may := make(chan string, 16), make(chan struct{})
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- r.Header.Get("X-Xtimer-Task")
		<-may
	}))
	t.Cleanup(target.Close)
	return target.URL, came, may
}

// TestDrain: a call in flight ends, /readyz says why not meanwhile, the status
// is 0, and the next start knows the outcome.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	s := serves(t, "--data-dir", dir)
	url, arrived, answer := slowTarget(t)
	s.post("/v1/timers", object{"app": "a", "name": "slow", "schedule": object{"delay": "0s"}, "callback": object{"url": url}}, nil)
	key := <-arrived

	s.signal(syscall.SIGTERM)
	var body string
	for code := 0; code != http.StatusServiceUnavailable; {
		if code, body = s.get("/readyz"); code == 0 {
			t.Fatalf("the API is gone before the drain has ended: %s", body)
		}
		time.Sleep(time.Millisecond)
	}
	if !strings.Contains(body, "shutting down") {
		t.Errorf("/readyz does not say why: %s", body)
	}
	if code, _ := s.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez = %d while draining", code)
	}
	answer <- struct{}{}
	if status := s.ends(); status != 0 {
		t.Fatalf("status %d after a drain:\n%s", status, s.lines())
	}

	s = serves(t, "--data-dir", dir)
	code, got := s.get("/v1/tasks/" + key)
	if code != http.StatusOK || !strings.Contains(got, `"succeeded"`) {
		t.Errorf("after the drain the task is %d %s", code, got)
	}
}

func TestSecondSignal(t *testing.T) {
	s := serves(t, "--data-dir", t.TempDir())
	url, arrived, answer := slowTarget(t)
	defer close(answer)
	s.post("/v1/timers", object{"app": "a", "name": "slow", "schedule": object{"delay": "0s"}, "callback": object{"url": url}}, nil)
	<-arrived
	s.signal(syscall.SIGTERM)
	for code := 0; code != http.StatusServiceUnavailable; code, _ = s.get("/readyz") {
		time.Sleep(time.Millisecond)
	}
	s.signal(syscall.SIGINT)
	if status := s.ends(); status != 130 {
		t.Errorf("status %d after a second SIGINT, want 130:\n%s", status, s.lines())
	}
}

// TestHangUp: a server whose terminal goes away ends well.
func TestHangUp(t *testing.T) {
	caught := make(chan os.Signal, 1) // where nohup has it ignored, the server would, too
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	s := serves(t, "--data-dir", t.TempDir())
	s.signal(syscall.SIGHUP)
	if status := s.ends(); status != 0 {
		t.Errorf("status %d after a SIGHUP:\n%s", status, s.lines())
	}
}

// TestLog: JSON off a terminal, and no line a task.
func TestLog(t *testing.T) {
	s := serves(t, "--data-dir", t.TempDir())
	url, arrived, answer := slowTarget(t)
	close(answer)
	s.post("/v1/timers", object{"app": "a", "name": "often", "schedule": object{"every": "10ms"}, "callback": object{"url": url}}, nil)
	for range 50 {
		<-arrived
	}
	s.signal(syscall.SIGINT)
	if status := s.ends(); status != 0 {
		t.Errorf("status %d", status)
	}
	lines := strings.Split(s.lines(), "\n")
	if len(lines) > 20 {
		t.Errorf("%d lines for 50 calls", len(lines))
	}
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			t.Errorf("not JSON: %s", l)
		}
	}
}

// TestTokens: a token from the environment opens the API, nothing else does.
func TestServeWithToken(t *testing.T) {
	t.Setenv("XTIMER_TOKENS", "*:admin:sesame")
	s := serves(t, "--data-dir", t.TempDir())
	if code, _ := s.get("/v1/timers"); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}
	req, _ := http.NewRequest(http.MethodGet, s.url+"/v1/timers", nil)
	req.Header.Set("Authorization", "Bearer sesame")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("with the token: %d", resp.StatusCode)
	}
}

// Without tokens a page at a name that was pointed at loopback changes nothing.
func TestServeRebound(t *testing.T) {
	server := serves(t, "--data-dir", t.TempDir(), "--listen", nowhere(t))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+"/v1/timers", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	r.Header.Set("Origin", "http://evil.example")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestServeProfiles: all that waits is seen, as all that works.
func TestServeProfiles(t *testing.T) {
	s := serves(t, "--data-dir", t.TempDir(), "--pprof")
	f := func(profile, want string) {
		t.Helper()
		r, err := http.Get(s.url + "/debug/pprof/" + profile + "?debug=1")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 || !strings.Contains(string(b), want) {
			t.Errorf("%s: %d, %v, has no %q: %s", profile, r.StatusCode, err, want, b)
		}
	}
	f("mutex", "sampling period=100\n")
	f("block", " @ 0x")
}
