package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/golden"
)

const apiPage = "../../docs/api.md"

// TestAPIPage holds docs/api.md against the OpenAPI document that the server
// serves: it is made from it. Anew: go test ./cmd/xtimer -run APIPage -update
func TestAPIPage(t *testing.T) {
	b, err := os.ReadFile("../../httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d apiDocument
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	want := d.page()
	if *golden.Update {
		if err := os.WriteFile(apiPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/api.md is not what httpapi/openapi.json says: go test ./cmd/xtimer -run APIPage -update")
	}
	for _, gap := range []string{"{}", "| |", "``"} {
		if strings.Contains(want, gap) {
			t.Errorf("docs/api.md has %q: the generator does not know some word of the document", gap)
		}
	}
}

// ordered is a JSON object whose members stay in the order of the document,
// which is the order in which people should read them.
type ordered[T any] []member[T]

type member[T any] struct {
	name  string
	value T
}

func (o *ordered[T]) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(strings.NewReader(string(b)))
	if _, err := dec.Token(); err != nil { // {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		m := member[T]{name: name.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		*o = append(*o, m)
	}
	return nil
}

type apiDocument struct {
	Info       struct{ Description string }
	Tags       []struct{ Name string }
	Paths      ordered[ordered[apiOperation]]
	Components struct {
		Responses ordered[apiResponse]
		Schemas   ordered[apiSchema]
	}
}

type apiOperation struct {
	OperationID, Summary string
	Tags                 []string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                apiSchema
	}
	RequestBody *struct{ Content ordered[apiContent] }
	Responses   ordered[apiResponse]
	Role        string `json:"x-role"`
}

type apiContent struct{ Schema apiSchema }

type apiResponse struct {
	Ref         string `json:"$ref"`
	Description string
	Content     ordered[apiContent]
}

// apiSchema is as much of JSON Schema as the document uses.
type apiSchema struct {
	Ref                  string `json:"$ref"`
	Type                 string
	Description, Pattern string
	Enum                 []any
	Default              any
	Minimum, Maximum     *json.Number
	MinLength, MaxLength *int
	Properties           ordered[apiSchema]
	Items                *apiSchema
	AnyOf, OneOf         []apiSchema
	Required             []string
}

func (d *apiDocument) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The API\n\nGenerated from `httpapi/openapi.json`, which a server serves at `/openapi.json`. Edit that file, not this page.\n\n%s\n\n"+
		"If tokens are set, send `Authorization: Bearer TOKEN`; *role* is the role that the token must have. "+
		"[delivery.md](delivery.md) describes the calls that the server makes.\n", d.Info.Description)
	for _, tag := range d.Tags {
		fmt.Fprintf(&b, "\n## %s\n", tag.Name)
		for _, p := range d.Paths {
			for _, op := range p.value {
				if slices.Contains(op.value.Tags, tag.Name) {
					op.value.write(&b, strings.ToUpper(op.name)+" "+p.name)
				}
			}
		}
	}
	b.WriteString("\n## Errors\n\n`application/problem+json`, of the type [Problem](#problem).\n\n| status | meaning |\n|---|---|\n")
	for _, r := range d.Components.Responses {
		fmt.Fprintf(&b, "| %s | %s |\n", r.name, r.value.Description)
	}
	b.WriteString("\n## Types\n")
	for _, s := range d.Components.Schemas {
		s.value.write(&b, s.name)
	}
	return b.String()
}

func (op *apiOperation) write(b *strings.Builder, head string) {
	role := "role `" + op.Role + "`"
	if op.Role == "open" {
		role = "open to all"
	}
	fmt.Fprintf(b, "\n### %s\n\n%s; %s.\n", head, op.Summary, role)
	if len(op.Parameters) > 0 {
		b.WriteString("\n| parameter | in | what |\n|---|---|---|\n")
		for _, p := range op.Parameters {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Name, p.In, join("; ", cell(p.Description), p.Schema.words()))
		}
	}
	b.WriteString("\n")
	if op.RequestBody != nil {
		fmt.Fprintf(b, "Body: %s.\n\n", contents(op.RequestBody.Content))
	}
	var errors []string
	for _, r := range op.Responses {
		if r.value.Ref != "" {
			errors = append(errors, r.name)
			continue
		}
		fmt.Fprintf(b, "- %s: %s", r.name, r.value.Description)
		if len(r.value.Content) > 0 {
			fmt.Fprintf(b, " – %s", contents(r.value.Content))
		}
		b.WriteString("\n")
	}
	if len(errors) > 0 {
		fmt.Fprintf(b, "- [errors](#errors): %s\n", strings.Join(errors, ", "))
	}
}

// contents are types of a body, with what each holds.
func contents(types ordered[apiContent]) string {
	var all []string
	for _, c := range types {
		all = append(all, join(" as ", c.value.Schema.words(), "`"+c.name+"`"))
	}
	return strings.Join(all, ", or ")
}

func (s *apiSchema) write(b *strings.Builder, name string) {
	fmt.Fprintf(b, "\n### %s\n\n", name)
	if len(s.Properties) == 0 {
		fmt.Fprintf(b, "%s.\n", s.words())
		return
	}
	if s.Description != "" {
		fmt.Fprintf(b, "%s\n\n", s.Description)
	}
	s.table(b)
}

// table has a row for each property.
func (s *apiSchema) table(b *strings.Builder) {
	b.WriteString("| field | what |\n|---|---|\n")
	for _, p := range s.Properties {
		words := p.value.words()
		if slices.Contains(s.Required, p.name) {
			words += "; always there"
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", p.name, cell(words))
	}
}

// words say what a value of the schema is.
func (s *apiSchema) words() string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	var is string
	switch {
	case len(s.Enum) > 0:
		var all []string
		for _, e := range s.Enum {
			all = append(all, fmt.Sprintf("`%v`", e))
		}
		is = strings.Join(all, ", ")
	case len(s.AnyOf)+len(s.OneOf) > 0:
		var all []string
		for _, o := range slices.Concat(s.AnyOf, s.OneOf) {
			if o.Type != "null" { // in a request, the same as leaving it out
				all = append(all, o.words())
			}
		}
		is = strings.Join(all, " or ")
	case s.Items != nil:
		is = "list of " + s.Items.words()
	case len(s.Properties) > 0:
		var all []string
		for _, p := range s.Properties {
			all = append(all, join(" ", "`"+p.name+"`", p.value.words()))
		}
		is = "object of " + strings.Join(all, "; ")
	default:
		is = s.Type
	}
	return join(", ", is, s.limits(), s.Description)
}

func (s *apiSchema) limits() string {
	var all []string
	if s.Minimum != nil && s.Maximum != nil {
		all = append(all, fmt.Sprintf("%v…%v", *s.Minimum, *s.Maximum))
	} else if s.Minimum != nil {
		all = append(all, fmt.Sprintf("at least %v", *s.Minimum))
	}
	if s.MaxLength != nil {
		all = append(all, fmt.Sprintf("at most %d long", *s.MaxLength))
	}
	if s.Pattern != "" {
		all = append(all, "`"+s.Pattern+"`")
	}
	if s.Default != nil {
		all = append(all, fmt.Sprintf("default `%v`", s.Default))
	}
	return strings.Join(all, ", ")
}

// join leaves out what is empty.
func join(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

// cell escapes a text for a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
