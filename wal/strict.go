package wal

import (
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine/failpoint"
)

// strictFS ends the process in an orderly way where Pebble would panic: when a
// log file cannot be created, written, synced or closed, or a directory cannot
// be synced. Some of these panics are in Pebble's own goroutines, or die once
// more of an unlocked mutex, so they cannot be caught.
//
// Only the journal's own folder is watched so: a backup whose disk fails, which
// Pebble writes through the same file system, gets the error.
//
// It also makes a directory durable before a marker in it names another file of
// it. Pebble syncs it once for both, so that a power failure could keep the
// marker of a manifest and lose the manifest.
//
// A table that cannot be written is no reason to end: Pebble tries again.
type strictFS struct {
	vfs.FS
	l *Log
}

func (s strictFS) Unwrap() vfs.FS { return s.FS }

func (s strictFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasPrefix(s.PathBase(name), "marker.") {
		dir := s.PathDir(name)
		if err := s.must("sync of the directory", dir, syncDir(s.FS, dir)); err != nil {
			return nil, err
		}
	}
	f, err := s.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".sst") {
		return tableFile{f}, nil
	}
	return s.guard("create", name, f, err)
}

func (s strictFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := s.FS.ReuseForWrite(old, name, c)
	return s.guard("reuse", name, f, err)
}

func (s strictFS) guard(op, name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return strictFile{f, name, s}, s.must(op, name, err)
}

// must ends the process when the error is of the journal's own folder.
func (s strictFS) must(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if s.owns(name) {
		s.l.die("%s %s: %v", op, name, err)
	}
	return copyError{err}
}

// copyError is an error of a file that is not the journal's own.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

// owns tells of a file, or a directory, whether it is the journal's own.
func (s strictFS) owns(name string) bool {
	dir := s.PathJoin(s.l.cfg.Dir) // as Pebble's own names are, without a ./ before
	return s.PathDir(name) == dir || s.PathJoin(name) == dir
}

func (s strictFS) OpenDir(name string) (vfs.File, error) {
	f, err := s.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return strictFile{f, name, s}, nil
}

// tableFile lets what is due go first at each block: a compaction would keep a
// core for as long as Go lets it, 10 ms.
type tableFile struct{ vfs.File }

func (f tableFile) Write(b []byte) (int, error) {
	runtime.Gosched()
	return f.File.Write(b)
}

type strictFile struct {
	vfs.File
	name string
	s    strictFS
}

func (f strictFile) must(op string, err error) error { return f.s.must(op, f.name, err) }

func (f strictFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, f.must("write", err)
}

func (f strictFile) Sync() error {
	failpoint.Hit("in-commit")
	return f.must("sync", f.File.Sync())
}

func (f strictFile) SyncData() error {
	failpoint.Hit("in-commit")
	return f.must("sync", f.File.SyncData())
}

func (f strictFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, f.must("sync", err)
}

func (f strictFile) Close() error { return f.must("close", f.File.Close()) }
