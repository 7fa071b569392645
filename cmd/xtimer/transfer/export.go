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
	fs.StringVar(&h.store.DataDir, "data-dir", "", "use the data directory `DIR` of a stopped server, instead of a running server")
	fs.StringVar(&h.store.MySQLDSN, "mysql-dsn", "", "use the database `DSN` of a stopped server, instead of a running server: user:password@tcp(host:port)/database")
}

// isStore tells which it is; a server and a store at once is a mistake.
func (h *home) isStore(cmd *cobra.Command) (bool, error) {
	is := h.store.DataDir != "" || h.store.MySQLDSN != ""
	if is && h.Names() {
		return false, exit.Usage("--server and --context name a running server; --data-dir and --mysql-dsn name the data of a stopped server: give only one of them")
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
	strays, // unfinished tasks of timers that are deleted
	damaged int64 // unfinished tasks that cannot be read
}

// NewExport is the command "export".
func NewExport() *cobra.Command {
	var e export
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write timers as lines of JSON, for import",
		Long: `export writes timers to stdout, one line of JSON (NDJSON) for each timer: the
definition in the form that the API accepts, and the state of the timer. import
reads these lines on another server, or into the store of another server.

From a running server (--server), export writes the definitions, and whether each
timer is disabled. import makes new timers of them: the timers get new ids, and so
their tasks get new keys; they have no history; max_runs counts from 0; and an
"every" without start_at counts from the import. For a delay, export writes the
instant at which the delay ends.

From the store of a stopped server (--data-dir or --mysql-dsn), export writes more:
the id and the version of each timer, its unfinished tasks with their attempts, the
instant up to which all other tasks are finished, and with --history the records of
finished tasks and the minutes whose records are incomplete. export does not write
the Idempotency-Keys of creates, former versions of timers, or unfinished tasks of
deleted timers, which are no longer called.

Like a start of the server, such an export first stores the results in the journal,
and lets the misfire policy of each timer decide about the dues since the server
stopped. It makes no calls. Afterwards start either the old server or the new
server, not both: both would call future dues. For a server with MySQL, --data-dir
is needed too, because it contains the journal.

` + exit.Help,
		Example: `  xtimer export --app billing > billing.ndjson
  xtimer export --data-dir ./data --history | xtimer import --mysql-dsn "$DSN"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			isStore, err := e.isStore(cmd)
			if err != nil {
				return err
			}
			if e.history && (!isStore || e.filter != api.TimerFilter{App: e.filter.App}) {
				return exit.Usage("--history needs --data-dir or --mysql-dsn, and cannot be combined with filters other than --app")
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
	cmd.Flags().BoolVar(&e.history, "history", false, "with --data-dir or --mysql-dsn: also write the records of finished tasks")
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
