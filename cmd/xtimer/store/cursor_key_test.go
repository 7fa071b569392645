package store

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
	key := CursorKey(dir, log)
	if len(key) != httpapi.CursorKeySize || !bytes.Equal(key, CursorKey(dir, log)) {
		t.Error("it does not last")
	}
	name := filepath.Join(dir, cursorKeyName)
	if i, err := os.Stat(name); err != nil || i.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", i, err)
	}
	if err := os.Truncate(name, 7); err != nil {
		t.Fatal(err)
	}
	if anew := CursorKey(dir, log); len(anew) != httpapi.CursorKeySize || bytes.Equal(key, anew) {
		t.Error("a damaged one is not made anew")
	}
	if got := CursorKey(filepath.Join(dir, "missing"), log); got != nil {
		t.Errorf("where it cannot be written: %x", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}
