package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/store"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine/scheduler"
	"xtimer/engine/verify"
	api "xtimer/httpapi/client"
)

const verifyHelp = `verify proves that history is complete and correct. For the time from --from to
--to, it computes all dues from the schedules of all versions of the timers, and
compares the dues with the records in history. It prints a line for each of these
findings:

  gap       a due that has passed has no record with a final status, and its task
            is not in progress
  repeat    a due has two final results, or was called again after a success
  early     an attempt began before its due
  late      a first attempt began later than --late after its due, not counted how long a pause
            or the limit of a flow key held it
  stray     a record has a due that is in no schedule, or a call began after its
            timer was deleted, disabled or given another schedule
  miscount  a record of several dues has another number of dues than the schedule
  damaged   a row of the store cannot be read, or belongs to another task
  unproven  a due has no record, but history is known to be incomplete, because of
            --history-sample, a disk that was almost full, history above 20 GiB in
            a data directory, or an import without history

The exit status is 1 if there is a finding other than unproven, or if the app of
--app has no timers. --from and --to are instants such as 2026-11-20T17:00:00Z,
Unix ms, or how long ago: 24h.

By default, verify asks a running server, which does the work slowly enough that
timers still fire on time. This requires an admin token (XTIMER_TOKEN). For a
stopped server, verify reads the data directory (--data-dir) or the database
(--mysql-dsn). It then does not read the journal, so --late reports only attempts
that are in history.`

func newVerify() *cobra.Command {
	s := settings.Default()
	var from, to, app string
	var place remote.Place
	var late time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify --from T [--to T]",
		Short: "Compare the dues of all schedules with the recorded tasks",
		Long:  verifyHelp,
		Example: `  xtimer verify --from 24h
  xtimer verify --from 2026-11-20T00:00:00Z --to 2026-11-21T00:00:00Z --app billing --late 1s
  xtimer verify --from 7d --data-dir /var/lib/xtimer`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == "" {
				return exit.Usage("required: --from")
			}
			now := time.Now()
			v := verify.Request{App: app, Late: late}
			var err error
			if v.From, err = span.Moment(from, now); err != nil {
				return exit.Usage("--from: %w", err)
			}
			if v.To, err = span.Moment(to, now); err != nil {
				return exit.Usage("--to: %w", err)
			}
			if late < 0 {
				return exit.Usage("--late must not be negative")
			}
			p := &proof{out: cmd.OutOrStdout(), asJSON: asJSON, app: app}
			if cmd.Flags().Changed("data-dir") || s.MySQLDSN != "" {
				err = p.offline(cmd.Context(), s, v)
			} else {
				err = place.Explain(p.online(cmd, &place, v))
			}
			if err != nil {
				return err
			}
			return p.conclude()
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&from, "from", "", "verify dues at this `TIME` or later")
	fs.StringVar(&to, "to", "0s", "verify dues before this `TIME` (default: now)")
	fs.Lookup("to").DefValue = ""
	fs.StringVarP(&app, "app", "n", "", "verify only this `APP`")
	fs.DurationVar(&late, "late", 0, "also report first attempts that were later than this; on a running server, also\ndues that passed longer ago than this plus 10s and have no record yet")
	fs.BoolVar(&asJSON, "json", false, "print each finding and the verdict as a line of JSON")
	place.Flags(cmd, fs)
	fs.StringVar(&s.DataDir, "data-dir", s.DataDir, "read this data directory of a stopped server")
	fs.Var((*settings.Secret)(&s.MySQLDSN), "mysql-dsn", "read this database: `user:password@tcp(host:port)/database`")
	fs.IntVar(&s.HistorySample, "history-sample", s.HistorySample, "the --history-sample `N` of the server: if N is over 1, a due without a record is unproven, not a gap")
	fs.Var((*span.Value)(&s.HistoryRetention), "history-retention", "the --history-retention of the server")
	return cmd
}

// proof prints what a verification finds.
type proof struct {
	out     io.Writer
	asJSON  bool
	app     string // that was asked for
	started time.Time
	verdict *api.Verdict
	failed  error // of a write to out
}

// online lets a running server verify itself.
func (p *proof) online(cmd *cobra.Command, place *remote.Place, v verify.Request) error {
	r, err := place.Dial(cmd)
	if err != nil {
		return err
	}
	p.started = time.Now()
	verdict, err := r.Verify(cmd.Context(), api.Verification{App: v.App, From: moment(v.From), To: moment(v.To), Late: v.Late}, p.tell)
	if err = errors.Join(err, p.failed); err != nil {
		return err
	}
	return p.end(verdict)
}

