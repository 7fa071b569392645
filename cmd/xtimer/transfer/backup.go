package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/wal"
)

// NewBackup is the command "backup".
func NewBackup() *cobra.Command {
	s := settings.Default()
	var place remote.Place
	cmd := &cobra.Command{
		Use:   "backup [DIR]",
		Short: "Write a consistent copy of all timers, history and unfinished tasks",
		Long: `Without DIR, backup asks a running server for a copy. The server writes the copy
into a new folder in the folder of its setting --backup-dir. This requires an admin
token for all apps.

With DIR, backup copies the data directory of a stopped server (--data-dir) to DIR,
which must not exist yet.`,
		Example: `  xtimer backup
  xtimer backup --data-dir /var/lib/xtimer /backup/xtimer-monday`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			switch {
			case place.Names() && len(args) > 0:
				return exit.Usage("the server writes the backup under its own --backup-dir: omit DIR")
			case cmd.Flags().Changed("data-dir") && len(args) == 0:
				return exit.Usage("required: DIR, the folder for the copy")
			case len(args) == 0:
				c, err := place.DialPlain()
				if err != nil {
					return err
				}
				return place.Explain(backupOnline(cmd.Context(), out, c))
			}
			return backupOffline(cmd.Context(), out, s.DataDir, args[0])
		},
	}
	place.Flags(cmd, cmd.Flags())
	cmd.Flags().StringVar(&s.DataDir, "data-dir", s.DataDir, "copy this data directory")
	return cmd
}

func backupOnline(ctx context.Context, out io.Writer, c *remote.Plain) error {
	var made struct{ Backup string }
	if err := c.Do(ctx, http.MethodPost, "/v1/admin/backup", nil, &made); err != nil {
		return err
	}
	fmt.Fprintf(out, "The server wrote %s under its --backup-dir.\n", made.Backup)
	return nil
}

func backupOffline(ctx context.Context, out io.Writer, dataDir, dir string) error {
	if _, err := os.Stat(filepath.Join(dataDir, scheduler.ColdFolder)); err != nil {
		return fmt.Errorf("%s is not a data directory: %w", dataDir, err)
	}
	unlock, err := store.Lock(dataDir)
	if errors.Is(err, store.ErrLocked) {
		return fmt.Errorf("%w: ask the server to write the copy with --server http://127.0.0.1:8080, or the address on which it listens", err)
	}
	if err != nil {
		return err
	}
	defer unlock()

	start := time.Now()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the backup: %w", err)
	}
	err = withStores(ctx, dataDir, func(j *wal.Log, c *local.Store) error {
		// The journal goes first: what is settled from it meanwhile is then in
		// both, which does no harm, and not in neither.
		return errors.Join(j.Backup(ctx, filepath.Join(dir, scheduler.JournalFolder)), c.Backup(ctx, filepath.Join(dir, scheduler.ColdFolder)))
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	fmt.Fprintf(out, "%s was copied to %s in %v.\n", dataDir, dir, time.Since(start).Round(time.Millisecond))
	return nil
}

// withStores opens what a data directory holds, and checks it by that, without
// a server around it.
func withStores(ctx context.Context, dataDir string, do func(*wal.Log, *local.Store) error) (err error) {
	log := slog.New(slog.DiscardHandler)
	j := wal.New(wal.Config{Dir: filepath.Join(dataDir, scheduler.JournalFolder), Logger: log})
	if err := j.Open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	c := local.New(local.Config{Dir: filepath.Join(dataDir, scheduler.ColdFolder), Log: log})
	if err := c.Open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return do(j, c)
}
