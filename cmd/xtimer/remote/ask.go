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

// IsPerson tells whether somebody types what is read.
func IsPerson(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && terminal.Is(f)
}

// Ask wants a yes from a person; where there is none, --yes has to say it.
func Ask(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if _, ok := in.(*os.File); ok && !IsPerson(in) {
		return exit.Usage("%s nobody is there to ask: say --yes, or look with --dry-run", question)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	answer, _ := bufio.NewReader(in).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("left as it is")
}
