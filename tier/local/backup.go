package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// Backup writes a consistent copy to a new folder, and opens it to see that it
// can be read. The copy shares files with the store where the disk allows.
func (s *Store) Backup(_ context.Context, dir string) error {
	w, err := s.views.acquire() // keeps the database open
	if err != nil {
		return err
	}
	defer s.views.release(w)
	if _, err := s.cfg.FS.Stat(dir); err == nil {
		return fmt.Errorf("%s exists already: a backup makes its own folder", dir)
	}
	if err := makeDir(s.cfg.FS, s.cfg.FS.PathDir(dir)); err != nil {
		return fmt.Errorf("cannot make the folder of the backup: %w", err)
	}
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("cannot write the backup: %w", err)
	}
	return s.verify(dir)
}

// verify opens a copy read-only and reads what Open reads.
func (s *Store) verify(dir string) error {
	o := s.options()
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
