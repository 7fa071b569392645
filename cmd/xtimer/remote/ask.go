package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/terminal"
)

// IsPerson reports whether a person at a terminal types the input.
func IsPerson(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && terminal.Is(f)
}

// Ask asks a person for a yes. Without a terminal, --yes is required.
func Ask(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if _, ok := in.(*os.File); ok && !IsPerson(in) {
		return exit.Usage("%s There is no terminal to confirm on: use --yes, or --dry-run to count", question)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("not confirmed; nothing was changed")
}
