package transfer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/cmd/xtimer/timer"
	api "xtimer/httpapi/client"
)

// importReport is a line an item, and a summary.
type importReport struct {
	out           *bufio.Writer
	paint         terminal.Painter
	quiet, dryRun bool
	count         map[string]int64
	records       int64
	first         string // what is wrong with the first that failed
}

func newImportReport(out io.Writer, quiet, dryRun bool) *importReport {
	return &importReport{
		out: bufio.NewWriterSize(out, 1<<16), paint: terminal.NewPainter(out), quiet: quiet, dryRun: dryRun, count: map[string]int64{},
	}
}

func (r *importReport) add(batch []*item) error {
	for _, i := range batch {
		switch {
		case i.isWaiting(): // the import ended before
			continue
		case i.Record != nil && i.result == api.Created:
			r.records++
			continue
		case i.LeftOut != nil && i.result == api.Created:
			continue
		}
		r.count[i.result]++
		bad := i.result == resultConflict || i.result == timer.ResultFailed
		if r.quiet && !bad {
			continue
		}
		s := i.at
		if i.Name != "" {
			s += ": " + i.App + "/" + i.Name
		}
		if i.why != "" {
			s += ": " + i.why
		}
		if bad && r.first == "" {
			r.first = s
		}
		fmt.Fprintf(r.out, "%s  %s\n", r.paint.Paint(importColours[i.result], fmt.Sprintf("%-9s", i.result)), terminal.Printable(s))
	}
	return r.out.Flush()
}

var importColours = map[string]string{
	api.Created: terminal.Green, api.Unchanged: terminal.Dim, resultSkipped: terminal.Dim, resultConflict: terminal.Yellow, timer.ResultFailed: terminal.Red,
}

// end writes the summary.
func (r *importReport) end() error {
	var b strings.Builder
	for n, result := range []string{api.Created, api.Unchanged, resultSkipped, resultConflict, timer.ResultFailed} {
		if n > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d %s", r.count[result], result)
	}
	if r.records > 0 {
		fmt.Fprintf(&b, "; %d records", r.records)
	}
	if r.dryRun {
		b.WriteString(" (nothing was changed)")
	}
	fmt.Fprintln(r.out, b.String())
	return r.out.Flush()
}

// verdict is the error of an import of which some lines failed.
func (r *importReport) verdict() error {
	all := r.records
	for _, n := range r.count {
		all += n
	}
	return exit.Partly(int(all), int(r.count[resultConflict]+r.count[timer.ResultFailed]), errors.New(r.first))
}
