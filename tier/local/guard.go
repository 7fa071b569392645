package local

import (
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine/failpoint"
)

// guardFS ends the process in order when the log cannot be written: Pebble
// panics on some of these errors, with a lock in a state in which not even the
// panic gets out.
//
// Only the store's own folder is watched so: a backup whose disk fails, which
// Pebble writes through the same file system, gets the error.
//
// It also makes the directory durable before a marker in it names another file of
// it. Pebble syncs it once for both, so that a power failure could keep the marker
// of a manifest and lose the manifest.
type guardFS struct {
	vfs.FS
	fatal *fatal
	armed *atomic.Bool // set by Open at its end: until then it returns errors
}

func (g guardFS) Unwrap() vfs.FS { return g.FS }

func (g guardFS) check(what, name string, err error) error {
	switch {
	case err == nil:
		return nil
	case !g.owns(name):
		return copyError{err}
	case g.armed.Load():
		g.fatal.Fatalf("cannot %s %s: %v", what, name, err)
	}
	return err
}

// copyError is an error of a file that is not the store's own.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

// owns tells of a file, or a directory, whether it is the store's own.
func (g guardFS) owns(name string) bool {
	dir := g.PathJoin(g.fatal.path) // as Pebble's own names are, without a ./ before
	return g.PathDir(name) == dir || g.PathJoin(name) == dir
}

func (g guardFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(g.PathBase(name), "marker.") {
		if err := syncDir(g.FS, g.PathDir(name)); err != nil {
			return nil, g.check("sync the directory of", name, err)
		}
	}
	f, err := g.FS.Create(name, c)
	switch {
	case err == nil && strings.HasSuffix(name, ".sst"):
		return tableFile{f}, nil
	case !strings.HasSuffix(name, ".log"):
		return f, err
	}
	return guardFile{f, g, name}, g.check("create", name, err)
}

func (g guardFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.ReuseForWrite(old, name, c)
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return guardFile{f, g, name}, g.check("create", name, err)
}

func (g guardFS) OpenDir(name string) (vfs.File, error) {
	f, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return guardFile{f, g, name}, nil
}

// tableFile lets what is due go first at each block: a compaction would keep a
// core for as long as Go lets it, 10 ms.
type tableFile struct{ vfs.File }

func (f tableFile) Write(b []byte) (int, error) {
	runtime.Gosched()
	return f.File.Write(b)
}

// guardFile is a log, or a directory that is to be synced.
type guardFile struct {
	vfs.File
	fs   guardFS
	name string
}

func (f guardFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, f.fs.check("write", f.name, err)
}

func (f guardFile) Stat() (vfs.FileInfo, error) { // asked of a log that is used again
	info, err := f.File.Stat()
	return info, f.fs.check("look at", f.name, err)
}

func (f guardFile) Sync() error {
	failpoint.Hit("cold-in-commit")
	return f.fs.check("sync", f.name, f.File.Sync())
}

func (f guardFile) SyncData() error {
	failpoint.Hit("cold-in-commit")
	return f.fs.check("sync", f.name, f.File.SyncData())
}

func (f guardFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, f.fs.check("sync", f.name, err)
}

func (f guardFile) Close() error { return f.fs.check("close", f.name, f.File.Close()) }
