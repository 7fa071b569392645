package settings

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"xtimer/cmd/xtimer/document"
	"xtimer/httpapi/access"
)

// readFile takes from the YAML file what neither flag nor environment set. A
// key that it does not know is refused, for a setting with a typing error is
// one that is not in force.
func (s *Settings) readFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot read the settings: %w", err)
	}
	defer f.Close()

	var doc yaml.Node
	d := yaml.NewDecoder(f)
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // an empty file says nothing
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: the file must contain exactly one YAML document", name)
	}
	return s.readRoot(document.Place{File: name, Node: doc.Content[0]})
}

func (s *Settings) readRoot(p document.Place) error {
	known := map[string]setting{}
	names := []string{"apps"}
	for _, st := range settingList(s) {
		if st.name != "config" {
			known[st.key()] = st
			names = append(names, st.key())
		}
	}
	return p.Each(names, func(key string, at document.Place) error {
		if key == "apps" {
			return at.Each(nil, s.readApp)
		}
		st := known[key]
		if s.from[st.name] != "" {
			return nil
		}
		v, err := at.Text(st.value.Type() == "CIDRs")
		if err == nil && v != "" {
			err = st.value.Set(v)
		}
		if err != nil {
			return at.Errorf("%w", err)
		}
		s.from[st.name] = at.Line()
		return nil
	})
}

func (s *Settings) readApp(name string, p document.Place) error {
	if err := checkApp(name); err != nil {
		return p.Errorf("%w", err)
	}
	a := s.app(name, p.Line())
	return p.Each([]string{"tokens", "webhook_secrets"}, func(key string, at document.Place) error {
		if key == "webhook_secrets" && name == access.AllApps {
			return at.Errorf("must be set for each app by its name; the app * cannot have secrets")
		}
		return at.Items(func(at document.Place) error {
			if key == "tokens" {
				return a.readToken(at)
			}
			secret, err := at.Text(false)
			if err == nil && !strings.HasPrefix(secret, "whsec_") {
				err = errors.New("a webhook secret must begin with whsec_")
			}
			if err != nil {
				return at.Errorf("%w", err)
			}
			a.WebhookSecrets = append(a.WebhookSecrets, secret)
			return nil
		})
	})
}

// maxTokenName bounds the name of a token, which each version of a timer keeps.
const maxTokenName = 64

func (a *App) readToken(p document.Place) error {
	t := Token{from: p.Line()}
	hashed := false
	err := p.Each([]string{"name", "sha256", "role"}, func(key string, at document.Place) error {
		v, err := at.Text(false)
		switch {
		case err != nil:
		case key == "role":
			t.Role, err = v, checkRole(v)
		case key == "name":
			if t.Name = v; v == "" || len(v) > maxTokenName || strings.ContainsFunc(v, unicode.IsControl) {
				err = fmt.Errorf("must be 1 to %d bytes of text without control characters", maxTokenName)
			}
		default:
			n, bad := hex.Decode(t.SHA256[:], []byte(v[:min(len(v), 64)]))
			if bad != nil || n != 32 || len(v) != 64 {
				err = errors.New("is not a SHA-256 in hex; compute one with: printf %s TOKEN | sha256sum")
			}
			hashed = true
		}
		if err != nil {
			return at.Errorf("%w", err)
		}
		return nil
	})
	if err == nil && (!hashed || t.Role == "") {
		err = p.Errorf("a token must have a sha256 and a role")
	}
	a.Tokens = append(a.Tokens, t)
	return err
}
