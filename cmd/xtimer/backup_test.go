package main

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"xtimer/cmd/xtimer/store"
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
	for _, dir := range []string{data, backups, offline} {
		private(t, dir)
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
		if status != 0 || !strings.Contains(out, "1 timers enabled") || !strings.Contains(out, "the policy of its timer decides") {
			t.Fatalf("restore: status %d, %q, %q", status, out, errs)
		}
		private(t, to)
		s := serves(t, "--data-dir", to)
		if code, body := s.get("/v1/apps/a/timers/kept"); code != http.StatusOK {
			t.Errorf("after the restore: %d %s", code, body)
		}
	}
}

// private fails unless a folder and all in it is its user's only.
func private(t *testing.T, dir string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := e.Info()
		if err == nil && i.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, i.Mode().Perm())
		}
		n++
		return err
	})
	if err != nil || n < 10 {
		t.Errorf("%s: %d files and folders, %v", dir, n, err)
	}
}

// A data directory that others can read, also one from before, is its user's only
// after the next start, and the log says so once; what is not ours in it stays.
func TestDataDirectoryIsPrivate(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	s := serves(t, "--data-dir", data)
	private(t, data)
	s.signal(syscall.SIGTERM)
	s.ends()

	err := filepath.WalkDir(data, func(path string, e fs.DirEntry, _ error) error {
		if e.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copied")
	_, errs, status := runs(t, "backup", "--data-dir", data, copied)
	if n := strings.Count(errs, "other users could read the data directory"); status != 0 || n != 1 {
		t.Errorf("status %d, said %d times: %q", status, n, errs)
	}
	private(t, data)

	// With something that is not ours in it only our folders are changed.
	if err := errors.Join(os.WriteFile(filepath.Join(data, "notes"), nil, 0o600), os.Chmod(filepath.Join(data, "notes"), 0o644), os.Chmod(data, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(data, "journal"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, errs, status = runs(t, "backup", "--data-dir", data, copied+"2"); status != 0 {
		t.Errorf("status %d, %q", status, errs)
	}
	for name, want := range map[string]fs.FileMode{"": 0o755, "notes": 0o644, "journal": 0o700} {
		if i, err := os.Stat(filepath.Join(data, name)); err != nil || i.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %o: %v", name, i.Mode(), want, err)
		}
	}
}

// Restore takes files and folders, and nothing that stands for something else.
func TestRestoreTakesFilesOnly(t *testing.T) {
	tmp := t.TempDir()
	secret := filepath.Join(tmp, "secret")
	if err := os.WriteFile(secret, []byte("not for you"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		plant func(backup string) error
		says  string
	}{
		"a link to a file":   {func(b string) error { return os.Symlink(secret, filepath.Join(b, "journal", "1.log")) }, "is a symbolic link"},
		"a link to a folder": {func(b string) error { return os.Symlink(tmp, filepath.Join(b, "cold", "more")) }, "is a symbolic link"},
		"a pipe":             {func(b string) error { return syscall.Mkfifo(filepath.Join(b, "cold", "pipe"), 0o600) }, "is not a regular file"},
		"a folder that is a link": {func(b string) error {
			return errors.Join(os.Remove(filepath.Join(b, "cold")), os.Symlink(tmp, filepath.Join(b, "cold")))
		}, "it has no folder cold"},
	} {
		t.Run(name, func(t *testing.T) {
			backup, to := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "to")
			for _, part := range []string{"cold", "journal"} {
				if err := os.MkdirAll(filepath.Join(backup, part), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.plant(backup); err != nil {
				t.Fatal(err)
			}
			if _, errs, status := runs(t, "restore", backup, "--data-dir", to); status != 1 || !strings.Contains(errs, c.says) {
				t.Errorf("status %d, %q", status, errs)
			}
			if _, err := os.Stat(filepath.Join(to, "restoring")); err == nil {
				t.Error("half of it stays")
			}
		})
	}
}

func TestRestoreCutShort(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, store.RestoringFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	_, errs, status := runs(t, "serve", "--listen", "127.0.0.1:0", "--data-dir", dir)
	if status != 1 || !strings.Contains(errs, "a restore was interrupted here") {
		t.Errorf("status %d, %q", status, errs)
	}
}
