package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	api "xtimer/httpapi/client"
)

// TestVerify: the ledger of a server is proven while it runs and after it was
// killed; and what is late is named.
func TestVerify(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer target.Close()
	data := filepath.Join(t.TempDir(), "data")
	s := serves(t, "--data-dir", data)
	s.post("/v1/timers", object{
		"app": "a", "name": "often", "schedule": object{"every": "50ms"}, "callback": object{"url": target.URL},
	}, nil)

	// proven runs verify and returns its verdict.
	proven := func(args ...string) (v api.Verdict) {
		t.Helper()
		out, errs, status := runs(t, append([]string{"verify", "--json", "--from", "1h"}, args...)...)
		if status != 0 {
			t.Fatalf("status %d, %q, %q", status, out, errs)
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil || v.Verdict != "proven" {
			t.Fatalf("%v in %q", err, out)
		}
		return v
	}
	for end := time.Now().Add(30 * time.Second); proven("--server", s.url).Dues < 10; {
		if time.Now().After(end) {
			t.Fatal("no ten dues in 30 s")
		}
	}
	proven("--from", "7d", "--server", s.url) // as long as history is kept
	_, errs, status := runs(t, "verify", "--from", "1h", "--data-dir", data)
	if status != 1 || !strings.Contains(errs, "ask the server with --server") {
		t.Errorf("the folder of a running server: status %d, %q", status, errs)
	}
	out, errs, status := runs(t, "verify", "--from", "1h", "--late", "1ns", "--server", s.url)
	if status != 1 || errs != "" || !strings.Contains(out, "a/often: its first attempt was") || !strings.Contains(out, "Not proven: ") {
		t.Errorf("late: status %d, %q, %q", status, out, errs)
	}

	if _, errs, status = runs(t, "verify", "--from", "1h", "--app", "other", "--server", s.url); status != 1 || !strings.Contains(errs, `"other" has no timers`) {
		t.Errorf("an app without timers: status %d, %q", status, errs)
	}
	for _, of := range []string{"--server=" + s.url, "--data-dir=" + data} {
		if _, errs, status = runs(t, "verify", "--from", "1h", "--late", "-1s", of); status == 0 || !strings.Contains(errs, "must not be negative") {
			t.Errorf("%s, late before the due: status %d, %q", of, status, errs)
		}
	}

	s.signal(syscall.SIGKILL)
	s.ends()
	if v := proven("--data-dir", data); v.Dues < 10 || v.Timers != 1 {
		t.Errorf("%+v", v)
	}
	proven("--from", "7d", "--data-dir", data)
	for _, of := range [][]string{{"--data-dir", data}, {"--data-dir", data, "--json"}} {
		_, errs, status := runs(t, append([]string{"verify", "--from", "1h", "--app", "other"}, of...)...)
		if status != 1 || !strings.Contains(errs, `nothing to verify: the app "other" has no timers`) {
			t.Errorf("an app without timers: status %d, %q", status, errs)
		}
	}
	var all map[string]any
	out, _, _ = runs(t, "verify", "--from", "1h", "--to", "30m", "--json", "--data-dir", data)
	if err := json.Unmarshal([]byte(out), &all); err != nil || all["dues"] != 0.0 || all["records"] != 0.0 || all["open"] != 0.0 || all["unkept"] != 0.0 {
		t.Errorf("a count of 0 is left out: %q, %v", out, err)
	}
	out, errs, status = runs(t, "verify", "--from", "1h", "--late", "1ns", "--data-dir", data)
	if status != 1 || errs != "" || !strings.Contains(out, "late ") || !strings.Contains(out, "Not proven: ") {
		t.Errorf("late: status %d, %q, %q", status, out, errs)
	}
	if out, errs, status = runs(t, "verify", "--from", "9d", "--data-dir", data); status != 1 || !strings.Contains(errs, "history is kept for") {
		t.Errorf("older than history: status %d, %q, %q", status, out, errs)
	}
	if out, errs, status = runs(t, "verify", "--from", "1h", "--data-dir", t.TempDir()); status != 1 || !strings.Contains(errs, "is not a data directory") {
		t.Errorf("an empty folder: status %d, %q, %q", status, out, errs)
	}
}
