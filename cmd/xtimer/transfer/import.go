package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/span"
	api "xtimer/httpapi/client"
)

// item is a timer to import, or a record, and what became of it.
type item struct {
	at string // where it stands: "line 7"
	line

	result string // Created, Unchanged …; "" until it is known
	why    string // of a result that needs a reason
}

// What becomes of an item, besides Created and Unchanged.
const (
	resultSkipped  = "skipped"  // there is nothing to do for it
	resultConflict = "conflict" // another timer is in its place
)

func (i *item) set(result, format string, args ...any) {
	i.result, i.why = result, fmt.Sprintf(format, args...)
}

func (i *item) fail(err error) { i.set(remote.ResultFailed, "%v", err) }

// isWaiting tells whether nothing is known of it yet.
func (i *item) isWaiting() bool { return i.result == "" }

// importTarget takes items. It makes those of a batch that wait, or with dryRun says
// what would become of them; an error is one of the whole, and ends the import.
type importTarget interface {
	take(ctx context.Context, batch []*item) error
}

// reader gives the items of an import in order. What cannot be read is an item
// with a result; an error ends the import.
type reader func(ctx context.Context, yield func(*item) error) error

type importing struct {
	home
	crontab       crontabFlags
	originalDSN   string
	zone          string
	dryRun, quiet bool
}

