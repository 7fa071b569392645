package local

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2"
)

// Backup writes a consistent copy to a new folder, and opens it to see that it
// can be read. The copy shares files with the store where the disk allows.
func (s *Store) Backup(_ context.Context, dir string) (err error) {
	w, err := s.views.acquire() // keeps the database open
	if err != nil {
		return err
	}
	defer s.views.release(w)
	if _, err := s.cfg.FS.Stat(dir); err == nil {
		return fmt.Errorf("%s exists already: a backup makes its own folder", dir)
	} else if !errors.Is(err, iofs.ErrNotExist) {
		return err // it may be there, and must not be removed
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cfg.FS.RemoveAll(dir))
		}
	}()
	if err := makeDir(s.cfg.FS, s.cfg.FS.PathDir(dir)); err != nil {
		return fmt.Errorf("cannot make the folder of the backup: %w", err)
	}
	if err := s.checkpoint(dir); err != nil {
		return fmt.Errorf("cannot write the backup: %w", err)
	}
	return s.verify(dir)
}

func (s *Store) checkpoint(dir string) (err error) {
	defer func() {
		// Pebble panics, without a lock, when it cannot sync the folder of the copy.
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok || !errors.As(err, new(copyError)) {
				panic(r)
			}
		}
	}()
	return s.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

// verify opens a copy read-only and reads what Open reads.
func (s *Store) verify(dir string) error {
	o := s.options()
	// A copy that is damaged is no reason to end.
	o.FS, o.Logger = s.cfg.FS, silent{}
	o.EventListener = &pebble.EventListener{DataCorruption: func(pebble.DataCorruptionInfo) {}}
	o.ReadOnly, o.Cache = true, pebble.NewCache(1<<20)
	defer o.Cache.Unref()
	db, err := pebble.Open(dir, o)
	if err != nil {
		return fmt.Errorf("the backup cannot be opened: %w", err)
	}
	var st state
	err = st.load(db)
	return errors.Join(err, db.Close())
}

// silent is a logger for what is told by errors alone.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(string, ...any) {}
