package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine"
	"xtimer/engine/plan"
)

func newPreview() *cobra.Command {
	var zone string
	var n int
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "preview CRON",
		Short: "Explain a cron expression, and list its next dues",
		Long: `preview explains in words what a cron expression means, lists its next dues (the
instants at which a timer would be called), and warns of surprising behaviour. It
needs no server. An expression has five fields, or six fields with seconds first,
or is a descriptor such as @daily.`,
		Example: `  xtimer preview "0 9 * * MON-FRI" --time-zone Asia/Shanghai
  xtimer preview "30 2 * * *" --time-zone America/New_York --n 3
  xtimer preview "*/10 * * * * *" -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := engine.Schedule{Cron: args[0], TimeZone: zone}
			return preview(cmd.OutOrStdout(), output, s, n, time.Now())
		},
	}
	cmd.Flags().StringVar(&zone, "time-zone", "", "the IANA time zone, such as Asia/Shanghai (default UTC)")
	cmd.Flags().IntVar(&n, "n", 10, "show this `NUMBER` of dues")
	remote.AddOutput(cmd, &output)
	return cmd
}

// previewed is what JSON and YAML show of a schedule, as the API does.
type previewed struct {
	Sentence string           `json:"sentence"`
	Dues     []string         `json:"dues"`
	Warnings []previewWarning `json:"warnings"`
}

type previewWarning struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func preview(out io.Writer, output terminal.Output, s engine.Schedule, n int, now time.Time) error {
	v, err := plan.PreviewSchedule(s, n, now.UnixMilli())
	if err != nil {
		return inArguments(err)
	}
	value := previewed{Sentence: v.Sentence, Dues: []string{}, Warnings: []previewWarning{}} // shown as [], not as null
	for _, due := range v.Dues {
		value.Dues = append(value.Dues, remote.Instant(time.UnixMilli(due)))
	}
	for _, w := range v.Warnings {
		value.Warnings = append(value.Warnings, previewWarning{w.Code, w.Detail})
	}
	return output.Show(out, terminal.View{Value: value, Names: value.Dues, Table: func(out io.Writer, _ bool) error {
		return sheetPreview(out, s.TimeZone, &v, now)
	}})
}

// inArguments names the arguments in an error about the fields that they set.
func inArguments(err error) error {
	var f *engine.Fault
	if !errors.As(err, &f) || len(f.Fields) == 0 {
		return err
	}
	first := f.Fields[0]
	name := map[string]string{"schedule.cron": "CRON", "schedule.time_zone": "--time-zone", "n": "--n"}[first.Field]
	return exit.Usage("%s: %s", cmp.Or(name, first.Field), first.Detail)
}

// sheetPreview shows a schedule for people to read.
func sheetPreview(out io.Writer, zone string, v *plan.Preview, now time.Time) error {
	loc, err := time.LoadLocation(zone) // "" is UTC
	if err != nil {
		return fmt.Errorf("cannot load the time zone: %w", err)
	}
	p := terminal.NewPainter(out)
	fmt.Fprintf(out, "%s\n\n", p.Paint(terminal.Bold, v.Sentence))
	for i, due := range v.Dues {
		t := time.UnixMilli(due)
		fmt.Fprintf(out, "%4d  %s  %s  %s\n", i+1, t.In(loc).Format("Mon 2006-01-02 15:04:05 -0700"),
			p.Paint(terminal.Dim, t.UTC().Format("2006-01-02T15:04:05Z")), span.Away(t.Sub(now)))
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(out, "\n%s %s\n", p.Paint(terminal.Yellow, w.Code+":"), w.Detail)
	}
	return nil
}