// NewImport is the command "import".
func NewImport() *cobra.Command {
	var im importing
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Take over timers: of an export, of the original XTimer, of a crontab",
		Long: `import makes the timers of FILE, or of stdin, in a server (--server) or in a store
that no server uses (--data-dir or --mysql-dsn). Each line is a timer as the API
takes it, with what export adds to it. Every timer gets a line of report:

  created     it was not there
  unchanged   it is there: a second import changes nothing
  skipped     there is nothing to call any more, or nothing to be had of it
  conflict    another timer has its name, its id, or another definition
  failed      the line cannot be read, or was refused

Into a server, definitions are made, and disabled again what was disabled. The
disabling is a second request: a due in the moment between would be called. What
is finished is skipped. Into a store, a timer of a store's export is what it was:
id, keys, what is finished and what is not. What came due while it was in no
store is judged by its misfire policy, as after a stop. Without the records of
"export --history", verify calls what was finished before unproven. Start the
server on the store when the import is complete; if it was cut short, repeat it
first.

With --from-xtimer-mysql the timers come from the table timer of an original
XTimer: cron of 7 fields, the URL, headers and body; years become start_at and
end_at, years with holes several timers. Deleted ones, and those whose years are
over, are skipped. Timeout and retries are xtimer's defaults; the original did
not retry. Its times were in the zone of its process: --time-zone says which.

With --from-crontab they come from a crontab. A URL takes the place of the
command: --command-url is a template of it, with .Command, .User, .Schedule and
.Stdin (what follows a %%, which is also sent as the body); or --map names a file
of lines "PREFIX URL", where the longest prefix of the command counts. Lines of
environment are passed over, but for CRON_TZ. Names come from the commands.

` + exit.Help,
		Example: `  xtimer import --dry-run billing.ndjson
  xtimer export --data-dir ./data --history | xtimer import -q --mysql-dsn "$DSN"
  xtimer import --dry-run --from-xtimer-mysql "$DSN" --time-zone Asia/Shanghai
  xtimer import --from-crontab /etc/crontab --system --time-zone Europe/Berlin \
      --command-url 'http://127.0.0.1:9000/run?cmd={{urlquery .Command}}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			read, err := im.reader(cmd, args)
			if err != nil {
				return err
			}
			isStore, err := im.isStore(cmd)
			if err != nil {
				return err
			}
			if !isStore {
				return im.run(cmd, read, &serverTarget{Client: im.Client, dryRun: im.dryRun, earlier: newEarlier()})
			}
			return im.runStore(cmd, read)
		},
	}
	im.flags(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&im.dryRun, "dry-run", false, "only say what would be done")
	im.store.HistoryRetention = settings.Default().HistoryRetention
	fs.Var((*span.Value)(&im.store.HistoryRetention), "history-retention", "of a store: for how long its server keeps history")
	fs.BoolVarP(&im.quiet, "quiet", "q", false, "report only conflicts and failures, and the summary")
	fs.StringVar(&im.originalDSN, "from-xtimer-mysql", "", "take over the timers of the original XTimer in this database: `user:password@tcp(host:port)/database`")
	fs.StringVar(&im.crontab.file, "from-crontab", "", "take over a crontab `FILE`; -: stdin")
	fs.StringVar(&im.zone, "time-zone", "", "the IANA `ZONE` whose clock the original XTimer, or the cron daemon, goes by")
	fs.StringVar(&im.crontab.url, "command-url", "", "of a crontab: the `TEMPLATE` of the URL to call for a command")
	fs.StringVar(&im.crontab.urlMap, "map", "", "of a crontab: a `FILE` of lines PREFIX URL; the longest prefix of the command counts")
	fs.BoolVar(&im.crontab.system, "system", false, "of a crontab: its sixth column is the user, as in /etc/crontab")
	fs.StringVar(&im.crontab.app, "app", "cron", "of a crontab: the `APP` of its timers")
	return cmd
}

// reader is where the items come from.
func (im *importing) reader(cmd *cobra.Command, args []string) (reader, error) {
	foreign := im.originalDSN != "" || im.crontab.file != ""
	switch {
	case im.originalDSN != "" && im.crontab.file != "", foreign && len(args) > 0:
		return nil, exit.Usage("give one of FILE, --from-xtimer-mysql and --from-crontab")
	case foreign && im.zone == "":
		return nil, exit.Usage("--time-zone: give the zone whose clock the times are of, like Europe/Berlin or UTC")
	case im.originalDSN != "":
		return originalReader(im.originalDSN, im.zone)
	case im.crontab.file != "":
		return im.crontab.reader(cmd.InOrStdin(), im.zone)
	}
	name := "-"
	if len(args) > 0 {
		name = args[0]
	}
	return fileReader(name, cmd.InOrStdin()), nil
}

// runStore imports into a store that no server uses.
func (im *importing) runStore(cmd *cobra.Command, read reader) (err error) {
	to, end, err := openTarget(cmd.Context(), &im.store, im.dryRun)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	// Of an import that was cut short, too: a second one creates the rest only.
	return errors.Join(im.run(cmd, read, to), to.leaveOut(context.WithoutCancel(cmd.Context())))
}

// importBatch is how many items are made at a time; the API takes no more.
const importBatch = 1000

// run reads and makes, both at once, and reports.
func (im *importing) run(cmd *cobra.Command, read reader, to importTarget) error {
	r := newImportReport(cmd.OutOrStdout(), im.quiet, im.dryRun)
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	batches := make(chan []*item, 2)
	var broken error
	go func() {
		defer close(batches)
		var batch []*item
		send := func() error {
			if len(batch) == 0 {
				return nil
			}
			select {
			case batches <- batch:
				batch = nil
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		broken = read(ctx, func(i *item) error {
			// A record may be of any timer before it, and waits for them.
			if len(batch) == importBatch || len(batch) > 0 && (batch[0].Record == nil) != (i.Record == nil) {
				if err := send(); err != nil {
					return err
				}
			}
			batch = append(batch, i)
			return nil
		})
		broken = errors.Join(broken, send())
	}()
	var failure error
	for batch := range batches {
		if failure != nil {
			continue
		}
		failure = to.take(ctx, batch)
		if err := r.add(batch); failure == nil {
			failure = err
		}
		if failure != nil {
			cancel()
		}
	}
	if failure == nil {
		failure = broken
	}
	if err := r.end(); failure == nil {
		failure = err
	}
	if failure != nil {
		return fmt.Errorf("the import is not complete, and can be repeated: %w", failure)
	}
	return r.verdict()
}

// asAt is a definition with the instant at which its delay ends: counted anew it
// would be another one.
func (i *item) asAt() api.Definition {
	d := i.Definition
	if d.Schedule.Delay != nil && i.Stored != nil && i.Stored.At != 0 {
		d.Schedule.Delay, d.Schedule.At = nil, timeOf(i.Stored.At)
	}
	return d
}

// skipFinished skips what cannot be made as new: it would be called again.
func (i *item) skipFinished() bool {
	if i.Stored != nil && (i.Stored.Finished || i.Stored.Status == api.Finished) {
		i.set(resultSkipped, "it is finished")
		return true
	}
	return false
}
