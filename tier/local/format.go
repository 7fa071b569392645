package local

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
)

// formatVersion counts the changes that an older program would misread. A store
// of an older format is raised when it is opened, a newer one is refused.
const (
	formatVersion = 3 // 3: timers say who changed them, tasks whether they were dismissed
	// secondFormat: the folder has a mark (see disk.Mark), and owed rows an index by
	// lane.
	secondFormat = 2
)

var (
	formatKey = []byte{kindMeta, 'f'}
	statsKey  = []byte{kindMeta, 's'}
	newestKey = []byte{kindMeta, 'n'} // the greatest id that was used and may stand nowhere any more
)

// checkFormat returns the format of a store, 0 for a new one, and refuses a newer
// format than this program's.
func checkFormat(db *pebble.DB) (uint64, error) {
	v, closer, err := db.Get(formatKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, checkEmpty(db)
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	switch got, n := binary.Uvarint(v); {
	case n <= 0 || got == 0:
		return 0, damaged(formatKey, errShort)
	case got > formatVersion:
		return 0, fmt.Errorf("it has format %d, and this program knows formats up to %d: use a newer xtimer", got, formatVersion)
	default:
		return got, nil
	}
}

// checkEmpty refuses a database of another program.
func checkEmpty(db *pebble.DB) error {
	it, err := db.NewIter(nil)
	if err != nil {
		return err
	}
	some := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if some {
		return errors.New("it holds something that is not a store of xtimer")
	}
	return nil
}
