package transfer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/timer"
	api "xtimer/httpapi/client"
)

// home of what is exported, or imported into: a server, or a store that none
// serves.
type home struct {
	remote.Place
	*api.Client // of a server
	store       settings.Settings
}

// flags adds those that say where.
func (h *home) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	h.Flags(cmd, fs)
	fs.StringVar(&h.store.DataDir, "data-dir", "", "instead of a server, use the store in `DIR`, which no server may be using")
	fs.StringVar(&h.store.MySQLDSN, "mysql-dsn", "", "instead of a server, use the database `user:password@tcp(host:port)/database`, which no server may be using")
}

// isStore tells which it is; a server and a store at once is a mistake.
func (h *home) isStore(cmd *cobra.Command) (bool, error) {
	is := h.store.DataDir != "" || h.store.MySQLDSN != ""
	if is && h.Names() {
		return false, exit.Usage("--server and --context name a running server; --data-dir and --mysql-dsn name a store that no server uses: give only one")
	}
	if !is {
		var err error
		h.Client, err = h.Dial(cmd)
		return false, err
	}
	h.store.HistorySample = 1
	return true, nil
}

type export struct {
	home
	filter  api.TimerFilter
	history bool
	out     *bufio.Writer
	lines   *json.Encoder
	timers, records, owed,
	strays int64 // unfinished tasks of timers that are deleted
}

// NewExport is the command "export".
func NewExport() *cobra.Command {
	var e export
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write timers as NDJSON, to import them elsewhere",
		Long: `export writes timers to stdout, one line of JSON for each timer, in the form that
the API accepts and with further state. import reads this form into a server or
into a store of either kind.

From a server (--server), export writes definitions, and which are disabled. They
become new timers elsewhere: ids, keys and history start anew, max_runs counts
anew, and an "every" without start_at counts from the import. A delay is written
with the instant at which it ends.

From a store that no server uses (--data-dir, or --mysql-dsn), export writes ids
and with them the keys of tasks, versions, the instant up to which tasks are
finished, unfinished tasks with their attempts, and with --history the records.
export does not write Idempotency-Keys of creates, former versions of timers, or
unfinished tasks of deleted timers, which are no longer called.

export first brings the store to the present, as a start of the server does: it
settles the journal into the store, and the misfire policy of each timer decides
about dues since the server stopped. Nothing is called. So export when you would
start the server, and afterwards start only the old server or the new one: two
servers would both call future dues. For a server on MySQL, --data-dir is needed
too, because it contains the journal.

` + exit.Help,
		Example: `  xtimer export --app billing > billing.ndjson
  xtimer export --data-dir ./data --history | xtimer import --mysql-dsn "$DSN"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			isStore, err := e.isStore(cmd)
			if err != nil {
				return err
			}
			if e.history && (!isStore || e.filter.NamePrefix != "" || e.filter.Status != "" || e.filter.Label != "") {
				return exit.Usage("--history needs a store, and cannot be combined with filters other than --app")
			}
			e.out = bufio.NewWriterSize(cmd.OutOrStdout(), 1<<16)
			e.lines = json.NewEncoder(e.out)
			e.lines.SetEscapeHTML(false)
			if isStore {
				err = e.fromStore(cmd.Context())
			} else {
				err = e.Explain(e.fromServer(cmd.Context()))
			}
			if err := e.out.Flush(); err != nil {
				return fmt.Errorf("cannot write the export: %w", err)
			}
			if err != nil && e.timers+e.records > 0 {
				return fmt.Errorf("the export is incomplete, %d timers are written: %w", e.timers, err)
			}
			if err != nil {
				return err
			}
			return e.tell(cmd.ErrOrStderr(), isStore)
		},
	}
	e.flags(cmd)
	timer.Filter(cmd, &e.filter)
	cmd.Flags().StringVarP(&e.filter.App, "app", "n", "", "only timers of this `APP`")
	cmd.Flags().BoolVar(&e.history, "history", false, "with a store: also write the records of tasks")
	return cmd
}

func (e *export) tell(out io.Writer, isStore bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d timers", e.timers)
	if isStore {
		fmt.Fprintf(&b, ", %d unfinished tasks or ranges of them, %d records", e.owed, e.records)
	}
	if e.strays > 0 {
		fmt.Fprintf(&b, "; not exported: %d unfinished tasks of deleted timers", e.strays)
	}
	_, err := fmt.Fprintln(out, b.String())
	return err
}

// fromServer writes the timers of a server.
func (e *export) fromServer(ctx context.Context) error {
	for t, err := range e.Timers(ctx, e.filter) {
		if err != nil {
			return err
		}
		l := line{Definition: t.Definition, Stored: &stored{
			ID: t.ID, Version: uint32(t.Version), Status: t.Status, Reason: t.Reason, DisabledUntil: msOf(t.DisabledUntil),
			CreatedAt: msOf(t.CreatedAt), UpdatedAt: msOf(t.UpdatedAt), UpdatedBy: t.UpdatedBy, Finished: t.Status == api.Finished,
		}}
		if t.Schedule.Delay != nil {
			l.Stored.At = msOf(t.NextDue)
			if t.NextDue.IsZero() && t.Status == api.Enabled { // its call is under way
				l.Stored.At = msOf(t.UpdatedAt.Add(time.Duration(*t.Schedule.Delay)))
			}
		}
		if err := e.write(&l); err != nil {
			return err
		}
	}
	return nil
}

func (e *export) write(l *line) error {
	e.timers++
	e.owed += int64(len(l.Owed))
	return e.lines.Encode(l)
}
