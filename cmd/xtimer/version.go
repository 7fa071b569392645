package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine"
)

func newVersion() *cobra.Command {
	var output terminal.Output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of this program, and the data formats that it writes",
		Example: `  xtimer version
  xtimer version -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, f := readBuild(), newestFormats()
			value := map[string]any{"version": b.version, "commit": b.commit, "go": b.goVersion, "platform": b.platform, "formats": f}
			return output.Show(cmd.OutOrStdout(), terminal.View{Value: value, Names: []string{b.version}, Table: func(out io.Writer, _ bool) error {
				_, err := fmt.Fprintf(out, "xtimer   %s\ncommit   %s\ngo       %s %s\nformats  timer %d, task %d, owed %d\n",
					b.version, b.commit, b.goVersion, b.platform, f.Timer, f.Task, f.Owed)
				return err
			}})
		},
	}
	remote.AddOutput(cmd, &output)
	return cmd
}

// What make build and make release stamp into the program; empty after go build
// and go install, whose own record is in the program then.
var stampedVersion, stampedCommit string

// build is what the program was built from.
type build struct {
	version, commit, goVersion, platform string
}

func readBuild() build {
	b := build{version: "(devel)", commit: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.goVersion = info.GoVersion
	if info.Main.Version != "" {
		b.version = info.Main.Version
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	b.platform = set["GOOS"] + "/" + set["GOARCH"]
	if c := set["vcs.revision"]; c != "" {
		b.commit = c
		if t := set["vcs.time"]; t != "" {
			b.commit += " of " + t
		}
		if set["vcs.modified"] == "true" {
			b.commit += ", with changes"
		}
	}
	if stampedVersion != "" {
		b.version = stampedVersion
	}
	if stampedCommit != "" {
		b.commit = stampedCommit
	}
	return b
}

// formats are versions of the records that are stored.
type formats struct {
	Timer int `json:"timer"`
	Task  int `json:"task"`
	Owed  int `json:"owed"`
}

// newestFormats are the formats that this program writes: each the first byte of a record.
func newestFormats() formats {
	t := &engine.Timer{}
	t.Callback.Headers = []engine.Header{{Secret: "x"}}
	return formats{
		Timer: int(engine.AppendTimer(nil, t)[0]),
		Task:  int(engine.AppendTask(nil, &engine.Task{Holds: []engine.Hold{{}}})[0]),
		Owed:  int(engine.AppendOwed(nil, &engine.Owed{Held: 1})[0]),
	}
}
