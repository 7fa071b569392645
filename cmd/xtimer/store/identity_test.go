package store

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// A data directory keeps its identity, each has another, and where it cannot be stored
// there is none.
func TestIdentity(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	word := identity(dir, log)
	if word == "" || word != identity(dir, log) {
		t.Errorf("%q does not last", word)
	}
	if other := identity(t.TempDir(), log); other == word {
		t.Error("two data directories have one identity")
	}
	if err := os.Truncate(filepath.Join(dir, identityName), 7); err != nil {
		t.Fatal(err)
	}
	if anew := identity(dir, log); anew == word || len(anew) != len(word) {
		t.Errorf("of a damaged one: %q", anew)
	}
	if got := identity(filepath.Join(dir, "missing"), log); got != "" {
		t.Errorf("where it cannot be stored: %q", got)
	}
	if !onlyOurs(dir) {
		t.Error("its file is taken for somebody else's")
	}
}
