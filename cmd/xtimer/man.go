package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan writes the manual for packages. The command is hidden because --help shows
// users the same.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     "man FOLDER",
		Short:   "Write the manual pages of all commands into a folder",
		Long:    "Write the manual pages of all commands into a folder, one page a command. The date\nof the pages is SOURCE_DATE_EPOCH, or today.",
		Example: "  xtimer man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		Hidden:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			root.DisableAutoGenTag = true // or each page ends with the day on which it was made
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "xtimer " + readBuild().version, Manual: "xtimer"}, args[0])
		},
	}
}
