package disk

import (
	"errors"
	iofs "io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/tier/tiertest"
)

// A backup opens as a store, ends where the store ended, and is read by its user only.
func TestBackup(t *testing.T) {
	tmp := t.TempDir()
	cfg := quiet(t, vfs.Default)
	cfg.Dir = filepath.Join(tmp, "data", "store")
	o := open(t, cfg)
	for range 3 {
		o.commit()
	}
	cfg.Dir = filepath.Join(tmp, "backups", "one", "store")
	if err := o.backup(cfg.Dir); err != nil {
		t.Fatal(err)
	}
	o.commit()
	if err := o.backup(cfg.Dir); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("over an existing one: %v", err)
	}
	o.close()
	if err := o.backup(filepath.Join(tmp, "backups", "two")); !errors.Is(err, ErrClosed) {
		t.Errorf("of a closed store: %v", err)
	}
	c := open(t, cfg)
	if c.n != 3 {
		t.Errorf("the copy ends at %d", c.n)
	}
	c.close()
	err := filepath.WalkDir(tmp, func(path string, e iofs.DirEntry, err error) error {
		if err != nil || !e.IsDir() || path == tmp {
			return err
		}
		i, err := os.Stat(path)
		if err == nil && i.Mode().Perm() != 0o700 {
			t.Errorf("%s has mode %o", path, i.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A backup that meets the end of the store is whole or not there.
func TestBackupWhileItCloses(t *testing.T) {
	for i := range 100 {
		fs := vfs.NewMem()
		o := open(t, quiet(t, fs))
		o.commit()
		done := make(chan error)
		go func() { done <- o.backup("/backup") }()
		for range i % 10 {
			runtime.Gosched()
		}
		o.close()
		err := <-done
		if err != nil && !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
		if _, missing := fs.Stat("/backup"); (missing == nil) != (err == nil) {
			t.Fatalf("the backup says %v, and its folder %v", err, missing)
		}
	}
}

// The disk of a backup fails at the n-th write, for every n: the backup reports it, or
// is whole, nothing stays of one that is not, and the store goes on.
func TestBackupToFailingDisk(t *testing.T) {
	mem := vfs.NewMem()
	var left atomic.Int64
	var blind atomic.Bool
	var failed atomic.Pointer[string]
	o := open(t, quiet(t, tiertest.Watch(mem, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && strings.HasPrefix(op.Path, "/backup") && left.Add(-1) == -1 {
			failed.Store(&op.Path)
			return syscall.ENOSPC
		}
		if op.Kind == errorfs.OpStat && op.Path == "/backup/one" && blind.Load() {
			return syscall.EIO
		}
		return nil
	})))
	defer o.close()
	o.commit()
	if err := o.DB.Flush(); err != nil { // so that there is a table to copy, beside the log
		t.Fatal(err)
	}
	told := map[string]bool{} // by the ends of names
	for n := int64(0); ; n++ {
		o.commit()
		left.Store(n)
		failed.Store(nil)
		err := o.backup("/backup/one")
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
	if !told["log"] || !told["one"] {
		t.Errorf("what failed: %v", told)
	}
	blind.Store(true)
	if err := o.backup("/backup/one"); !errors.Is(err, syscall.EIO) {
		t.Errorf("over one that cannot be looked at: %v", err)
	}
	if _, err := mem.Stat("/backup/one"); err != nil {
		t.Errorf("it was removed: %v", err)
	}
}

// A copy that is damaged, or ends too early, is an error of the backup, and does
// not stay; the store goes on.
func TestBackupThatIsDamaged(t *testing.T) {
	for ext, says := range map[string]string{".sst": "checksum", ".log": "it ends at number"} {
		mem := vfs.NewMem()
		var damaged atomic.Bool
		o := open(t, quiet(t, tiertest.Watch(mem, func(op errorfs.Op) error {
			switch {
			case op.Kind == errorfs.OpLink: // or the copy has the store's own files
				return syscall.EXDEV
			case op.Kind == errorfs.OpOpen && strings.HasPrefix(op.Path, "/backup/") && strings.HasSuffix(op.Path, ext):
				if b, err := mem.UnsafeGetFileDataBuffer(op.Path); err == nil && len(b) > 0 && damaged.CompareAndSwap(false, true) {
					for i := range b[:len(b)/4] {
						b[i] ^= 0xff
					}
				}
			}
			return nil
		})))
		o.commit()
		if ext == ".sst" {
			if err := o.DB.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		err := o.backup("/backup/one")
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: damaged is %v, and the backup says %v", ext, damaged.Load(), err)
		}
		if _, err := mem.Stat("/backup/one"); err == nil {
			t.Errorf("%s: it stays", ext)
		}
		o.commit()
		o.close()
	}
}
