package timer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerEdit(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "edit ID|APP/NAME",
		Short: "Change a timer in an editor",
		Long: `edit opens the definition of a timer, as YAML, in the editor that VISUAL or EDITOR
names (by default vi). When you save the file and leave the editor, edit changes the
timer. If you save an unchanged or an empty file, the timer does not change.

If the file is invalid or the server refuses the change, the editor opens again, with
the reason at the top of the file. If another request changed the timer in the
meantime, edit stores nothing. If a change was not stored, edit keeps the file and
prints its name.`,
		Example: `  xtimer timer edit billing/report
  EDITOR="code --wait" xtimer timer edit -n billing report`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.CompleteTimers,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := r.Timer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e := &edit{Server: r, cmd: cmd, timer: t}
			return e.run(cmd.Context())
		},
	}
}

// edit is the change of one timer in an editor.
type edit struct {
	*remote.Server
	cmd   *cobra.Command
	timer *api.Timer
	file  string
}

func (e *edit) run(ctx context.Context) error {
	var text bytes.Buffer
	if err := terminal.WriteYAML(&text, e.timer.Definition); err != nil {
		return err
	}
	f, err := os.CreateTemp("", "xtimer-*.yaml")
	if err != nil {
		return fmt.Errorf("cannot make the file to edit: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("cannot make the file to edit: %w", err)
	}
	e.file = f.Name()

	var refused error
	for before := text.String(); ; {
		after, err := e.open(before, refused)
		if err != nil && refused == nil && after == before {
			return errors.Join(err, os.Remove(e.file))
		}
		if err != nil {
			return e.kept(err)
		}
		if after == before || after == "" {
			if refused != nil {
				return e.kept(refused)
			}
			fmt.Fprintln(e.cmd.ErrOrStderr(), "unchanged")
			return os.Remove(e.file)
		}
		changes, err := e.store(ctx)
		if err == nil {
			return errors.Join(e.tell(changes), os.Remove(e.file))
		}
		if status := exit.StatusOf(err); status != exit.StatusUsage && status != exit.StatusRefused {
			return e.kept(err)
		}
		refused, before = e.Explain(err), after
	}
}

// kept says where the edited file is.
func (e *edit) kept(err error) error {
	return exit.With(exit.StatusOf(err), fmt.Errorf("%w\nThe edited file is kept: %s", e.Explain(err), e.file))
}

// open has a person edit a text, and returns it without the comments above it, also with
// the error of an editor that failed.
func (e *edit) open(text string, refused error) (string, error) {
	var head strings.Builder
	fmt.Fprintf(&head, "# The timer %s/%s, version %d. Save the file to change the timer.\n", e.timer.App, e.timer.Name, e.timer.Version)
	head.WriteString("# An unchanged or empty file changes nothing.\n")
	if refused != nil {
		for line := range strings.Lines(refused.Error()) {
			fmt.Fprintf(&head, "# Not stored: %s\n", strings.TrimSpace(line))
		}
	}
	if err := os.WriteFile(e.file, []byte(head.String()+text), 0o600); err != nil {
		return "", fmt.Errorf("cannot write the file to edit: %w", err)
	}
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if os.Getenv(name) != "" {
			editor = os.Getenv(name)
		}
	}
	// The editor may have arguments, as in "code --wait".
	c := exec.Command("sh", "-c", editor+` "$1"`, "sh", e.file)
	c.Stdin, c.Stdout, c.Stderr = e.cmd.InOrStdin(), e.cmd.OutOrStdout(), e.cmd.ErrOrStderr()
	failed := c.Run()
	b, err := os.ReadFile(e.file)
	if err != nil {
		return "", fmt.Errorf("cannot read the edited file: %w", err)
	}
	after := string(b)
	for strings.HasPrefix(after, "#") {
		_, after, _ = strings.Cut(after, "\n")
	}
	if failed != nil {
		failed = fmt.Errorf("the editor %q failed: %w", editor, failed)
	}
	return strings.TrimLeft(after, "\n"), failed
}

// store changes the timer to what the file says, unless another request has changed it.
func (e *edit) store(ctx context.Context) ([]definition.Change, error) {
	sources, err := definition.Read([]string{e.file}, nil)
	if err != nil {
		return nil, err
	}
	if len(sources) != 1 {
		return nil, exit.Usage("the file must have one timer, not %d", len(sources))
	}
	d := sources[0].Definition
	if d.App != e.timer.App || d.Name != e.timer.Name {
		return nil, exit.Usage("app and name of a timer cannot be changed: they are %s and %s", e.timer.App, e.timer.Name)
	}
	changes, err := definition.Diff(e.timer.Definition, d)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	_, err = e.Put(ctx, d, api.IfMatch(e.timer.Version))
	return changes, err
}

func (e *edit) tell(changes []definition.Change) error {
	p := &applied{App: e.timer.App, Name: e.timer.Name, Result: api.Updated, Changes: changes}
	if len(changes) == 0 {
		p.Result = api.Unchanged
	}
	return e.Output.Show(e.cmd.OutOrStdout(), terminal.View{Value: p, Names: []string{p.App + "/" + p.Name}, Table: func(out io.Writer, _ bool) error {
		return tellEach(out, []*applied{p})
	}})
}
