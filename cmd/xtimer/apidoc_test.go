package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/golden"
)

// The page about the API in each language; apiTexts has the Chinese of each text of the
// English page.
const (
	apiPage        = "../../docs/api.md"
	chineseAPIPage = "../../docs/zh/api.md"
	apiTexts       = "../../docs/zh/api-texts.json"
)

// TestAPIPage holds docs/api.md and docs/zh/api.md against the OpenAPI document that the
// server serves: they are made from it. Anew: go test ./cmd/xtimer -run APIPage -update
func TestAPIPage(t *testing.T) {
	b, err := os.ReadFile("../../httpapi/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var d apiDocument
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	english, chinese := &apiWriter{document: &d}, &apiWriter{document: &d, chinese: map[string]string{}, used: map[string]bool{}}
	if b, err = os.ReadFile(apiTexts); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &chinese.chinese); err != nil {
		t.Fatalf("%s: %v", apiTexts, err)
	}
	sameAPIPage(t, apiPage, english.page())
	sameAPIPage(t, chineseAPIPage, chinese.page())
	for _, text := range chinese.missing {
		t.Errorf("%s has no Chinese for %q", apiTexts, text)
	}
	for text := range chinese.chinese {
		if !chinese.used[text] {
			t.Errorf("%s: the English page does not have the text %q", apiTexts, text)
		}
	}
}

