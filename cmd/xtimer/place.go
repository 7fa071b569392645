package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// place is a node of a YAML file with the path that leads to it, so that what
// is wrong can be found.
type place struct {
	file, path string
	node       *yaml.Node
}

// line is where the place is, for people: xtimer.yaml:3.
func (p place) line() string { return fmt.Sprintf("%s:%d", p.file, p.node.Line) }

func (p place) errorf(format string, args ...any) error {
	path := p.path
	if path == "" {
		path = "the file"
	}
	return fmt.Errorf("%s: %s: "+format, append([]any{p.line(), path}, args...)...)
}

func (p place) under(name string, n *yaml.Node) place {
	if p.path != "" && name[0] != '[' {
		name = "." + name
	}
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return place{p.file, p.path + name, n}
}

// each visits the keys of a mapping; only those in known are allowed, where
// known is given. Null is an empty mapping.
func (p place) each(known []string, visit func(key string, at place) error) error {
	if p.node.Tag == "!!null" {
		return nil
	}
	if p.node.Kind != yaml.MappingNode {
		return p.errorf("has to be a mapping of keys to values")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(p.node.Content); i += 2 {
		k := p.node.Content[i]
		if k.Kind != yaml.ScalarNode || k.Value == "" {
			return p.errorf("a key in line %d is not a word", k.Line)
		}
		at := p.under(k.Value, p.node.Content[i+1])
		switch {
		case known != nil && !slices.Contains(known, k.Value):
			return place{p.file, at.path, k}.errorf("unknown key; known are %s", strings.Join(known, ", "))
		case seen[k.Value]:
			return place{p.file, at.path, k}.errorf("is there twice")
		}
		seen[k.Value] = true
		if err := visit(k.Value, at); err != nil {
			return err
		}
	}
	return nil
}

// items visits the items of a sequence.
func (p place) items(visit func(at place) error) error {
	if p.node.Tag == "!!null" {
		return nil
	}
	if p.node.Kind != yaml.SequenceNode {
		return p.errorf("has to be a list")
	}
	for i, n := range p.node.Content {
		if err := visit(p.under(fmt.Sprintf("[%d]", i), n)); err != nil {
			return err
		}
	}
	return nil
}

// text is the place's value as it is written; where list is allowed, the items
// of a list, joined by commas.
func (p place) text(list bool) (string, error) {
	switch {
	case p.node.Tag == "!!null":
		return "", nil
	case p.node.Kind == yaml.ScalarNode:
		return p.node.Value, nil
	case p.node.Kind == yaml.SequenceNode && list:
		var s []string
		for _, n := range p.node.Content {
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
