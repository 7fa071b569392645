package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"xtimer/httpapi"
)

// The key of cursors is the same after a restart, nobody else may read it, and one that
// is damaged or cannot be written ends nothing.
func TestCursorKey(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	key := cursorKey(dir, log)
	if len(key) != httpapi.CursorKeySize || !bytes.Equal(key, cursorKey(dir, log)) {
		t.Error("it does not last")
	}
	name := filepath.Join(dir, cursorKeyName)
	if i, err := os.Stat(name); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i, err)
	}
	if err := os.Truncate(name, 7); err != nil {
		t.Fatal(err)
	}
	if anew := cursorKey(dir, log); len(anew) != httpapi.CursorKeySize || bytes.Equal(key, anew) {
		t.Error("a damaged one is not made anew")
	}
	if got := cursorKey(filepath.Join(dir, "missing"), log); got != nil {
		t.Errorf("where it cannot be written: %x", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
