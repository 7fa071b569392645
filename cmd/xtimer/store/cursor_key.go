package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"xtimer/httpapi"
	"xtimer/wal/disk"
)

// cursorKeyName is the file of the key that seals the cursors of lists. It lies in the
// data directory, so that a list that a program goes through outlives a restart. It is
// in no backup: after a restore lists begin anew.
const cursorKeyName = "cursor.key"

// CursorKey reads the key, or makes it where it is missing or damaged. Where that cannot
// be, as on a full disk, cursors end with the process (nil): that is no reason not to fire.
func CursorKey(dir string, log *slog.Logger) []byte {
	name := filepath.Join(dir, cursorKeyName)
	key, err := os.ReadFile(name)
	if err == nil && len(key) == httpapi.CursorKeySize {
		return key
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, httpapi.CursorKeySize)
		rand.Read(key)
		if err = writeWhole(name, key); err == nil {
			return key
		}
	}
	log.Warn("cannot store the cursor key: cursors of lists become invalid after a restart", "error", err)
	return nil
}

// writeWhole makes a file that only its owner may read, whole and durable or not at all.
func writeWhole(name string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*") // 0600
	if err != nil {
		return fmt.Errorf("cannot make %s: %w", name, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	return disk.SyncDir(filepath.Dir(name))
}
