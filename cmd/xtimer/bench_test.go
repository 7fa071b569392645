package main

import (
	"bytes"
	"context"
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
	"testing/synctest"
	"time"
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
		var r benchResult
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
		if _, body := s.get("/v1/timers?limit=1"); strings.Contains(body, benchLabel) {
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
	if !strings.Contains(deleted, `"label":"`+benchLabel+"=") {
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

// TestBenchProgress: the line of a run stays one row of the terminal, however
// narrow that is.
func TestBenchProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := &benchShape{burst: 1_000_000}
		r := newBenchReceiver(1_000_000, time.Now(), shape)
		l := &benchLoad{n: 1_000_000}
		l.made.Store(1_000_000)
		r.firsts.Store(1_000_000)
		r.repeats.Store(1_000_000)
		var out bytes.Buffer
		p := &progress{make(chan struct{}), make(chan struct{})}
		go p.run(&out, l, r)
		time.Sleep(time.Second + time.Millisecond)
		p.stop()

		const width = 80
		column, wraps, longest := 0, true, 0
		for s := out.String(); s != ""; {
			switch {
			case strings.HasPrefix(s, "\x1b[?7l"):
				wraps, s = false, s[5:]
			case strings.HasPrefix(s, "\x1b[?7h"):
				wraps, s = true, s[5:]
			case strings.HasPrefix(s, "\x1b[K"):
				s = s[3:]
			case s[0] == '\r':
				column, s = 0, s[1:]
			default:
				column, s = column+1, s[1:]
				longest = max(longest, column)
				if column > width && wraps {
					t.Fatalf("a second row begins at %q", s)
				}
			}
		}
		if longest <= width || !wraps || column != 0 {
			t.Errorf("the longest line has %d characters; at the end the column is %d, wrapping %t", longest, column, wraps)
		}
	})
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
	if !deleted || !strings.Contains(errs, "2 of 3 are left: the server does not say why") {
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

// TestBenchMissing: the wait for what does not come ends, and it is said.
func TestBenchMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := &benchShape{burst: 4}
		start := time.Now()
		r := newBenchReceiver(4, start, shape)
		l := &benchLoad{n: 4, start: start, state: []madeState{madeTimely, madeTimely, notMade, madeLate}}
		call := func(i int) {
			req := httptest.NewRequest(http.MethodPost, "/call", nil)
			req.Header.Set(numberHeader, fmt.Sprint(i))
			r.ServeHTTP(httptest.NewRecorder(), req)
		}
		time.Sleep(7 * time.Millisecond)
		call(1)
		call(1)
		time.Sleep(time.Second)
		call(3)
		r.await(context.Background(), func() int64 { return 3 }, start)
		if took := time.Since(start) - time.Second; took < patience || took > patience+time.Second {
			t.Errorf("waited %v", took)
		}
		b := &bench{client: newClient("s"), shape: *shape}
		res := newBenchResult(b, "", l, r)
		if res.Missing != 1 || res.Arrived != 2 || res.Repeats != 1 || res.Early != 0 || res.LateMade != 1 || res.Lateness["max"] != 7 {
			t.Errorf("%+v", res)
		}
		if err := res.verdict(); err == nil || err.Error() != "1 calls are missing" {
			t.Error(err)
		}
	})
}

func TestBenchShape(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_800_000_000_000)
	for _, x := range []struct {
		shape benchShape
		n     int
		after time.Duration // the due of the last, from start
	}{
		{benchShape{rate: 1000, length: 3 * time.Second}, 3000, 2999 * time.Millisecond},
		{benchShape{rate: 3, length: time.Second}, 3, 666 * time.Millisecond},
		{benchShape{rate: 1, burst: 10}, 10, 0},
		{benchShape{rate: 1, burst: 10, spread: time.Second}, 10, 900 * time.Millisecond},
		{benchShape{rate: 0, length: time.Second}, 0, 0},
		{benchShape{rate: 1, length: time.Second, spread: time.Second}, 0, 0},
		{benchShape{rate: 1e9, length: time.Hour}, 0, 0},
	} {
		n, err := x.shape.check()
		if n != x.n || (err == nil) != (x.n > 0) {
			t.Errorf("%+v: %d, %v", x.shape, n, err)
		}
		if n > 0 && x.shape.due(start, n-1) != start.Add(x.after) {
			t.Errorf("%+v: the last is due at %v", x.shape, x.shape.due(start, n-1))
		}
	}
}

func TestBenchHistogram(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	got := histogramOf([]time.Duration{-us, 40 * us, 50 * us, 51 * us, 2000 * us})
	want := "[{0.01 1} {0.02 0} {0.05 2} {0.1 1} {0.2 0} {0.5 0} {1 0} {2 1}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	if len(histogramOf(nil)) != 0 {
		t.Error("there are buckets of nothing")
	}
}
