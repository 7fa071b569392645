package contexts

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	api "xtimer/httpapi/client"
)

func newSet() *cobra.Command {
	var c remote.Context
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Define or change a context",
		Long: `set stores a server and its token under a name. If the context exists, set changes
only the values of the given flags. The first context that you define becomes the
current context.

With --token-file, the context has the path of a file, and every command reads the
token from the file. With --token, the context has the token itself; "--token -"
reads it from stdin.`,
		Example: `  xtimer context set local --server http://127.0.0.1:8080
  xtimer context set prod --server https://xtimer.example.com --token-file ~/.xtimer-prod
  pass xtimer/prod | xtimer context set prod --token -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return set(cmd, args[0], c)
		},
		ValidArgsFunction: remote.CompleteContexts,
	}
	cmd.Flags().StringVar(&c.Server, "server", "", "the `URL` of the server")
	cmd.Flags().StringVar(&c.Token, "token", "", "store this `TOKEN` in the context; -: read it from stdin")
	cmd.Flags().StringVar(&c.TokenFile, "token-file", "", "read the token from this `FILE` in every command")
	return cmd
}

func set(cmd *cobra.Command, name string, flags remote.Context) error {
	given := cmd.Flags().Changed
	switch {
	case name == "" || strings.ContainsAny(name, " \t\n"):
		return exit.Usage("the name of a context has no spaces: %q", name)
	case given("token") && given("token-file"):
		return exit.Usage("--token and --token-file exclude each other")
	}
	if flags.Token == "-" {
		b, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 64<<10))
		if err != nil {
			return fmt.Errorf("cannot read the token from stdin: %w", err)
		}
		if flags.Token = strings.TrimSpace(string(b)); flags.Token == "" {
			return exit.Usage("--token -: stdin is empty")
		}
	}
	return change(func(all *remote.Contexts) error {
		c := remote.Context{Name: name}
		if former, err := all.Find(name); err == nil {
			c = *former
		}
		if given("server") {
			c.Server = flags.Server
		}
		if given("token") {
			c.Token, c.TokenFile = flags.Token, ""
		}
		if given("token-file") {
			file, err := filepath.Abs(flags.TokenFile)
			if err != nil {
				return fmt.Errorf("--token-file: %w", err)
			}
			if flags.TokenFile == "" {
				file = ""
			}
			c.Token, c.TokenFile = "", file
			if _, err := c.ReadToken(); err != nil {
				return err
			}
		}
		if c.Server == "" {
			return exit.Usage("required: --server")
		}
		if !strings.Contains(c.Server, "://") {
			c.Server = "http://" + c.Server
		}
		if _, err := api.New(c.Server); err != nil {
			return exit.Usage("--server: %w", err)
		}
		all.Set(c)
		if len(all.All) == 1 {
			all.Current = name
		}
		return nil
	})
}
