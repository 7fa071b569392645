package disk

import (
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2"
)

// Backup writes a consistent copy to a new folder, which shares files with the
// store where the disk allows, and reads the copy: number reads all that a start
// reads and returns the number that the copy ends at. The copy has to reach
// durable, the number of what was durable when the backup began. It has a mark
// of its own and can be opened in place of the store.
//
// Copying the files of a running store would not do: files vanish meanwhile.
func (f *Folder) Backup(dir string, durable uint64, number func(*pebble.DB) (uint64, error)) (err error) {
	fs := f.cfg.FS
	if _, err := fs.Stat(dir); err == nil {
		return fmt.Errorf("%s exists already: a backup makes its own folder", dir)
	} else if !errors.Is(err, iofs.ErrNotExist) {
		return err // it may be there, and must not be removed
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, fs.RemoveAll(dir))
		}
	}()
	if err := makeDir(fs, fs.PathDir(dir)); err != nil {
		return fmt.Errorf("cannot make the folder of the backup: %w", err)
	}
	if err := f.checkpoint(dir); err != nil {
		return fmt.Errorf("cannot write the backup: %w", err)
	}
	if err := createMark(fs, dir, durable); err != nil {
		return fmt.Errorf("cannot write the backup: %w", err)
	}
	if err := f.verify(dir, durable, number); err != nil {
		return fmt.Errorf("cannot read the backup: %w", err)
	}
	return nil
}

// checkpoint copies the store, unless it is closed.
func (f *Folder) checkpoint(dir string) (err error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	f.copies.Add(1)
	f.mu.Unlock()
	defer f.copies.Done()
	defer func() {
		// Pebble panics, without a lock, when it cannot sync the folder of the copy.
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok || !errors.As(err, new(copyError)) {
				panic(r)
			}
		}
	}()
	return f.DB.Checkpoint(dir, pebble.WithFlushedWAL())
}

// verify opens the copy read-only and reads it. A copy that is damaged is no
// reason to end the process.
func (f *Folder) verify(dir string, durable uint64, number func(*pebble.DB) (uint64, error)) (err error) {
	o := f.options(f.cfg.FS)
	o.Logger = silent{}
	o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	o.ReadOnly, o.Cache, o.CacheSize = true, nil, 1<<20
	db, err := pebble.Open(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	n, err := number(db)
	if err == nil && n < durable {
		err = fmt.Errorf("it ends at number %d of %d", n, durable)
	}
	return err
}

// silent is the logger of a copy: errors are returned.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}
