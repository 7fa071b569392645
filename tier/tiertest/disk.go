package tiertest

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Watch asks before each operation of a disk: an answer that is an error is the
// operation's. errorfs alone does not see the files that are used again, which are
// all logs of Pebble but the first few.
func Watch(disk vfs.FS, ask errorfs.InjectorFunc) vfs.FS {
	return watchedFS{errorfs.Wrap(disk, ask), ask}
}

type watchedFS struct {
	*errorfs.FS
	ask errorfs.InjectorFunc
}

func (w watchedFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := w.FS.ReuseForWrite(old, name, c)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(f, w.ask), nil
}