// sameAPIPage holds a page against what it should be, or writes it.
func sameAPIPage(t *testing.T, page, want string) {
	t.Helper()
	if *golden.Update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what httpapi/openapi.json says: go test ./cmd/xtimer -run APIPage -update", page)
	}
	for _, gap := range []string{"{}", "| |", "``"} {
		if strings.Contains(want, gap) {
			t.Errorf("%s has %q: the generator does not know some word of the document", page, gap)
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

// apiWriter writes the page in English, or in Chinese if it has the texts.
type apiWriter struct {
	strings.Builder
	document *apiDocument
	chinese  map[string]string // by the English text
	used     map[string]bool   // texts of chinese
	missing  []string
}

// betweenHan is a space between Chinese characters, where Chinese has none.
var betweenHan = regexp.MustCompile(`(\p{Han}) (\p{Han})`)

// say is a text in the language of the page, with its verbs filled in.
func (w *apiWriter) say(text string, args ...any) string {
	if w.chinese != nil && text != "" {
		if t, ok := w.chinese[text]; ok {
			w.used[text], text = true, t
		} else if !slices.Contains(w.missing, text) {
			w.missing = append(w.missing, text)
		}
	}
	if len(args) == 0 {
		return text
	}
	return fmt.Sprintf(text, args...)
}

// line writes a line in the language of the page; empty lines may come before it.
func (w *apiWriter) line(text string, args ...any) {
	said := strings.TrimLeft(text, "\n")
	w.WriteString(text[:len(text)-len(said)] + w.say(said, args...) + "\n")
}

func (w *apiWriter) page() string {
	d := w.document
	w.line("# The API")
	w.line("\nGenerated from `httpapi/openapi.json`, which a server serves at `/openapi.json`. Edit that file, not this page.")
	w.WriteString("\n" + w.say(d.Info.Description) + "\n")
	w.line("\nIf tokens are set, send `Authorization: Bearer TOKEN`; *role* is the role that the token must have. " +
		"[delivery.md](delivery.md) describes the calls that the server makes.")
	for _, tag := range d.Tags {
		w.WriteString("\n## " + w.say(tag.Name) + "\n")
		for _, p := range d.Paths {
			for _, op := range p.value {
				if slices.Contains(op.value.Tags, tag.Name) {
					w.operation(&op.value, strings.ToUpper(op.name)+" "+p.name)
				}
			}
		}
	}
	w.line("\n## Errors")
	w.line("\n`application/problem+json`, of the type [Problem](#problem).")
	w.line("\n| status | meaning |\n|---|---|")
	for _, r := range d.Components.Responses {
		fmt.Fprintf(w, "| %s | %s |\n", r.name, w.say(r.value.Description))
	}
	w.line("\n## Types")
	for _, s := range d.Components.Schemas {
		w.schema(&s.value, s.name)
	}
	if w.chinese == nil {
		return w.String()
	}
	return betweenHan.ReplaceAllString(w.String(), "$1$2")
}

func (w *apiWriter) operation(op *apiOperation, head string) {
	role := w.say("role `%s`", op.Role)
	if op.Role == "open" {
		role = w.say("open to all")
	}
	fmt.Fprintf(w, "\n### %s\n\n", head)
	w.line("%s; %s.", w.say(op.Summary), role)
	if len(op.Parameters) > 0 {
		w.line("\n| parameter | in | what |\n|---|---|---|")
		for _, p := range op.Parameters {
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", p.Name, w.say(p.In), w.join("; ", cell(w.say(p.Description)), w.words(&p.Schema)))
		}
	}
	w.WriteString("\n")
	if op.RequestBody != nil {
		w.line("Body: %s.", w.contents(op.RequestBody.Content))
		w.WriteString("\n")
	}
	var errors []string
	for _, r := range op.Responses {
		if r.value.Ref != "" {
			errors = append(errors, r.name)
			continue
		}
		fmt.Fprintf(w, "- %s", w.say("%s: %s", r.name, w.say(r.value.Description)))
		if len(r.value.Content) > 0 {
			w.WriteString(w.say(" – %s", w.contents(r.value.Content)))
		}
		w.WriteString("\n")
	}
	if len(errors) > 0 {
		w.line("- [errors](#errors): %s", strings.Join(errors, ", "))
	}
}

// contents are types of a body, with what each holds.
func (w *apiWriter) contents(types ordered[apiContent]) string {
	var all []string
	for _, c := range types {
		all = append(all, w.say("%s as `%s`", w.words(&c.value.Schema), c.name))
	}
	return w.join(", or ", all...)
}

func (w *apiWriter) schema(s *apiSchema, name string) {
	fmt.Fprintf(w, "\n### %s\n\n", name)
	if len(s.Properties) == 0 {
		w.line("%s.", w.words(s))
		return
	}
	if s.Description != "" {
		fmt.Fprintf(w, "%s\n\n", w.say(s.Description))
	}
	w.line("| field | what |\n|---|---|")
	for _, p := range s.Properties {
		words := w.words(&p.value)
		if slices.Contains(s.Required, p.name) {
			words = w.join("; ", words, w.say("always there"))
		}
		fmt.Fprintf(w, "| `%s` | %s |\n", p.name, cell(words))
	}
}

// words say what a value of the schema is.
func (w *apiWriter) words(s *apiSchema) string {
	if s.Ref != "" {
		name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
		return w.join(", ", fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)), w.say(s.Description))
	}
	var is string
	switch {
	case len(s.Enum) > 0:
		var all []string
		for _, e := range s.Enum {
			all = append(all, fmt.Sprint(e))
		}
		is = "`" + w.join("`, `", all...) + "`"
	case len(s.AnyOf)+len(s.OneOf) > 0:
		var all []string
		for _, o := range slices.Concat(s.AnyOf, s.OneOf) {
			if o.Type != "null" { // in a request, the same as leaving it out
				all = append(all, w.words(&o))
			}
		}
		is = w.join(" or ", all...)
	case s.Items != nil:
		is = w.say("list of %s", w.words(s.Items))
	case len(s.Properties) > 0:
		var all []string
		for _, p := range s.Properties {
			all = append(all, w.join(" ", "`"+p.name+"`", w.words(&p.value)))
		}
		is = w.say("object of %s", w.join("; ", all...))
	default:
		is = w.say(s.Type)
	}
	return w.join(", ", is, w.limits(s), w.say(s.Description))
}

func (w *apiWriter) limits(s *apiSchema) string {
	var all []string
	if s.Minimum != nil && s.Maximum != nil {
		all = append(all, fmt.Sprintf("%v…%v", *s.Minimum, *s.Maximum))
	} else if s.Minimum != nil {
		all = append(all, w.say("at least %v", *s.Minimum))
	}
	if s.MaxLength != nil {
		all = append(all, w.say("at most %d long", *s.MaxLength))
	}
	if s.Pattern != "" {
		all = append(all, "`"+s.Pattern+"`")
	}
	if s.Default != nil {
		all = append(all, w.say("default `%v`", s.Default))
	}
	return w.join(", ", all...)
}

// join leaves out what is empty.
func (w *apiWriter) join(sep string, parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, w.say(sep))
}

// cell escapes a text for a table of Markdown.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
