package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Output is the form in which a command shows its results: the flag -o.
type Output string

// The forms. Wide is a table with more columns; Name is only the names, one a line, for
// other commands to take.
const (
	Table Output = "table"
	Wide  Output = "wide"
	Name  Output = "name"
	JSON  Output = "json"
	YAML  Output = "yaml"
)

// Outputs are the names of the forms.
var Outputs = []string{string(Table), string(Wide), string(Name), string(JSON), string(YAML)}

// OutputHelp is the help of the flag -o.
const OutputHelp = "show as `FORM`: table, wide, name, json or yaml"

func (o *Output) String() string { return string(*o) }

// Type names the value in the help of a flag.
func (o *Output) Type() string { return "form" }

// Set takes one of the forms.
func (o *Output) Set(s string) error {
	if !slices.Contains(Outputs, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(Outputs, ", "))
	}
	*o = Output(s)
	return nil
}

// IsTable reports whether people read the output.
func (o Output) IsTable() bool { return o == Table || o == Wide }

// View is what a command shows, in each form.
type View struct {
	Value any      // for JSON and YAML
	Names []string // for Name; nil: the command has no names to show
	Table func(out io.Writer, wide bool) error
}

// Show prints v in the form o.
func (o Output) Show(out io.Writer, v View) error {
	switch o {
	case JSON:
		return WriteJSON(out, v.Value, "  ")
	case YAML:
		return WriteYAML(out, v.Value)
	case Name:
		for _, name := range v.Names {
			if _, err := fmt.Fprintln(out, Printable(name)); err != nil {
				return err
			}
		}
		return nil
	}
	return v.Table(out, o == Wide)
}