// offline verifies a store: a data directory that no server uses, or a database.
func (p *proof) offline(ctx context.Context, s *settings.Settings, v verify.Request) error {
	if s.MySQLDSN == "" {
		if _, err := os.Stat(filepath.Join(s.DataDir, scheduler.ColdFolder)); err != nil {
			return fmt.Errorf("%s is not a data directory: %w", s.DataDir, err)
		}
		unlock, err := store.Lock(s.DataDir)
		if errors.Is(err, store.ErrLocked) {
			return fmt.Errorf("%w: ask the server with --server http://127.0.0.1:8080, or the address on which it listens", err)
		}
		if err != nil {
			return err
		}
		defer unlock()
	}
	cold := store.Cold(s)
	if err := cold.Open(ctx); err != nil {
		return err
	}
	p.started = time.Now()
	v.Sampled = s.HistorySample > 1
	verdict, err := verify.Offline(ctx, cold, v, time.Now().UnixMilli(), s.HistoryRetention, func(f *verify.Finding) error {
		l := api.Finding{
			Kind: f.Kind.String(), TimerID: f.Timer.String(), App: f.App, Name: f.Name, Due: moment(f.Due), Count: f.Count, Detail: f.Detail,
		}
		if f.Count > 1 {
			l.DueLast = moment(f.DueLast)
		}
		p.tell(&l)
		return p.failed
	})
	if err = errors.Join(err, cold.Close()); err != nil {
		return err
	}
	l := api.Verdict{
		Verdict: "proven", From: moment(verdict.From), To: moment(verdict.To), Timers: verdict.Timers, Dues: verdict.Dues,
		Records: verdict.Records, Open: verdict.Open, Unkept: verdict.Unkept, Found: map[string]int64{},
	}
	if verdict.Failed() {
		l.Verdict = "failed"
	}
	for k, n := range verdict.Found {
		if n > 0 {
			l.Found[verify.FindingKind(k).String()] = n
		}
	}
	return p.end(&l)
}

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// tell prints a finding.
func (p *proof) tell(f *api.Finding) {
	if p.failed != nil {
		return
	}
	if p.asJSON {
		p.failed = json.NewEncoder(p.out).Encode(f)
		return
	}
	const layout = "2006-01-02T15:04:05.000Z"
	when := f.Due.UTC().Format(layout)
	if !f.DueLast.IsZero() {
		when += " … " + f.DueLast.UTC().Format(layout) + fmt.Sprintf(" (%d dues)", f.Count)
	}
	kind := terminal.NewPainter(p.out).Paint(terminal.Red, fmt.Sprintf("%-8s", f.Kind))
	_, p.failed = fmt.Fprintf(p.out, "%s  %s  timer %s  %s/%s: %s\n", kind, when, f.TimerID, f.App, f.Name, f.Detail)
}

// end takes the verdict, the last line of JSON.
func (p *proof) end(v *api.Verdict) error {
	p.verdict = v
	if !p.asJSON {
		return nil
	}
	return json.NewEncoder(p.out).Encode(v)
}

// conclude prints the verdict and turns it into the exit status. Nothing to prove is
// no proof, where timers were asked for.
func (p *proof) conclude() error {
	v := p.verdict
	if v.Timers == 0 && p.app != "" {
		return fmt.Errorf("nothing to verify: the app %q has no timers", p.app)
	}
	if !p.asJSON {
		word := terminal.NewPainter(p.out).Paint(terminal.Green, "Proven")
		if v.Verdict != "proven" {
			word = terminal.NewPainter(p.out).Paint(terminal.Red, "Not proven")
		}
		fmt.Fprintf(p.out, "%s: %d dues of %d timers from %s to %s, by %d records; %d tasks unfinished. (%v)\n", word, v.Dues, v.Timers,
			v.From.UTC().Format(time.RFC3339), v.To.UTC().Format(time.RFC3339), v.Records, v.Open, time.Since(p.started).Round(time.Millisecond))
		for _, kind := range []string{"gap", "repeat", "early", "late", "stray", "miscount", "unproven", "damaged"} {
			if n := v.Found[kind]; n > 0 {
				fmt.Fprintf(p.out, "  %-8s %d\n", kind, n)
			}
		}
		if v.Unkept > 0 {
			fmt.Fprintf(p.out, "  %d records belong to timers whose definition is no longer stored; verify cannot check them.\n", v.Unkept)
		}
	}
	if v.Verdict != "proven" {
		return exit.ErrSaid
	}
	return nil
}
