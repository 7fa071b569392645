package contexts

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
)

// New is the group of the commands of contexts.
func New() *cobra.Command {
	group := &cobra.Command{
		Use:     "context",
		Aliases: []string{"contexts"},
		Short:   "Give servers names, and choose the server that commands use",
		Long: `context stores servers under names, with the token for each server. The current
context is the server of all commands that use one.

A command uses, in this order: --server; --context; XTIMER_SERVER; XTIMER_CONTEXT; the
current context; ` + remote.DefaultServer + `. The token is that of --token, else of the
context of --context, else of XTIMER_TOKEN, else of the context. The token of a context
is sent only to the server of the context.

The contexts are in xtimer/contexts.yaml under XDG_CONFIG_HOME (else ~/.config), which
only the user can read.

` + exit.Help,
		Example: `  xtimer context set prod --server https://xtimer.example.com --token-file ~/.xtimer-prod
  xtimer context use prod
  xtimer context list
  xtimer timer list --context prod`,
	}
	group.AddCommand(newList(), newUse(), newSet(), newDelete())
	return group
}

// change reads the contexts, changes them and stores them.
func change(do func(all *remote.Contexts) error) error {
	all, err := remote.ReadContexts()
	if err == nil {
		err = do(all)
	}
	if err != nil {
		return err
	}
	return all.Write()
}
