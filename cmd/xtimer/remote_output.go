package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// show prints v as JSON or YAML, or what table prints.
func (r *remote) show(out io.Writer, v any, table func(out io.Writer) error) error {
	switch r.output {
	case "json":
		return writeJSON(out, v, "  ")
	case "yaml":
		return writeYAML(out, v)
	}
	return table(out)
}

func writeJSON(out io.Writer, v any, indent string) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// writeYAML prints the same fields as JSON, in the same order.
func writeYAML(out io.Writer, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v, ""); err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b.Bytes(), &doc); err != nil {
		return fmt.Errorf("cannot turn JSON into YAML: %w", err)
	}
	block(&doc)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	if err := e.Encode(&doc); err != nil {
		return err
	}
	return e.Close()
}

// block takes the braces and quotes of JSON away; the encoder quotes what needs it.
func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}
