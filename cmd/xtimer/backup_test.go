package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBackupAndRestore takes both ways to a backup and back.
func TestBackupAndRestore(t *testing.T) {
	tmp := t.TempDir()
	data, backups := filepath.Join(tmp, "data"), filepath.Join(tmp, "backups")
	s := serves(t, "--data-dir", data, "--backup-dir", backups)
	timer := object{
		"app": "a", "name": "kept", "schedule": object{"cron": "0 9 1 1 *"},
		"callback": object{"url": "http://127.0.0.1:1/"},
	}
	s.post("/v1/timers", timer, nil)

	// By the running server …
	out, errs, status := runs(t, "backup", "--server", s.url)
	if status != 0 || !strings.Contains(out, "The server wrote 20") {
		t.Fatalf("online: status %d, %q, %q", status, out, errs)
	}
	made, err := os.ReadDir(backups)
	if err != nil || len(made) != 1 {
		t.Fatalf("the server made %v, %v", made, err)
	}
	online := filepath.Join(backups, made[0].Name())

	// … and without one.
	s.signal(syscall.SIGTERM)
	s.ends()
	offline := filepath.Join(tmp, "offline")
	if out, errs, status = runs(t, "backup", "--data-dir", data, offline); status != 0 {
		t.Fatalf("offline: status %d, %q, %q", status, out, errs)
	}
	if _, errs, status = runs(t, "backup", "--data-dir", data, offline); status != 1 || !strings.Contains(errs, "file exists") {
		t.Errorf("over a backup: status %d, %q", status, errs)
	}

	if _, errs, status = runs(t, "restore", offline, "--data-dir", data); status != 1 || !strings.Contains(errs, "is not empty") {
		t.Errorf("over data: status %d, %q", status, errs)
	}
	if _, errs, status = runs(t, "restore", tmp, "--data-dir", filepath.Join(tmp, "new")); status != 1 || !strings.Contains(errs, "is not a backup") {
		t.Errorf("from what is no backup: status %d, %q", status, errs)
	}
	for _, from := range []string{online, offline} {
		to := filepath.Join(t.TempDir(), "restored")
		out, errs, status = runs(t, "restore", from, "--data-dir", to)
		if status != 0 || !strings.Contains(out, "1 timers enabled") || !strings.Contains(out, "each timer's policy decides") {
			t.Fatalf("restore: status %d, %q, %q", status, out, errs)
		}
		s := serves(t, "--data-dir", to)
		if code, body := s.get("/v1/apps/a/timers/kept"); code != http.StatusOK {
			t.Errorf("after the restore: %d %s", code, body)
		}
	}
}

func TestRestoreCutShort(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, restoringDir), 0o700); err != nil {
		t.Fatal(err)
	}
	_, errs, status := runs(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	if status != 1 || !strings.Contains(errs, "a restore was cut short here") {
		t.Errorf("status %d, %q", status, errs)
	}
}
