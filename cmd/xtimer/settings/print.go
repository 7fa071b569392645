package settings

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"xtimer/httpapi"
)

// Print writes the settings as YAML, each with where it came from. Secrets are
// hidden, hashes of tokens too: a short token can be guessed from its hash.
func (s *Settings) Print(w io.Writer) error {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	for _, st := range settingList(s) {
		if st.name != "config" {
			add(doc, st.key(), settingNode(st), s.whence(st.name))
		} else if s.Config != "" {
			doc.HeadComment = "settings of the file " + s.Config + " (" + s.whence("config") + ")"
		}
	}
	if len(s.Apps) > 0 {
		apps := &yaml.Node{Kind: yaml.MappingNode}
		for _, a := range s.Apps {
			add(apps, a.Name, a.node(), "")
		}
		add(doc, "apps", apps, "")
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("cannot print the settings: %w", err)
	}
	return e.Close()
}

// Shown are the settings for the console, secrets hidden.
func (s *Settings) Shown() []httpapi.Setting {
	list := settingList(s)
	out := make([]httpapi.Setting, len(list))
	for i, st := range list {
		out[i] = httpapi.Setting{Name: st.name, Value: st.value.String(), From: s.whence(st.name)}
	}
	return out
}

func (s *Settings) whence(name string) string {
	if f := s.from[name]; f != "" {
		return f
	}
	return "default"
}

func settingNode(st setting) *yaml.Node {
	switch v := st.value.(type) {
	case *cidrsValue:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for s := range strings.SplitSeq(v.String(), ",") {
			if s != "" {
				n.Content = append(n.Content, word(s))
			}
		}
		return n
	case *boolValue:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: v.String()}
	}
	return word(st.value.String())
}

func (a *App) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode}
	if len(a.Tokens) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, t := range a.Tokens {
			m := &yaml.Node{Kind: yaml.MappingNode}
			if t.Name != "" {
				add(m, "name", word(t.Name), t.from)
			}
			add(m, "sha256", word("(hidden)"), t.from)
			add(m, "role", word(t.Role), "")
			list.Content = append(list.Content, m)
		}
		add(n, "tokens", list, "")
	}
	if len(a.WebhookSecrets) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for range a.WebhookSecrets {
			list.Content = append(list.Content, word("(hidden)"))
		}
		add(n, "webhook_secrets", list, a.from)
	}
	return n
}

func word(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(s)
	return n
}

func add(m *yaml.Node, key string, value *yaml.Node, comment string) {
	value.LineComment = comment
	m.Content = append(m.Content, word(key), value)
}
