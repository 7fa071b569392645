package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked: the data directory is in use.
var ErrLocked = errors.New("another xtimer uses this data directory")

// LockName is the file that is locked.
const LockName = "lock"

// Lock makes the data directory where it is missing, takes it for this
// process, and makes it private. The lock ends with the process, whatever ends it,
// and the file stays.
func Lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, LockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the data directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		f.Close()
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", dir, ErrLocked)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data directory %s: %w", dir, err)
	}
	keepPrivate(dir)
	return func() { f.Close() }, nil
}

// RestoringFolder is in a data directory while a restore fills it, and stays there
// when that is cut short: no server starts on half of a backup.
const RestoringFolder = "restoring"
