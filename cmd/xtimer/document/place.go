package document

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Place is a node of a YAML file with the path that leads to it, so that what
// is wrong can be found.
type Place struct {
	File, path string
	Node       *yaml.Node
}

// Line is where the place is, for people: xtimer.yaml:3.
func (p Place) Line() string { return fmt.Sprintf("%s:%d", p.File, p.Node.Line) }

func (p Place) Errorf(format string, args ...any) error {
	path := p.path
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s: %s: "+format, append([]any{p.Line(), path}, args...)...)
}

func (p Place) under(name string, n *yaml.Node) Place {
	if p.path != "" && name[0] != '[' {
		name = "." + name
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return Place{p.File, p.path + name, n}
}

// Each visits the keys of a mapping; only those in known are allowed, where
// known is given. Null is an empty mapping.
func (p Place) Each(known []string, visit func(key string, at Place) error) error {
	if p.Node.Tag == "!!null" {
		return nil
	}
	if p.Node.Kind != yaml.MappingNode {
		return p.Errorf("has to be a mapping of keys to values")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(p.Node.Content); i += 2 {
		k := p.Node.Content[i]
		if k.Kind != yaml.ScalarNode || k.Value == "" {
			return p.Errorf("a key in line %d is not a word", k.Line)
		}
		at := p.under(k.Value, p.Node.Content[i+1])
		switch {
		case known != nil && !slices.Contains(known, k.Value):
			return Place{p.File, at.path, k}.Errorf("unknown key; known are %s", strings.Join(known, ", "))
		case seen[k.Value]:
			return Place{p.File, at.path, k}.Errorf("is there twice")
		}
		seen[k.Value] = true
		if err := visit(k.Value, at); err != nil {
			return err
		}
	}
	return nil
}

// Items visits the items of a sequence.
func (p Place) Items(visit func(at Place) error) error {
	if p.Node.Tag == "!!null" {
		return nil
	}
	if p.Node.Kind != yaml.SequenceNode {
		return p.Errorf("has to be a list")
	}
	for i, n := range p.Node.Content {
		if err := visit(p.under(fmt.Sprintf("[%d]", i), n)); err != nil {
			return err
		}
	}
	return nil
}

// Text is the place's value as it is written; where list is allowed, the items
// of a list, joined by commas.
func (p Place) Text(list bool) (string, error) {
	switch {
	case p.Node.Tag == "!!null":
		return "", nil
	case p.Node.Kind == yaml.ScalarNode:
		return p.Node.Value, nil
	case p.Node.Kind == yaml.SequenceNode && list:
		var s []string
		for _, n := range p.Node.Content {
			if n.Kind != yaml.ScalarNode {
				return "", fmt.Errorf("line %d: has to be a plain value", n.Line)
			}
			s = append(s, n.Value)
		}
		return strings.Join(s, ","), nil
	case list:
		return "", fmt.Errorf("has to be a list")
	}
	return "", fmt.Errorf("has to be a plain value")
}
