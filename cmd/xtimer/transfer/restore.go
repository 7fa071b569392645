package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/wal"
	"xtimer/wal/disk"
)

// NewRestore is the command "restore".
func NewRestore() *cobra.Command {
	s := settings.Default()
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Create a data directory from a backup",
		Long: `restore copies a backup into a data directory that is empty or does not exist,
and checks the copy. The backup stays unchanged. It must contain only files and
folders, no symbolic links. At the end, restore explains what happens to the dues
between the backup and the next start.`,
		Example: `  xtimer restore /backup/20261120T170000.000Z --data-dir /var/lib/xtimer`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restore(cmd.Context(), cmd.OutOrStdout(), args[0], s.DataDir)
		},
	}
	cmd.Flags().StringVar(&s.DataDir, "data-dir", s.DataDir, "the data directory to create")
	return cmd
}

func restore(ctx context.Context, out io.Writer, backup, dataDir string) error {
	for _, part := range []string{scheduler.ColdFolder, scheduler.JournalFolder} {
		if i, err := os.Lstat(filepath.Join(backup, part)); err != nil || !i.IsDir() {
			return fmt.Errorf("%s is not a backup: it has no folder %s", backup, part)
		}
	}
	unlock, err := store.Lock(dataDir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := mustBeEmpty(dataDir); err != nil {
		return err
	}

	// The copy is made and checked beside its place, and moved there at the end.
	tmp := filepath.Join(dataDir, store.RestoringFolder)
	if err := copyBackup(ctx, backup, tmp); err != nil {
		return errors.Join(fmt.Errorf("cannot copy the backup: %w", err), os.RemoveAll(tmp))
	}
	var n engine.Counts
	err = withStores(ctx, tmp, func(_ *wal.Log, c *local.Store) (err error) {
		n, err = c.Counts(ctx)
		return err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("the backup cannot be used: %w", err), os.RemoveAll(tmp))
	}
	for _, part := range []string{scheduler.ColdFolder, scheduler.JournalFolder} {
		if err := os.Rename(filepath.Join(tmp, part), filepath.Join(dataDir, part)); err != nil {
			return fmt.Errorf("cannot put the copy into its place: %w", err)
		}
	}
	if err := errors.Join(disk.SyncDir(dataDir), os.RemoveAll(tmp), disk.SyncDir(dataDir)); err != nil {
		return fmt.Errorf("cannot put the copy into its place: %w", err)
	}

	fmt.Fprintf(out, "%s was restored to %s: %d timers enabled, %d disabled, %d finished.\n", backup, dataDir, n.Enabled, n.Disabled, n.Finished)
	fmt.Fprint(out, `
The next start finds all dues since the backup. A due that is more than 10 s late
is a misfire, and the policy of its timer decides (latest: one call; skip: none;
all: every due). A one-shot is called late unless it is older than its window.
Tasks that were called since the backup may be called again, with the same key.
Timers created since the backup are missing, and timers deleted since are back.
`)
	return nil
}

// mustBeEmpty refuses a data directory that holds anything but our lock.
func mustBeEmpty(dir string) error {
	es, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the data directory: %w", err)
	}
	for _, e := range es {
		if e.Name() != store.LockName {
			return fmt.Errorf("%s is not empty: restore into a new data directory, or move this directory away", dir)
		}
	}
	return nil
}

// copyBackup copies the folders of a backup, and the copy is on the disk when it
// returns. What is not a regular file or a folder is refused: a backup has nothing
// else, and a link would have us copy, or wait for, what its maker chose.
func copyBackup(ctx context.Context, from, to string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, part := range []string{scheduler.ColdFolder, scheduler.JournalFolder} {
		if err := copyTree(ctx, filepath.Join(from, part), filepath.Join(to, part)); err != nil {
			return err
		}
	}
	return disk.SyncDir(filepath.Dir(to))
}

func copyTree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if e.IsDir() {
			if err := os.Mkdir(target, 0o700); err != nil {
				return err
			}
			return disk.SyncDir(filepath.Dir(target))
		}
		return copyFile(path, target)
	})
}

// copyFile copies a regular file. It looks at the file that it has opened: what the
// name stands for may change until then. Opening does not wait for a named pipe.
func copyFile(from, to string) (err error) {
	r, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return fmt.Errorf("%s is a symbolic link: a backup must contain only files and folders", from)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if i, err := r.Stat(); err != nil || !i.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is not a regular file: a backup must contain only files and folders", from))
	}
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if _, err := io.Copy(w, r); err != nil {
		return err
	}
	return errors.Join(w.Sync(), disk.SyncDir(filepath.Dir(to)))
}
