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
	proven := func(args ...string) (v proofLine) {
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
	_, errs, status := runs(t, "verify", "--from", "1h", "--data-dir", data)
	if status != 1 || !strings.Contains(errs, "ask it, with --server") {
		t.Errorf("the folder of a running server: status %d, %q", status, errs)
	}
	out, errs, status := runs(t, "verify", "--from", "1h", "--late", "1ns", "--server", s.url)
	if status != 1 || errs != "" || !strings.Contains(out, "a/often: its first attempt was") || !strings.Contains(out, "Not proven: ") {
		t.Errorf("late: status %d, %q, %q", status, out, errs)
	}

	s.signal(syscall.SIGKILL)
	s.ends()
	if v := proven("--data-dir", data); v.Dues < 10 || v.Timers != 1 {
		t.Errorf("%+v", v)
	}
	if v := proven("--data-dir", data, "--app", "other"); v.Timers != 0 {
		t.Errorf("%+v", v)
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
