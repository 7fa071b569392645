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
		Long: `A context is a server and its token under a name. Commands that need a server use the
current context, which "xtimer context use" sets.

Other settings have priority over the current context. A command uses the first of:

  --server URL
  --context NAME
  XTIMER_SERVER (a URL)
  XTIMER_CONTEXT (a name)
  the current context
  ` + remote.DefaultServer + `

The token is that of --token. Without --token, it is the token of the context of
--context; without that, XTIMER_TOKEN; without that, the token of the context in use.
The token of a context is sent only to the server of the context.

The contexts are in the file xtimer/contexts.yaml in the folder XDG_CONFIG_HOME, by
default ~/.config. Only its owner can read the file.

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
