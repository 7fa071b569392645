package timer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// applied is what becomes, or became, of one timer.
type applied struct {
	App     string              `json:"app"`
	Name    string              `json:"name"`
	Result  string              `json:"result"` // created, updated, unchanged, deleted, failed
	Changes []definition.Change `json:"changes,omitempty"`
	Error   string              `json:"error,omitempty"`
	// Warnings are of the server, in a dry run.
	Warnings []api.Warning `json:"warnings,omitempty"`

	source  definition.Source
	id      string // of what is to be deleted
	version int    // that it has
	cause   error  // of a failure
}

const (
	resultDeleted = "deleted"
	ResultFailed  = "failed"
)

// fail notes why a timer failed; err is an explained error.
func (p *applied) fail(err error) {
	p.Result, p.Error, p.cause = ResultFailed, remote.OneLine(err), err
	if p.source.At.Node != nil {
		p.Error = p.source.At.Line() + ": " + p.Error
	}
}

// only are those with that result.
func only(all []*applied, result string) (some []*applied) {
	for _, p := range all {
		if p.Result == result {
			some = append(some, p)
		}
	}
	return some
}

// report says what changed, or would, and how much did not.
func (a *apply) report(all []*applied) error {
	count := map[string]int{}
	for _, p := range all {
		count[p.Result]++
	}
	var names []string
	for _, p := range all {
		if p.Result != api.Unchanged && p.Result != ResultFailed {
			names = append(names, p.App+"/"+p.Name)
		}
	}
	err := a.Output.Show(a.cmd.OutOrStdout(), terminal.View{Value: map[string]any{"dry_run": a.dryRun, "results": all}, Names: names, Table: func(out io.Writer, _ bool) error {
		return tellApplied(out, all, count, a.dryRun)
	}})
	if err != nil {
		return err
	}
	var cause error
	if failed := only(all, ResultFailed); len(failed) > 0 {
		cause = exit.With(exit.StatusOf(failed[0].cause), errors.New("the server refused the timer"))
	}
	return exit.Partly(len(all), count[ResultFailed], cause)
}

func tellApplied(out io.Writer, all []*applied, count map[string]int, dryRun bool) error {
	if err := tellEach(out, all); err != nil {
		return err
	}
	would := ""
	if dryRun {
		would = " (nothing was changed)"
	}
	_, err := fmt.Fprintf(out, "%d created, %d updated, %d deleted, %d unchanged, %d failed%s\n", count[api.Created], count[api.Updated],
		count[resultDeleted], count[api.Unchanged], count[ResultFailed], would)
	return err
}

// tellEach prints a line for each timer that is not unchanged, and one for each of its fields.
func tellEach(out io.Writer, all []*applied) error {
	p := terminal.NewPainter(out)
	var b strings.Builder
	for _, t := range all {
		name := terminal.Printable(t.App + "/" + t.Name)
		switch t.Result {
		case api.Created:
			fmt.Fprintf(&b, "%s %s\n", p.Paint(terminal.Green, "+"), name)
		case api.Updated:
			fmt.Fprintf(&b, "%s %s\n", p.Paint(terminal.Yellow, "~"), name)
			tellChanges(&b, t.Changes)
		case resultDeleted:
			fmt.Fprintf(&b, "%s %s\n", p.Paint(terminal.Red, "-"), name)
		case ResultFailed:
			fmt.Fprintf(&b, "%s %s: %s\n", p.Paint(terminal.Red, "!"), name, terminal.Printable(t.Error))
		}
		for _, w := range t.Warnings {
			fmt.Fprintf(&b, "    %s %s\n", p.Paint(terminal.Yellow, w.Code+":"), terminal.Printable(w.Detail))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func tellChanges(b *strings.Builder, changes []definition.Change) {
	for _, c := range changes {
		fmt.Fprintf(b, "    %s: %s → %s\n", terminal.Printable(c.Field), cmp.Or(terminal.Printable(c.From), "not set"), cmp.Or(terminal.Printable(c.To), "not set"))
	}
}
