package disk

import (
	"os"
	"runtime"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FS is the file system that Pebble works on. It ends the process in order where
// Pebble would panic: when a log file cannot be created, written, synced or
// closed, or the folder cannot be synced. Some of these panics are in Pebble's
// own goroutines, or die once more of an unlocked mutex, so nobody can recover
// from them.
//
// FS watches the files of the folder itself. A backup, which Pebble writes through
// the same file system, gets an error instead.
//
// FS also makes the folder durable before a marker in it names another file of it.
// Pebble syncs the folder once for both, so that a power failure could keep the
// marker of a manifest and lose the manifest.
//
// No file is created in a folder that has taken the place of the store's own: see moved.go.
//
// All folders are private (0700), whatever mode Pebble asks for.
type FS struct {
	vfs.FS
	folder *Folder
}

// Unwrap is for Pebble, which looks for the machine's own file system.
func (s FS) Unwrap() vfs.FS { return s.FS }

// MkdirAll makes a private folder.
func (s FS) MkdirAll(dir string, _ os.FileMode) error { return s.FS.MkdirAll(dir, 0o700) }

// Create creates a file, and watches it when it is a log.
func (s FS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if s.owns(name) {
		s.folder.stays()
	}
	if strings.HasPrefix(s.PathBase(name), "marker.") {
		dir := s.PathDir(name)
		if err := s.check("sync", dir, syncDir(s.FS, dir)); err != nil {
			return nil, err
		}
	}
	f, err := s.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".sst") {
		return tableFile{f}, nil
	}
	if n, is := manifestNumber(s.PathBase(name)); is && err == nil && s.owns(name) {
		return &manifestFile{File: f, folder: s.folder, number: n}, nil
	}
	return s.watch("create", name, f, err)
}

// ReuseForWrite is Create for a log that is used again.
func (s FS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if s.owns(name) {
		s.folder.stays()
	}
	f, err := s.FS.ReuseForWrite(old, name, c)
	return s.watch("reuse", name, f, err)
}

func (s FS) watch(op, name string, f vfs.File, err error) (vfs.File, error) {
	if !strings.HasSuffix(name, ".log") {
		return f, err
	}
	return watchedFile{f, name, s}, s.check(op, name, err)
}

// OpenDir opens a folder to sync it.
func (s FS) OpenDir(name string) (vfs.File, error) {
	f, err := s.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return watchedFile{f, name, s}, nil
}

// check ends the process when the error is of the folder's own files.
func (s FS) check(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if s.owns(name) {
		s.folder.Fatalf("%s %s: %v", op, name, err)
	}
	return copyError{err}
}

// copyError is an error of a file that is not the folder's own.
type copyError struct{ error }

func (e copyError) Unwrap() error { return e.error }

// owns reports whether a file, or a folder, is the folder's own.
func (s FS) owns(name string) bool {
	dir := s.PathJoin(s.folder.cfg.Dir) // as Pebble's own names are, without a ./ before
	return s.PathDir(name) == dir || s.PathJoin(name) == dir
}

// tableFile lets due timers go first at each block: a compaction would keep a
// core for as long as Go lets it, 10 ms.
type tableFile struct{ vfs.File }

func (f tableFile) Write(b []byte) (int, error) {
	runtime.Gosched()
	return f.File.Write(b)
}

// watchedFile is a log, or a folder that is to be synced.
type watchedFile struct {
	vfs.File
	name string
	fs   FS
}

func (f watchedFile) check(op string, err error) error { return f.fs.check(op, f.name, err) }

func (f watchedFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	return n, f.check("write", err)
}

// Stat is asked of a log that is used again.
func (f watchedFile) Stat() (vfs.FileInfo, error) {
	info, err := f.File.Stat()
	return info, f.check("stat", err)
}

func (f watchedFile) Sync() error {
	f.fs.folder.cfg.BeforeSync()
	return f.check("sync", f.File.Sync())
}

func (f watchedFile) SyncData() error {
	f.fs.folder.cfg.BeforeSync()
	return f.check("sync", f.File.SyncData())
}

func (f watchedFile) SyncTo(n int64) (bool, error) {
	full, err := f.File.SyncTo(n)
	return full, f.check("sync", err)
}

func (f watchedFile) Close() error { return f.check("close", f.File.Close()) }
