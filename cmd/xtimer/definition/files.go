package definition

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"xtimer/cmd/xtimer/document"
	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// Source is a timer of a file, and where it stands there.
type Source struct {
	At document.Place
	api.Definition
}

// Read reads the timers of files, of all .yaml, .yml and .json files under
// folders, and of stdin ("-"). A file holds one or more documents of YAML or
// JSON, each of them a timer, a list of timers, or {"timers": […]}. What only
// answers have is passed over, so that what list prints can be read.
func Read(names []string, stdin io.Reader) (all []Source, err error) {
	add := func(s Source) { all = append(all, s) }
	for _, name := range names {
		if name == "-" {
			b, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("cannot read stdin: %w", err)
			}
			if err := readDocuments("stdin", b, add); err != nil {
				return nil, exit.Usage("%w", err)
			}
			continue
		}
		err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
			hidden := path != name && strings.HasPrefix(d.Name(), ".")
			switch {
			case err != nil:
				return err
			case d.IsDir() && hidden:
				return fs.SkipDir
			case d.IsDir():
				return nil
			case path != name && (hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))):
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return readDocuments(path, b, add)
		})
		if err != nil {
			return nil, exit.Usage("%w", err)
		}
	}
	return all, nil
}

// readDocuments reads the timers of one file.
func readDocuments(file string, b []byte, add func(Source)) error {
	if docs, ok := jsonDocuments(b); ok {
		for _, doc := range docs {
			if err := readNode(document.Place{File: file, Node: doc}, add); err != nil {
				return err
			}
		}
		return nil
	}
	for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var doc yaml.Node
		switch err := d.Decode(&doc); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(doc.Content) > 0 {
			if err := readNode(document.Place{File: file, Node: doc.Content[0]}, add); err != nil {
				return err
			}
		}
	}
}

// jsonDocuments takes JSON values that follow one another apart. YAML would read
// most of JSON, but neither its tabs nor all of its escapes. All of a value's
// nodes have the line at which it begins.
func jsonDocuments(b []byte) (docs []*yaml.Node, ok bool) {
	if start := bytes.TrimSpace(b); len(start) == 0 || start[0] != '{' && start[0] != '[' {
		return nil, false
	}
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var v json.RawMessage
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return docs, true
		case err != nil:
			return nil, false // it may be YAML yet
		}
		line := 1 + bytes.Count(b[:d.InputOffset()-int64(len(v))], []byte("\n"))
		n, err := JSONNode(v, line)
		if err != nil {
			return nil, false
		}
		docs = append(docs, n)
	}
}

// JSONNode is a JSON value as YAML has it. The Value of an object, which YAML leaves
// empty, is its text: there the numbers have all their digits.
func JSONNode(v []byte, line int) (*yaml.Node, error) {
	text := string(v)
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var read func() (*yaml.Node, error)
	read = func() (*yaml.Node, error) {
		start := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Line: line}
		switch t := token.(type) {
		case json.Delim:
			if n.Kind, n.Tag = yaml.SequenceNode, "!!seq"; t == '{' {
				n.Kind, n.Tag = yaml.MappingNode, "!!map"
			}
			for d.More() {
				c, err := read()
				if err != nil {
					return nil, err
				}
				n.Content = append(n.Content, c)
			}
			_, err = d.Token()
			if t == '{' {
				n.Value = strings.TrimLeft(text[start:d.InputOffset()], " \t\r\n:,")
			}
			return n, err
		case string:
			n.Tag, n.Value = "!!str", t
		case json.Number:
			n.Value = t.String() // without a tag: YAML tells by the digits which number it is
		case bool:
			n.Tag, n.Value = "!!bool", fmt.Sprint(t)
		default:
			n.Tag, n.Value = "!!null", "null"
		}
		return n, nil
	}
	return read()
}

// readNode reads the timers of one document.
func readNode(p document.Place, add func(Source)) error {
	one := func(p document.Place) error {
		d, err := readTimer(p)
		if err == nil {
			add(Source{p, d})
		}
		return err
	}
	switch {
	case p.Node.Kind == yaml.SequenceNode:
		return p.Items(one)
	case p.Node.Kind == yaml.MappingNode && holds(p.Node, "timers"):
		return p.Each([]string{"timers", "next_cursor"}, func(key string, at document.Place) error {
			if key == "timers" {
				return at.Items(one)
			}
			return nil
		})
	case p.Node.Tag == "!!null":
		return nil
	}
	return one(p)
}

