package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The folders of a backup, and of a data directory.
const (
	JournalFolder = "journal"
	ColdFolder    = "cold"
)

// Backup writes a consistent copy of all that is durable to a new folder: the
// journal first, then the cold store. So what was settled between the two is in
// both, which a start takes in its stride; the other way round it would be in
// neither. A folder that is not whole does not stay.
func (e *Scheduler) Backup(ctx context.Context, dir string) error {
	if err := e.process.Refusal(); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the backup's folder: %w", err)
	}
	err := e.journal.Backup(ctx, filepath.Join(dir, JournalFolder))
	if err != nil {
		err = fmt.Errorf("cannot back up the journal: %w", err)
	} else if err = e.cfg.Cold.Backup(ctx, filepath.Join(dir, ColdFolder)); err != nil {
		err = fmt.Errorf("cannot back up the cold tier: %w", err)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}
