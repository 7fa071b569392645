package remote

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"xtimer/cmd/xtimer/exit"
)

// Context is a server under a name: its address, and the token for it.
type Context struct {
	Name      string `yaml:"name" json:"name"`
	Server    string `yaml:"server" json:"server"`
	Token     string `yaml:"token,omitempty" json:"-"`
	TokenFile string `yaml:"token_file,omitempty" json:"token_file,omitempty"`
}

// ReadToken returns the token of the context; "" if it has none.
func (c *Context) ReadToken() (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	b, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", exit.Usage("cannot read the token of the context %s: %w", c.Name, err)
	}
	token := strings.TrimSpace(string(b))
	if token == "" {
		return "", exit.Usage("the token file of the context %s is empty: %s", c.Name, c.TokenFile)
	}
	return token, nil
}

// Contexts are the contexts of a user, and which of them is current.
type Contexts struct {
	Current string    `yaml:"current,omitempty" json:"current,omitempty"`
	All     []Context `yaml:"contexts" json:"contexts"`
}

// ContextsFile is where the contexts are stored.
func ContextsFile() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("cannot find the folder for the contexts: %w", err)
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "xtimer", "contexts.yaml"), nil
}

// ReadContexts reads the contexts of the user. Without a file there are none.
func ReadContexts() (*Contexts, error) {
	all := &Contexts{}
	name, err := ContextsFile()
	if err != nil {
		return all, nil // without a home there is nothing to read
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the contexts: %w", err)
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(all); err != nil && !errors.Is(err, io.EOF) {
		return nil, exit.Usage("cannot read the contexts: %s: %w", name, err)
	}
	return all, nil
}

// Find returns the context of that name, or an error that names those that exist.
func (c *Contexts) Find(name string) (*Context, error) {
	for i := range c.All {
		if c.All[i].Name == name {
			return &c.All[i], nil
		}
	}
	if len(c.All) == 0 {
		return nil, exit.NotFound("context %q not found: no context is defined; define it with: xtimer context set %s --server URL", name, name)
	}
	return nil, exit.NotFound("context %q not found; the contexts are: %s", name, strings.Join(c.Names(), ", "))
}

// Names are the names of all contexts.
func (c *Contexts) Names() (names []string) {
	for _, x := range c.All {
		names = append(names, x.Name)
	}
	return names
}

// Set adds a context, or replaces the one of the same name.
func (c *Contexts) Set(x Context) {
	c.Delete(x.Name)
	c.All = append(c.All, x)
	slices.SortFunc(c.All, func(a, b Context) int { return cmp.Compare(a.Name, b.Name) })
}

// Delete removes the context of that name.
func (c *Contexts) Delete(name string) {
	c.All = slices.DeleteFunc(c.All, func(x Context) bool { return x.Name == name })
}

// Write stores the contexts. Only the user may read the file: it can have tokens.
func (c *Contexts) Write() (err error) {
	name, err := ContextsFile()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot write the contexts: %w", err)
		}
	}()
	b, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	// A new file takes the place of the former one, so that no reader sees half of it. Its
	// mode is 0600 whatever the former mode was.
	f, err := os.CreateTemp(filepath.Dir(name), ".contexts-*.yaml")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
