package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"xtimer/engine"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print what this program was built from, and the data formats that it writes",
		Example: "  xtimer version",
		Args:    cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			b := readBuild()
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "xtimer   %s\n", b.version)
			fmt.Fprintf(out, "commit   %s\n", b.commit)
			fmt.Fprintf(out, "go       %s %s\n", b.goVersion, b.platform)
			fmt.Fprintf(out, "formats  %s\n", formats())
		},
	}
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

// formats are the newest versions of the records that are stored, each the first
// byte of one.
func formats() string {
	return fmt.Sprintf("timer %d, task %d, owed %d",
		engine.AppendTimer(nil, &engine.Timer{UpdatedBy: "x"})[0],
		engine.AppendTask(nil, &engine.Task{Dismissed: 1})[0],
		engine.AppendOwed(nil, &engine.Owed{})[0])
}
