package remote

import (
	"io"

	"xtimer/cmd/xtimer/terminal"
)

// show prints v as JSON or YAML, or what table prints.
func (r *remote) show(out io.Writer, v any, table func(out io.Writer) error) error {
	switch r.output {
	case "json":
		return terminal.WriteJSON(out, v, "  ")
	case "yaml":
		return terminal.WriteYAML(out, v)
	}
	return table(out)
}
