package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// WriteJSON prints v as JSON, each level deeper by indent; "": on one line.
func WriteJSON(out io.Writer, v any, indent string) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// WriteYAML prints the same fields as JSON, in the same order.
func WriteYAML(out io.Writer, v any) error {
	var b bytes.Buffer
	if err := WriteJSON(&b, v, ""); err != nil {
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
