package remote

import (
	"io"

	"xtimer/cmd/xtimer/terminal"
)

// Show prints v as JSON or YAML, or what table prints.
func (r *Server) Show(out io.Writer, v any, table func(out io.Writer) error) error {
	switch r.Output {
	case "json":
		return terminal.WriteJSON(out, v, "  ")
	case "yaml":
		return terminal.WriteYAML(out, v)
	}
	return table(out)
}
