package local

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// formatVersion counts the changes of the key table that an older program
// would misread. A store of an older format is migrated here, a newer one is
// refused.
const formatVersion = 1

var (
	formatKey = []byte{kindMeta, 'f'}
	statsKey  = []byte{kindMeta, 's'}
	newestKey = []byte{kindMeta, 'n'} // the greatest id that was used and may stand nowhere any more
)

// checkFormat notes the version of a new store and refuses a newer one.
func (s *Store) checkFormat() error {
	v, closer, err := s.db.Get(formatKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return s.newFormat()
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	switch got, n := binary.Uvarint(v); {
	case n <= 0 || got == 0:
		return damaged(formatKey, errShort)
	case got > formatVersion:
		return fmt.Errorf("the store in %s has format %d, and this program knows formats up to %d: use a newer xtimer", s.cfg.Dir, got, formatVersion)
	}
	return nil
}

// newFormat makes the store's first commit, in a database that must be empty.
func (s *Store) newFormat() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	some := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if some {
		return fmt.Errorf("%s holds something that is not a store of xtimer", s.cfg.Dir)
	}
	return s.db.Set(formatKey, binary.AppendUvarint(nil, formatVersion), pebble.Sync)
}
