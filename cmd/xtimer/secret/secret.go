// Package secret is the commands of an app's secrets.
package secret

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// New is the group of the commands of secrets.
func New() *cobra.Command {
	r := &remote.Server{}
	group := r.Attach(
		&cobra.Command{
			Use:   "secret",
			Short: "Set, list and delete the secrets of an app",
			Long: `secret sets values that callbacks send and nobody can read back: tokens, passwords,
keys. A header of a callback names a secret of the timer's app:

  {"headers": {"Authorization": {"secret": "api-token"}}}

Each attempt sends the value that the secret has at that time, so a new value
needs no change of a timer. A call whose secret is missing is not made; it is
tried again as the timer's retry policy says.

` + exit.Help,
			Example: `  pass shop/api-token | xtimer secret set api-token -n shop
  xtimer timer create -n shop --name pay --delay 1h --url https://pay.example.com/ \
    --secret-header "Authorization: api-token"
  xtimer secret list -n shop`,
		},
		newSet(r), newList(r), newDelete(r),
	)
	r.AppFlag(group, "the `APP` of the secrets")
	return group
}

func needApp(r *remote.Server) error {
	if r.App == "" {
		return exit.Usage("required: --app")
	}
	return nil
}

func newSet(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:   "set NAME",
		Short: "Set the value of a secret, read from stdin",
		Long: `set reads the value from stdin, without a newline at its end, and sets it. There is
no flag for the value: other users of a machine can read command lines.`,
		Example: `  pass shop/api-token | xtimer secret set api-token -n shop
  xtimer secret set api-token -n shop < token.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			if remote.IsPerson(cmd.InOrStdin()) {
				fmt.Fprintln(cmd.ErrOrStderr(), "Type the value, which is shown, and end with Ctrl-D.")
			}
			b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 64<<10))
			if err != nil {
				return fmt.Errorf("cannot read the value from stdin: %w", err)
			}
			value := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
			if value == "" {
				return exit.Usage("stdin has no value")
			}
			result, err := r.PutSecret(cmd.Context(), r.App, args[0], value)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s/%s %s\n", r.App, args[0], result)
			return err
		},
	}
}

func newList(r *remote.Server) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the names of an app's secrets",
		Example: `  xtimer secret list -n shop`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			all, more, err := remote.Take(r.Secrets(cmd.Context(), r.App), limit)
			if err != nil {
				return err
			}
			err = r.Output.Show(cmd.OutOrStdout(), view(all, func(t time.Time) string { return r.Zone.Instant(t, "") }))
			return remote.TellMore(cmd, more, limit, err)
		},
	}
	remote.AddLimit(cmd, &limit)
	return cmd
}

func view(all []api.Secret, instant func(time.Time) string) terminal.View {
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return terminal.View{Value: map[string]any{"secrets": all}, Names: names, Table: func(out io.Writer, _ bool) error {
		g := terminal.Grid{Head: []string{"NAME", "VERSION", "UPDATED", "BY"}}
		for _, s := range all {
			g.Add(s.Name, fmt.Sprint(s.Version), instant(s.UpdatedAt), s.UpdatedBy)
		}
		return g.Print(out)
	}}
}

func newDelete(r *remote.Server) *cobra.Command {
	return &cobra.Command{
		Use:     "delete NAME …",
		Short:   "Delete secrets",
		Long:    `delete deletes secrets. Calls that name them are not made until the secrets are set again.`,
		Example: `  xtimer secret delete api-token -n shop`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := needApp(r); err != nil {
				return err
			}
			for _, name := range args {
				err := r.DeleteSecret(cmd.Context(), r.App, name)
				if api.IsNotFound(err) {
					return exit.NotFound("secret %s/%s not found", r.App, name)
				}
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s/%s deleted\n", r.App, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
