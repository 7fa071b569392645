package contexts

import (
	"io"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
)

func newList() *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the contexts; * marks the current context",
		Example: `  xtimer context list
  xtimer context list -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := remote.ReadContexts()
			if err != nil {
				return err
			}
			return output.Show(cmd.OutOrStdout(), terminal.View{Value: all, Names: all.Names(), Table: func(out io.Writer, _ bool) error {
				return tableContexts(out, all)
			}})
		},
	}
	remote.AddOutput(cmd, &output)
	return cmd
}

func tableContexts(out io.Writer, all *remote.Contexts) error {
	g := terminal.Grid{Head: []string{"CURRENT", "NAME", "SERVER", "TOKEN"}}
	for _, c := range all.All {
		current, token := "", ""
		if c.Name == all.Current {
			current = "*"
		}
		switch {
		case c.TokenFile != "":
			token = "file " + c.TokenFile
		case c.Token != "":
			token = "stored"
		}
		g.Add(current, c.Name, c.Server, token)
	}
	return g.Print(out)
}
