package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/bench"
)

func TestBench(t *testing.T) {
	t.Parallel()
	s := serves(t)
	for _, shape := range []struct {
		args   []string
		timers int
	}{
		{[]string{"--rate", "150", "--for", "1s", "--payload", "100"}, 150},
		{[]string{"--burst", "250", "--spread", "200ms", "--apps", "3", "--targets", "2", "--lead", "10s"}, 250},
	} {
		dir := t.TempDir()
		figures, page := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.html")
		args := append([]string{"bench", "--server", s.url, "--json", figures, "--html", page}, shape.args...)
		out, errs, status := runs(t, args...)
		if status != 0 || errs != "" {
			t.Fatalf("%v: status %d: %s%s", shape.args, status, errs, out)
		}
		var r bench.Result
		b, err := os.ReadFile(figures)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		if n := shape.timers; r.Timers != n || r.Acknowledged != n || r.Arrived != n || r.Missing != 0 || r.Early != 0 || r.Strange != 0 {
			t.Errorf("%v: %s", shape.args, b)
		}
		counted := 0
		for _, x := range r.Histogram {
			counted += x.Count
		}
		if counted != r.Arrived-r.LateMade || r.FiresPerSecond <= 0 || r.CreatesPerSecond <= 0 || r.Lateness["max"] < r.Lateness["p50"] {
			t.Errorf("%v: the figures do not fit together: %s", shape.args, b)
		}
		b, err = os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"<svg ", `<path d="M`, "p99.9", r.Load} {
			if !bytes.Contains(b, []byte(want)) {
				t.Errorf("%q is not in the page", want)
			}
		}
		for _, other := range []string{"<script", "<link", "src=", "url(", "ZgotmplZ"} {
			if bytes.Contains(b, []byte(other)) {
				t.Errorf("the page is not self-contained: %q is in it", other)
			}
		}
		if !strings.Contains(out, fmt.Sprintf("deleted   %d timers\n", shape.timers)) || strings.Contains(out, "\x1b") {
			t.Errorf("%v: %s", shape.args, out)
		}
		if _, left := s.get("/v1/timers?limit=1"); left != `{"timers":[]}` {
			t.Errorf("it leaves timers behind: %s", left)
		}
	}
}

// TestBenchCutShort: after Ctrl-C nothing of the load is left on the server.
func TestBenchCutShort(t *testing.T) {
	t.Parallel()
	s := serves(t)
	cmd := program(t, "bench", "--server", s.url, "--rate", "50", "--for", "1h", "--lead", "1h")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer guard.Stop()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, body := s.get("/v1/timers?limit=1"); strings.Contains(body, bench.Label) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no timer of the load appeared")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if cmd.Wait() == nil {
		t.Error("the status is 0, and nothing was judged")
	}
	if !strings.Contains(out.String(), "cut short") || !strings.Contains(out.String(), "  deleted   ") {
		t.Error(out.String())
	}
	if _, left := s.get("/v1/timers?limit=1"); left != `{"timers":[]}` {
		t.Errorf("it leaves timers behind: %s", left)
	}
}

// hasty acknowledges timers and calls them at once.
func hasty(t *testing.T, deleted *string) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/version":
			fmt.Fprint(w, `{"version":"hasty"}`)
		case "/v1/timers/delete":
			b, _ := io.ReadAll(r.Body)
			*deleted = string(b)
			fmt.Fprint(w, `{"count":2,"done":2,"ended":true}`)
		case "/v1/timers/batch":
			var results []string
			for d := json.NewDecoder(r.Body); ; {
				var timer struct {
					Callback struct {
						URL     string
						Headers map[string]string
					}
				}
				if d.Decode(&timer) != nil {
					break
				}
				req, _ := http.NewRequest(http.MethodPost, timer.Callback.URL, nil)
				for k, v := range timer.Callback.Headers {
					req.Header.Set(k, v)
				}
				if resp, err := http.DefaultClient.Do(req); err == nil {
					resp.Body.Close()
				}
				results = append(results, `{"status":201,"id":"1"}`)
			}
			fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(results, ","))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestBenchEarly: a server that calls early fails, whatever it says of itself.
func TestBenchEarly(t *testing.T) {
	t.Parallel()
	var deleted string
	s := hasty(t, &deleted)
	_, errs, status := runs(t, "bench", "--server", s.URL, "--burst", "2", "--lead", "5s")
	if status == 0 || !strings.Contains(errs, "2 calls came early") {
		t.Errorf("status %d: %s", status, errs)
	}
	if !strings.Contains(deleted, `"label":"`+bench.Label+"=") {
		t.Errorf("deleted with %s", deleted)
	}
}

// TestBenchFiles: a report that cannot be written ends it before a timer is made.
func TestBenchFiles(t *testing.T) {
	t.Parallel()
	var made atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/timers/batch" {
			made.Store(true)
		}
		fmt.Fprint(w, `{"version":"x"}`)
	}))
	t.Cleanup(s.Close)
	for _, flag := range []string{"--json", "--html"} {
		_, errs, status := runs(t, "bench", "--server", s.URL, "--burst", "2", flag, filepath.Join(t.TempDir(), "no", "r"))
		if status == 0 || !strings.Contains(errs, "cannot write the report") || made.Load() {
			t.Errorf("%s: status %d, timers made: %t, %s", flag, status, made.Load(), errs)
		}
	}
}

// TestBenchRefused: a server that does not take the load ends the run, and what
// it took is deleted.
func TestBenchRefused(t *testing.T) {
	t.Parallel()
	deleted := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/version":
			fmt.Fprint(w, `{"version":"full"}`)
		case "/v1/timers/batch":
			fmt.Fprint(w, `{"results":[{"status":201,"id":"1"},{"status":429,"error":{"title":"quota","detail":"too many timers"}}]}`)
		case "/v1/timers/delete":
			deleted = true
			fmt.Fprint(w, `{"count":3,"done":1,"failed":2,"ended":true}`)
		}
	}))
	t.Cleanup(s.Close)
	_, errs, status := runs(t, "bench", "--server", s.URL, "--burst", "2", "--lead", "1h")
	if status == 0 || !strings.Contains(errs, "refused a timer: 429 quota too many timers") {
		t.Errorf("status %d: %s", status, errs)
	}
	if !deleted || !strings.Contains(errs, "2 of 3 timers are left: the server gave no reason") {
		t.Errorf("what the server took is left there: %s", errs)
	}
}

// TestBenchUnanswered: what a server may have made without an answer is deleted.
func TestBenchUnanswered(t *testing.T) {
	t.Parallel()
	var deleted atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/version":
			fmt.Fprint(w, `{"version":"silent"}`)
		case "/v1/timers/batch":
			panic(http.ErrAbortHandler)
		case "/v1/timers/delete":
			deleted.Store(true)
			fmt.Fprint(w, `{"count":2,"done":2,"ended":true}`)
		}
	}))
	t.Cleanup(s.Close)
	out, errs, status := runs(t, "bench", "--server", s.URL, "--burst", "2", "--lead", "1h")
	if status == 0 || !strings.Contains(errs, "cannot make timers: ") || !strings.Contains(out, "deleted   2 timers") || !deleted.Load() {
		t.Errorf("status %d: %s%s", status, errs, out)
	}
}
