package local

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

var update = flag.Bool("update", false, "write the golden store of the present format")

// TestGolden opens a store that a released program wrote. Each format keeps its
// own folder for ever.
func TestGolden(t *testing.T) {
	if *update {
		writeGolden(t, fmt.Sprintf("testdata/v%d", formatVersion))
	}
	for format := 1; format <= formatVersion; format++ {
		t.Run(fmt.Sprintf("v%d", format), func(t *testing.T) { opensGolden(t, fmt.Sprintf("testdata/v%d", format)) })
	}
}

func opensGolden(t *testing.T, golden string) {
	dir := filepath.Join(t.TempDir(), "cold")
	if err := os.CopyFS(dir, os.DirFS(golden)); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(golden + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Dir: dir, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := dump(t, s); got != string(want) {
		t.Fatalf("it is read differently:\n%s", tiertest.Diff(got, string(want)))
	}
	for range 20 { // and it can be written to
		script(5).Step().Do(t, s)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// From now on it is of the present format, and not trusted without its mark.
	if err := os.Remove(filepath.Join(dir, "watermark")); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "watermark is missing") {
		t.Fatalf("without its mark: %v", err)
	}
}

func writeGolden(t *testing.T, golden string) {
	t.Helper()
	if err := os.RemoveAll(golden); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Dir: golden})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := script(4)
	for i := range 60 {
		r.Step().Do(t, s)
		if i == 30 { // some in a table, some in the log
			if err := s.db.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(golden+".txt", []byte(dump(t, s)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(golden, "LOCK"))
}

func TestNewerFormatIsRefused(t *testing.T) {
	disk := vfs.NewMem()
	s := small(disk)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set(formatKey, binary.AppendUvarint(nil, formatVersion+1), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "use a newer xtimer") {
		t.Fatalf("a newer format: %v", err)
	}
	db, err := pebble.Open("/data/cold", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		t.Fatalf("the lock is not given back: %v", err)
	}
	_ = db.Close()
}

func TestForeignDatabaseIsRefused(t *testing.T) {
	disk := vfs.NewMem()
	db, err := pebble.Open("/data/cold", &pebble.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Set([]byte("x"), nil, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if err := small(disk).Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not a store of xtimer") {
		t.Fatalf("another's database: %v", err)
	}
}

func TestSecondOpenIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "cold")
	one, two := New(Config{Dir: dir, StallAfter: time.Minute}), New(Config{Dir: dir})
	if err := one.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := two.Open(t.Context()); err == nil || err.Error() != "cannot open the store in "+dir+": another xtimer uses this data directory" {
		t.Fatalf("a second open: %v", err)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if err := two.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := two.Counts(t.Context()); err == nil {
		t.Fatal("a closed store answers")
	}
	if err := two.Settle(t.Context(), &engine.Settlement{}); err == nil {
		t.Fatal("a closed store takes")
	}
}

// TestBackup copies under load and reads the copy.
func TestBackup(t *testing.T) {
	tmp := t.TempDir()
	s := New(Config{Dir: filepath.Join(tmp, "cold")})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r := script(11)
	for range 60 {
		r.Step().Do(t, s)
	}
	to := filepath.Join(tmp, "backups", "one")
	if err := s.Backup(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	want := dump(t, s)
	for range 30 {
		r.Step().Do(t, s)
	}
	if err := s.Backup(t.Context(), to); err == nil {
		t.Fatal("a backup overwrites another")
	}
	b := New(Config{Dir: to, StallAfter: time.Minute})
	if err := b.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := dump(t, b); got != want {
		t.Fatalf("the copy differs:\n%s", tiertest.Diff(got, want))
	}
}
