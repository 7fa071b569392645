package local

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// forBackup is a store of a few timers, in a table and in the log, whose end is an
// error of the test.
func forBackup(t *testing.T, fs vfs.FS) *Store {
	t.Helper()
	s := small(fs)
	s.cfg.Exit = func(int) { t.Error("the store ends itself") }
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	createOne(t, s, 1)
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	createOne(t, s, 2)
	return s
}

func createOne(t *testing.T, s *Store, i int) {
	t.Helper()
	tm := benchTimer(i)
	if _, err := s.Apply(t.Context(), &engine.Change{Timer: tm, ID: tm.ID}); err != nil {
		t.Fatal(err)
	}
}

// The disk of a backup fails at the n-th write, for every n: the backup tells, or
// is whole, nothing stays of one that is not, and the store goes on.
func TestBackupToFailingDisk(t *testing.T) {
	mem := vfs.NewMem()
	var left atomic.Int64
	var blind atomic.Bool
	var failed atomic.Pointer[string]
	s := forBackup(t, tiertest.Watch(mem, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, "/backup") && left.Add(-1) == -1 {
			failed.Store(&op.Path)
			return syscall.ENOSPC
		}
		if op.Kind == errorfs.OpStat && op.Path == "/backup/one" && blind.Load() {
			return syscall.EIO
		}
		return nil
	}))
	told := map[string]bool{} // by the ends of names
	for n := int64(0); ; n++ {
		left.Store(n)
		failed.Store(nil)
		err := s.Backup(t.Context(), "/backup/one")
		at := failed.Load()
		if at == nil {
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d writes", n)
			break
		}
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("write %d, of %s: %v", n, *at, err)
		}
		if _, e := mem.Stat("/backup/one"); (e == nil) != (err == nil) {
			t.Fatalf("write %d, of %s: the backup says %v, and its folder %v", n, *at, err, e)
		}
		if err == nil {
			if err := mem.RemoveAll("/backup/one"); err != nil {
				t.Fatal(err)
			}
		} else {
			told[(*at)[strings.LastIndexAny(*at, "./")+1:]] = true
		}
		createOne(t, s, 3+int(n))
	}
	blind.Store(true)
	if err := s.Backup(t.Context(), "/backup/one"); !errors.Is(err, syscall.EIO) {
		t.Errorf("over one that cannot be looked at: %v", err)
	}
	if _, err := mem.Stat("/backup/one"); err != nil {
		t.Errorf("it was removed: %v", err)
	}
	if !told["log"] || !told["one"] || s.fatal.err() != nil {
		t.Errorf("what failed: %v; the store: %v", told, s.fatal.err())
	}
}

// A copy that is damaged is an error of the backup, and does not stay.
func TestBackupThatIsDamaged(t *testing.T) {
	mem := vfs.NewMem()
	var damaged atomic.Bool
	s := forBackup(t, tiertest.Watch(mem, func(op errorfs.Op) error {
		switch {
		case op.Kind == errorfs.OpLink: // or the copy has the store's own files
			return syscall.EXDEV
		case op.Kind == errorfs.OpOpen && strings.HasPrefix(op.Path, "/backup/one/") && strings.HasSuffix(op.Path, ".sst"):
			if b, err := mem.UnsafeGetFileDataBuffer(op.Path); err == nil && damaged.CompareAndSwap(false, true) {
				for i := range b[:len(b)/4] {
					b[i] ^= 0xff
				}
			}
		}
		return nil
	}))
	err := s.Backup(t.Context(), "/backup/one")
	if err == nil || !damaged.Load() {
		t.Fatalf("damaged is %v, and the backup says %v", damaged.Load(), err)
	}
	if _, err := mem.Stat("/backup/one"); err == nil {
		t.Error("it stays")
	}
	createOne(t, s, 3)
	if err := s.fatal.err(); err != nil {
		t.Error(err)
	}
}

// Pebble's names have no ./ before them, though the folder has.
func TestOwnFiles(t *testing.T) {
	for dir, own := range map[string][2]string{
		"/data/cold": {"/data/cold", "/data/cold/1.log"}, "./data/cold": {"./data/cold", "data/cold/1.log"}, "data/": {"data/", "data/1.log"}, ".": {".", "1.log"},
	} {
		g := guardFS{FS: vfs.Default, fatal: &fatal{path: dir}}
		for _, name := range own {
			if !g.owns(name) {
				t.Errorf("%s is not of %s", name, dir)
			}
		}
		for _, name := range []string{"/backup/cold", "/backup/cold/1.log", "backup/data/cold/1.log", "../1.log"} {
			if g.owns(name) {
				t.Errorf("%s is of %s", name, dir)
			}
		}
	}
}
