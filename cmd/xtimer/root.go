package main

import (
	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/alert"
	"xtimer/cmd/xtimer/bench"
	"xtimer/cmd/xtimer/contexts"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/figures"
	"xtimer/cmd/xtimer/flow"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/secret"
	"xtimer/cmd/xtimer/task"
	"xtimer/cmd/xtimer/timer"
	"xtimer/cmd/xtimer/transfer"
)

// newRoot is the command line: the commands, one a file.
func newRoot() *cobra.Command {
	b := readBuild()
	root := &cobra.Command{
		Use:     "xtimer",
		Version: b.version + " (" + b.commit + ")",
		Short:   "A timer service that calls a URL on time, to the millisecond",
		Long: `xtimer is a timer service for people who outgrew cron. It calls a URL at the
time that you set, to the millisecond, for millions of timers on one machine. It
records the result of every call.`,
		Example: `  xtimer demo                     run a server, a receiver and a few timers
  xtimer doctor                   measure how precise and how fast xtimer can be here
  xtimer serve                    serve the API on 127.0.0.1:8080, data in ./data
  xtimer preview "0 9 * * MON-FRI" --time-zone Asia/Shanghai`,
		SilenceErrors: true, // main says them, once
		SilenceUsage:  true,
	}
	root.AddCommand(
		newServe(),
		newDemo(),
		timer.New(),
		task.New(),
		flow.New(),
		flow.NewTarget(),
		flow.NewApp(),
		secret.New(),
		alert.New(),
		contexts.New(),
		figures.NewStats(),
		figures.NewTop(),
		figures.NewCluster(),
		newPreview(),
		bench.New(),
		remote.NewClock(),
		newDoctor(),
		newVerify(),
		transfer.NewBackup(),
		transfer.NewRestore(),
		transfer.NewExport(),
		transfer.NewImport(),
		newVersion(),
		newMan(),
	)
	root.AddCommand(&cobra.Command{Use: "exit-codes", Short: "The exit statuses of the commands", Long: exit.Topic()})
	root.SetVersionTemplate("xtimer {{.Version}}\n")
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Short = "Print a shell script that completes commands and timer names"
			c.Example = `  source <(xtimer completion bash)
  xtimer completion fish > ~/.config/fish/completions/xtimer.fish`
		}
	}
	explainUsage(root)
	return root
}
