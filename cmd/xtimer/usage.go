package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xtimer/cmd/xtimer/exit"
)

// explainUsage gives every command of the tree errors that name what is wrong with a command
// line, and what was probably meant.
func explainUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.HasSubCommands() && cmd.RunE == nil {
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return unknownCommand(cmd, args[0])
				}
				return cmd.Help()
			}
		} else if check := cmd.Args; check != nil {
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if check(cmd, args) != nil {
					return argumentsError(cmd, args)
				}
				return nil
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func unknownCommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	return exit.Usage("unknown command %q for %q%s", name, cmd.CommandPath(), suggestion("", cmd.SuggestionsFor(name), cmd))
}

// suggestion is the end of an error: the names that were probably meant, or where to look.
func suggestion(prefix string, names []string, cmd *cobra.Command) string {
	if len(names) == 0 || len(names) > 5 {
		return "; see: " + cmd.CommandPath() + " --help"
	}
	return "; did you mean " + prefix + strings.Join(names, " or "+prefix) + "?"
}

// argumentsError is about arguments that are missing, or too many.
func argumentsError(cmd *cobra.Command, args []string) error {
	_, wanted, _ := strings.Cut(cmd.Use, " ")
	if before, _, ok := strings.Cut(wanted, "-"); ok && strings.Trim(before, " [") == "" {
		wanted = "" // flags
	}
	switch {
	case wanted == "":
		return exit.Usage("%q takes no arguments: %s; see: %s --help", cmd.CommandPath(), strings.Join(args, " "), cmd.CommandPath())
	case len(args) == 0:
		return exit.Usage("required: %s; see: %s --help", wanted, cmd.CommandPath())
	}
	return exit.Usage("%q takes %s, not %d arguments; see: %s --help", cmd.CommandPath(), wanted, len(args), cmd.CommandPath())
}

// flagError is about a flag that is unknown, or has no value or a wrong one.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return exit.Usage("unknown flag -%s for %q; see: %s --help", unknown.GetSpecifiedName(), cmd.CommandPath(), cmd.CommandPath())
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		return exit.Usage("unknown flag --%s for %q%s", name, cmd.CommandPath(), suggestion("--", similarFlags(cmd, name), cmd))
	case errors.As(err, &bare):
		return exit.Usage("--%s needs a value", bare.GetFlag().Name)
	case errors.As(err, &invalid):
		return exit.Usage("--%s: %w", invalid.GetFlag().Name, valueError(invalid))
	}
	return exit.Usage("%w", err)
}

// similarFlags are the flags of a command whose names are close to one that does not exist.
func similarFlags(cmd *cobra.Command, name string) []string {
	// cobra measures the distance of commands only: have a command for each flag.
	all := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		all.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	return all.SuggestionsFor(name)
}

// valueError says which values a flag takes.
func valueError(invalid *pflag.InvalidValueError) error {
	kind := map[string]string{"int": "a whole number", "int64": "a whole number", "float64": "a number", "bool": "true or false", "bytesBase64": "base64"}
	if want, ok := kind[invalid.GetFlag().Value.Type()]; ok {
		return fmt.Errorf("%q is not %s", invalid.GetValue(), want)
	}
	return invalid.Unwrap()
}
