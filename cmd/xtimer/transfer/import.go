package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/timer"
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

func (i *item) fail(err error) { i.set(timer.ResultFailed, "%v", err) }

// isHistory reports whether it is no timer, but of what happened to timers.
func (i *item) isHistory() bool { return i.Record != nil || i.LeftOut != nil }

// isWaiting reports whether nothing is known of it yet.
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
		Short: "Import timers from an export, from the original XTimer or from a crontab",
		Long: `import creates the timers of FILE, or of stdin, on a running server (--server) or
in the store of a stopped server (--data-dir or --mysql-dsn). Each line of FILE is
a timer in the form that the API accepts, with the fields that export adds. For
each timer, import prints a line with one of these results:

  created     the timer did not exist
  unchanged   the timer exists with the same definition
  skipped     there is nothing to import; for example, the timer is finished or deleted
  conflict    another timer has the name or the id, or the definition differs
  failed      the line cannot be read, or the timer was refused

A second import of the same file changes nothing. If an import was interrupted,
repeat it.

On a running server, import creates new timers from the definitions. It skips
finished timers. A timer that was disabled is created and then disabled, if need be by
a repeated import; if a due falls between these two requests, it is called.

In a store, a timer that was exported from a store keeps its id, the keys of its
tasks, and its finished and unfinished tasks. Start the server on the store after
the import is complete. As after a stop, the misfire policy of the timer then
decides about the dues that passed in the meantime. Without the records of "export
--history", verify reports earlier tasks as unproven.

With --from-xtimer-mysql, import reads the timers of an original XTimer from the
table timer: the cron expression of 7 fields, the URL, the headers and the body.
Years become start_at and end_at; years with gaps become several timers. import
skips deleted timers, and timers whose years have passed. The original had no
retries; the imported timers have the default timeout and retries of xtimer. The
original used the time zone of its process; set this zone with --time-zone.

With --from-crontab, import reads a crontab. A timer calls a URL instead of running
the command. --command-url is a template of this URL, with .Command, .User,
.Schedule and .Stdin (the text after a %, which is also sent as the body). Instead,
--map can name a file with lines PREFIX URL: a command gets the URL of the longest
prefix that matches. import ignores environment lines other than CRON_TZ, and makes
the names of timers from the commands.

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
				return im.Explain(im.run(cmd, read, &serverTarget{home: &im.home, dryRun: im.dryRun, earlier: newEarlier()}))
			}
			return im.runStore(cmd, read)
		},
	}
	im.flags(cmd)
	fs := cmd.Flags()
	fs.BoolVar(&im.dryRun, "dry-run", false, "only report the results that the import would have")
	im.store.HistoryRetention = settings.Default().HistoryRetention
	fs.Var((*span.Value)(&im.store.HistoryRetention), "history-retention", "with --data-dir or --mysql-dsn: how long the server keeps history")
	fs.BoolVarP(&im.quiet, "quiet", "q", false, "report only conflicts and failures, and the summary")
	fs.StringVar(&im.originalDSN, "from-xtimer-mysql", "", "import the timers of the original XTimer from this database: `user:password@tcp(host:port)/database`")
	fs.StringVar(&im.crontab.file, "from-crontab", "", "import a crontab `FILE`; - means stdin")
	fs.StringVar(&im.zone, "time-zone", "", "the IANA time `ZONE` of the original XTimer or of the cron daemon")
	fs.StringVar(&im.crontab.url, "command-url", "", "with --from-crontab: the `TEMPLATE` of the URL to call for a command")
	fs.StringVar(&im.crontab.urlMap, "map", "", "with --from-crontab: a `FILE` of lines PREFIX URL; the longest prefix of the command wins")
	fs.BoolVar(&im.crontab.system, "system", false, "with --from-crontab: the sixth column is the user, as in /etc/crontab")
	fs.StringVarP(&im.crontab.app, "app", "n", "cron", "with --from-crontab: the `APP` of the timers")
	return cmd
}

// reader is where the items come from.
func (im *importing) reader(cmd *cobra.Command, args []string) (reader, error) {
	foreign := im.originalDSN != "" || im.crontab.file != ""
	for _, f := range []struct {
		of    string
		here  bool
		names []string
	}{
		{"--from-crontab", im.crontab.file != "", []string{"app", "command-url", "map", "system"}},
		{"--from-xtimer-mysql or --from-crontab", foreign, []string{"time-zone"}},
	} {
		for _, name := range f.names {
			if !f.here && cmd.Flags().Changed(name) {
				return nil, exit.Usage("--%s applies only to an import with %s", name, f.of)
			}
		}
	}
	switch {
	case im.originalDSN != "" && im.crontab.file != "", foreign && len(args) > 0:
		return nil, exit.Usage("give one of FILE, --from-xtimer-mysql and --from-crontab")
	case foreign && im.zone == "":
		return nil, exit.Usage("--time-zone: give the time zone of the schedules, such as Europe/Berlin or UTC")
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
			if len(batch) == importBatch || len(batch) > 0 && batch[0].isHistory() != i.isHistory() {
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
		return fmt.Errorf("the import is incomplete and can be repeated: %w", failure)
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
		i.set(resultSkipped, "the timer is finished")
		return true
	}
	return false
}
