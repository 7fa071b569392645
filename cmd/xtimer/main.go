// Command xtimer is the timer service: the server, and the tools around it.
//
// It wires the other packages together and knows everyone; nobody knows it. One
// command is one file: serve.go is the server from start to end, node.go what
// it is put together from. The packages below it:
//
//	remote      the commands that speak to a running server: timer, task
//	transfer    import, export, backup, restore
//	bench       loads a server from outside
//	settings    what a server is told
//	store       its data directory and tiers
//	machine     what the machine gives: memory, processors, files
//	exit, span, terminal, document, golden     what commands, and their tests, share
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"xtimer/cmd/xtimer/exit"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run is the program; what it returns is its exit status.
func run(args []string) int {
	// The first signal ends the context, and every command takes that as the
	// wish to end well; a second one ends the process here and now.
	ctx, stop := untilSignal(context.Background())
	defer stop()

	cmd := newRoot()
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}

	// Whatever went wrong is said once, here, in one line.
	if !errors.Is(err, exit.ErrSaid) {
		lastWords(fmt.Sprintf("xtimer: %v", err))
	}
	return exit.StatusOf(err)
}
