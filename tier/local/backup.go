package local

import (
	"context"

	"github.com/cockroachdb/pebble/v2"
)

// Backup writes a consistent copy to a new folder, and opens it to see that it
// can be read. The copy shares files with the store where the disk allows.
func (s *Store) Backup(ctx context.Context, dir string) error {
	v, err := s.views.acquire() // keeps the database open
	if err != nil {
		return err
	}
	defer s.views.release(v)
	return s.folder.Backup(dir, v.seq, func(db *pebble.DB) (uint64, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var st state
		err := st.load(db)
		return st.stats.seq, err
	})
}
