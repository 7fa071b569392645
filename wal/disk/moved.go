package disk

import (
	"errors"
	iofs "io/fs"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A folder that is moved, deleted or replaced while the store is open would be two: what
// Pebble has opened stays in the former one, and the files that it creates come to lie in
// whatever has the name now. So the process ends as soon as the name does not lead to the
// folder any more. What was acknowledged is in the folder that was moved. The sign is the file
// of the lock: it is there from the opening on, and as it is open, no other file gets
// its number.

// lockName is the name that Pebble gives to the file of the lock.
const lockName = "LOCK"

// lookEvery is how often a folder is looked for. Pebble may create no file for hours.
const lookEvery = time.Second

// inode is what tells a file from all others of the machine; zero: not known.
type inode struct{ device, number uint64 }

// inodeOf reads that of a file. A file system in memory knows none.
func inodeOf(fs vfs.FS, path string) (inode, error) {
	info, err := fs.Stat(path)
	if err != nil {
		return inode{}, err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return inode{uint64(s.Dev), s.Ino}, nil
	}
	return inode{}, nil
}

// isMoved reports whether the name of the folder does not lead to it any more. An error other
// than that of a missing file says nothing.
func (f *Folder) isMoved() bool {
	if f.opened == (inode{}) {
		return false
	}
	now, err := inodeOf(f.cfg.FS, f.cfg.FS.PathJoin(f.cfg.Dir, lockName))
	return err == nil && now != f.opened || errors.Is(err, iofs.ErrNotExist)
}

// stays ends the process when the folder has moved.
func (f *Folder) stays() {
	if f.isMoved() {
		f.Fatalf("the folder was moved, deleted or replaced while it was in use; what was acknowledged is in the former folder: put it back, or start with its new name")
	}
}

// watch looks for the folder until the store is closed.
func (f *Folder) watch() {
	for {
		select {
		case <-f.closing:
			return
		case <-time.After(lookEvery):
			f.stays()
		}
	}
}