func holds(mapping *yaml.Node, key string) bool {
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return true
		}
	}
	return false
}

func readTimer(p document.Place) (d api.Definition, err error) {
	if err := timerShape.Check(p); err != nil {
		return d, err
	}
	if err := CheckZeros(p); err != nil {
		return d, err
	}
	var v any
	if err := p.Node.Decode(&v); err != nil {
		return d, p.Errorf("%w", err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return d, p.Errorf("%w", err)
	}
	err = json.Unmarshal(b, &d)
	if t := (*json.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return d, p.Errorf("%s: cannot be a %s", t.Field, t.Value)
	}
	if err == nil && p.Node.Value == "" {
		if body, err := bodyOf(p.Node); err != nil {
			return d, p.Errorf("callback.body: %w", err)
		} else if body != nil {
			d.Callback.Body = body
		}
	}
	if err == nil && p.Node.Value != "" {
		// The body is the target's business: of JSON it stays as it is written.
		var raw struct {
			Callback struct{ Body json.RawMessage }
		}
		if err = json.Unmarshal([]byte(p.Node.Value), &raw); raw.Callback.Body != nil {
			d.Callback.Body = raw.Callback.Body
		}
	}
	if err != nil {
		return d, p.Errorf("%w", err)
	}
	return d, nil
}

// notZero are the fields whose zero a request would not have, so that the server would use
// its default instead.
var notZero = [][]string{
	{"schedule", "every"},
	{"schedule", "max_runs"},
	{"callback", "timeout"},
	{"retry", "max_attempts"},
	{"retry", "backoff"},
	{"retry", "multiplier"},
	{"retry", "max_backoff"},
	{"retry", "max_age"},
	{"stale_after"},
}

// CheckZeros refuses a zero in these fields of a timer.
func CheckZeros(p document.Place) error {
	for _, path := range notZero {
		n := p.Node
		for _, name := range path {
			n = valueOf(n, name)
		}
		if n == nil {
			continue
		}
		n = followed(n)
		number, err := strconv.ParseFloat(n.Value, 64)
		span, notSpan := time.ParseDuration(n.Value)
		if err == nil && number == 0 || notSpan == nil && span == 0 {
			at := document.Place{File: p.File, Node: n}
			return fmt.Errorf("%s: %s: must be greater than 0; omit the field for the default", at.Line(), strings.Join(path, "."))
		}
	}
	return nil
}

// shape is the fields of a kind of object, each with the shape of its value.
type shape struct {
	known  []string
	fields map[string]*shape
	texts  bool // an object of strings, whatever their names
	// secrets: a value may name a secret in the place of a string
	secrets bool
}

var timerShape = ShapeOf(reflect.TypeFor[api.Timer]())

// ShapeOf is nil for what is no object of ours.
func ShapeOf(t reflect.Type) *shape {
	switch {
	case t == reflect.TypeFor[map[string]string]():
		return &shape{texts: true}
	case t == reflect.TypeFor[time.Time]() || t.Kind() != reflect.Struct:
		return nil
	}
	s := &shape{fields: map[string]*shape{}}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			s.known = append(s.known, name)
			s.fields[name] = ShapeOf(f.Type)
			if t == reflect.TypeFor[api.Callback]() && name == "headers" {
				s.fields[name] = &shape{texts: true, secrets: true}
			}
		}
	}
	return s
}

// secretName is the shape of what names a secret in the place of a text.
var secretName = &shape{known: []string{"secret"}, fields: map[string]*shape{}}

// Check sees that there is no field which the shape does not have: one with a
// typing error is one that would not be in force.
func (s *shape) Check(p document.Place) error {
	switch {
	case s == nil:
		return nil
	case s.texts:
		return p.Each(nil, func(_ string, at document.Place) error {
			if s.secrets && at.Node.Tag == "!!map" {
				return secretName.Check(at)
			}
			if at.Node.Tag != "!!str" {
				return at.Errorf("has to be a string: put it in quotes")
			}
			return nil
		})
	}
	return p.Each(s.known, func(name string, at document.Place) error { return s.fields[name].Check(at) })
}
