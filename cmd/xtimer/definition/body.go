package definition

import (
	"bytes"
	"encoding/json"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// bodyOf returns callback.body of a timer in YAML as JSON, or nil. Numbers keep all their
// digits: 10.00 stays 10.00, and an id of 20 digits stays exact.
func bodyOf(timer *yaml.Node) (json.RawMessage, error) {
	body := valueOf(valueOf(timer, "callback"), "body")
	if body == nil {
		return nil, nil
	}
	var b bytes.Buffer
	err := writeNode(&b, body)
	return b.Bytes(), err
}

// valueOf is the value of a key of a mapping; nil if there is none.
func valueOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil {
		return nil
	}
	n = followed(n)
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func followed(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func writeNode(b *bytes.Buffer, n *yaml.Node) error {
	n = followed(n)
	switch {
	case n.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeNode(b, c); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case n.Kind == yaml.MappingNode && valueOf(n, "<<") == nil:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			key, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			b.Write(key)
			b.WriteByte(':')
			if err := writeNode(b, n.Content[i+1]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	case (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") && json.Valid([]byte(n.Value)):
		b.WriteString(n.Value)
		return nil
	}
	var v any
	if err := n.Decode(&v); err != nil {
		return err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("cannot be written as JSON: %w", err)
	}
	b.Write(bytes.TrimSpace(out.Bytes()))
	return nil
}
