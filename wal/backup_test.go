package wal

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// A copy made under load opens as a journal, with all that was durable when it
// was asked for and nothing out of order, and the original goes on.
func TestBackup(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, quiet(fs))
	done := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		var n uint64
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			p := j.Finish(append(nth(n), make([]byte, 500)...))
			if n%16 == 0 {
				_ = j.Sync(t.Context(), p)
			}
			if n%100 == 0 {
				_ = j.Forget(max(p, 200) - 200)
			}
		}
	}()
	for _, dir := range []string{"/backup/one", "/backup/two"} {
		j.sync(j.Finish(nth(0)))
		acked := j.durable.Load()
		if err := j.Backup(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		cfg := quiet(fs)
		cfg.Dir = dir
		c := start(t, cfg)
		if n := uint64(c.Next()); n < acked {
			t.Errorf("the copy ends after %d of %d", n, acked)
		}
		if got := uint64(len(c.replay().finished)); got != uint64(c.Len()) {
			t.Errorf("%d records of %d", got, c.Len())
		}
		c.end()
	}
	if err := j.Backup(t.Context(), "/backup/one"); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over an existing one: %v", err)
	}
	close(stop)
	n := <-done
	j.end()
	j = start(t, quiet(fs))
	defer j.end()
	if j.Next() != engine.Position(n+2) {
		t.Errorf("next %d, want %d", j.Next(), n+2)
	}
}

// A backup that meets the end of the journal is whole or not there.
func TestBackupWhileItCloses(t *testing.T) {
	for i := range 100 {
		fs := vfs.NewMem()
		j := start(t, quiet(fs))
		j.sync(j.Finish(nth(0)))
		done := make(chan error)
		go func() { done <- j.Backup(t.Context(), "/backup") }()
		for range i % 10 {
			runtime.Gosched()
		}
		j.end()
		err := <-done
		if err != nil && !errors.Is(err, ErrEnded) {
			t.Fatal(err)
		}
		if _, missing := fs.Stat("/backup"); (missing == nil) != (err == nil) {
			t.Fatalf("the backup says %v, and its folder %v", err, missing)
		}
	}
	j := start(t, quiet(vfs.NewMem()))
	j.end()
	if err := j.Backup(t.Context(), "/backup"); !errors.Is(err, ErrEnded) {
		t.Errorf("of a closed journal: %v", err)
	}
}

// The disk of a backup fails at the n-th write, for every n: the backup tells, or
// is whole, nothing stays of one that is not, and the journal goes on.
func TestBackupToFailingDisk(t *testing.T) {
	mem := vfs.NewMem()
	var left atomic.Int64
	var blind atomic.Bool
	var failed atomic.Pointer[string]
	cfg := quiet(tiertest.Watch(mem, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, "/backup") && left.Add(-1) == -1 {
			failed.Store(&op.Path)
			return syscall.ENOSPC
		}
		if op.Kind == errorfs.OpStat && op.Path == "/backup/one" && blind.Load() {
			return syscall.EIO
		}
		return nil
	}))
	cfg.Exit = func(int) { panic("the journal ends itself") }
	j := start(t, cfg)
	defer j.end()
	told := map[string]bool{} // by the ends of names
	for n := int64(0); ; n++ {
		j.sync(j.Finish(nth(0)))
		left.Store(n)
		failed.Store(nil)
		err := j.Backup(t.Context(), "/backup/one")
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
	}
	blind.Store(true)
	if err := j.Backup(t.Context(), "/backup/one"); !errors.Is(err, syscall.EIO) {
		t.Errorf("over one that cannot be looked at: %v", err)
	}
	if _, err := mem.Stat("/backup/one"); err != nil {
		t.Errorf("it was removed: %v", err)
	}
	if !told["log"] || !told["one"] || j.Err() != nil {
		t.Errorf("what failed: %v; the journal: %v", told, j.Err())
	}
}

// Pebble's names have no ./ before them, though the folder has.
func TestOwnFiles(t *testing.T) {
	for dir, own := range map[string][2]string{
		"/data/wal": {"/data/wal", "/data/wal/1.log"}, "./data/wal": {"./data/wal", "data/wal/1.log"}, "data/": {"data/", "data/1.log"}, ".": {".", "1.log"},
	} {
		s := strictFS{vfs.Default, &Log{cfg: Config{Dir: dir}}}
		for _, name := range own {
			if !s.owns(name) {
				t.Errorf("%s is not of %s", name, dir)
			}
		}
		for _, name := range []string{"/backup/wal", "/backup/wal/1.log", "backup/data/wal/1.log", "../1.log"} {
			if s.owns(name) {
				t.Errorf("%s is of %s", name, dir)
			}
		}
	}
}
