package console

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"xtimer/httpapi/client"
)

// A definition in a form: each input is named by its path in the JSON, and what
// stands in it is sent as it is. Whether it is right is the API's to say; what
// it says of a field is shown beside it.

// numbers are the inputs that are numbers in JSON; all others are text.
var numbers = []string{"schedule.max_runs", "retry.max_attempts", "retry.multiplier", "retry.jitter", "priority", "callback.batch.max"}

// inputs are the texts and choices; those below have a form of their own.
var inputs = append([]string{
	"app", "name", "schedule.time_zone", "schedule.start_at", "schedule.end_at", "schedule.jitter",
	"callback.url", "callback.method", "callback.timeout", "callback.success", "callback.batch.wait",
	"retry.backoff", "retry.max_backoff", "retry.max_age", "stale_after", "misfire.policy", "misfire.window", "overlap", "delivery",
}, numbers...)

const (
	scheduleKind = "kind"             // cron, every, at or delay …
	scheduleWhen = "when"             // … and its value
	headersInput = "callback.headers" // lines "Name: value"
	labelsInput  = "labels"           // lines "key=value"
	flowInput    = "flow"             // keys with spaces between
	bodyKind     = "body_kind"        // "", body, body_text or body_base64 …
	bodyInput    = "body"             // … and its value
)

var scheduleKinds = []string{"cron", "every", "at", "delay"}

// form is the inputs, and what is wrong with them.
type form struct {
	ID      string // "" for a new timer
	Version string
	Values  map[string]string
	Errors  map[string]string
	Error   string // of no field
	Preview *previewData
}

// Get and Wrong are for the template: an input's value, and what is wrong.
func (f *form) Get(name string) string { return f.Values[name] }

// Wrong is what the API said of a field.
func (f *form) Wrong(name string) string { return f.Errors[name] }

// formOf shows a definition.
func formOf(d client.Definition) *form {
	f := &form{Values: map[string]string{}}
	t := tree(d).(map[string]any)
	flatten(f.Values, "", t)
	for _, kind := range scheduleKinds {
		if when, ok := f.Values["schedule."+kind]; ok {
			f.Values[scheduleKind], f.Values[scheduleWhen] = kind, when
		}
	}
	f.Values[headersInput] = lines(d.Callback.Headers, ": ") + secretLines(d.Callback.SecretHeaders)
	f.Values[labelsInput] = lines(d.Labels, "=")
	f.Values[flowInput] = strings.Join(d.Flow, " ")
	callback, _ := t["callback"].(map[string]any)
	f.Values[bodyInput] = ""
	for _, kind := range []string{"body", "body_text", "body_base64"} {
		body, ok := callback[kind]
		if !ok {
			continue
		}
		f.Values[bodyKind] = kind
		if s, ok := body.(string); ok && kind != "body" {
			f.Values[bodyInput] = s
		} else {
			b, _ := json.MarshalIndent(body, "", "  ") // it was JSON a moment ago
			f.Values[bodyInput] = string(b)
		}
	}
	return f
}

func lines(m map[string]string, between string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString(k + between + m[k] + "\n")
	}
	return b.String()
}

// readForm is what was sent.
func readForm(v *visit) *form {
	f := &form{ID: v.r.PathValue("id"), Version: v.r.PostForm.Get("version"), Values: map[string]string{}}
	for name := range v.r.PostForm {
		f.Values[name] = typed(name, v.r.PostForm.Get(name))
	}
	return f
}

// typed is what somebody typed into an input: without the white space around it,
// and the body with the newlines that it had before a browser sent it.
func typed(name, value string) string {
	if name == bodyInput {
		return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(value)
	}
	return strings.TrimSpace(value)
}

// document is the definition that the form says.
func (f *form) document() map[string]any {
	doc := map[string]any{"schedule": map[string]any{}, "callback": map[string]any{}}
	for _, name := range inputs {
		if value := f.Values[name]; value != "" {
			put(doc, name, value)
		}
	}
	for _, name := range numbers {
		if value := f.Values[name]; json.Valid([]byte(value)) && strings.ContainsAny(value[:1], "-0123456789") {
			put(doc, name, json.Number(value))
		}
	}
	if kind, when := f.Values[scheduleKind], f.Values[scheduleWhen]; slices.Contains(scheduleKinds, kind) && when != "" {
		put(doc, "schedule."+kind, when)
	}
	for name, between := range map[string]string{headersInput: ":", labelsInput: "="} {
		if m := pairs(f.Values[name], between); len(m) > 0 {
			put(doc, name, withSecrets(name, m))
		}
	}
	if keys := strings.Fields(f.Values[flowInput]); len(keys) > 0 {
		put(doc, flowInput, keys)
	}
	switch kind, body := f.Values[bodyKind], f.Values[bodyInput]; kind {
	case "body":
		if json.Valid([]byte(body)) {
			put(doc, "callback.body", json.RawMessage(body))
		} else {
			f.Errors = map[string]string{bodyInput: "is not JSON"}
		}
	case "body_text", "body_base64":
		put(doc, "callback."+kind, body)
	}
	return doc
}

// put sets a value at its path.
func put(doc map[string]any, path string, value any) {
	head, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		doc[head] = value
		return
	}
	inner, ok := doc[head].(map[string]any)
	if !ok {
		inner = map[string]any{}
		doc[head] = inner
	}
	put(inner, rest, value)
}

// pairs reads lines of a name and a value.
func pairs(text, between string) map[string]any {
	m := map[string]any{}
	for line := range strings.Lines(text) {
		if k, value, _ := strings.Cut(line, between); strings.TrimSpace(k) != "" {
			m[strings.TrimSpace(k)] = strings.TrimSpace(value)
		}
	}
	return m
}

// difference is the merge patch (RFC 7396) that makes is of was.
func difference(was, is map[string]any) map[string]any {
	patch := map[string]any{}
	for k := range was {
		if _, ok := is[k]; !ok {
			patch[k] = nil
		}
	}
	for k, x := range is {
		a, ok1 := was[k].(map[string]any)
		b, ok2 := x.(map[string]any)
		switch {
		case ok1 && ok2:
			if d := difference(a, b); len(d) > 0 {
				patch[k] = d
			}
		case text(was[k]) != text(x):
			patch[k] = x
		}
	}
	return patch
}

// merged is what a merge patch makes of a value: a patch cannot set a null in an object.
func merged(target, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	t, ok := target.(map[string]any)
	if !ok {
		t = map[string]any{}
	}
	for name, v := range p {
		if v == nil {
			delete(t, name)
		} else {
			t[name] = merged(t[name], v)
		}
	}
	return t
}

// refused keeps what the API says of the fields, to show the form again.
func (f *form) refused(err error) bool {
	var problem *client.Error
	if !errors.As(err, &problem) || problem.Status < 400 || problem.Status == http.StatusUnauthorized || problem.Status >= 500 {
		return false
	}
	f.Error, f.Errors = problem.Detail, map[string]string{}
	for _, x := range problem.Fields {
		name := x.Field
		if kind, ok := strings.CutPrefix(name, "schedule."); ok && slices.Contains(scheduleKinds, kind) || name == "schedule" {
			name = scheduleWhen
		}
		if strings.HasPrefix(name, "callback.body") {
			name = bodyInput
		}
		for _, whole := range []string{headersInput, labelsInput, flowInput} {
			if strings.HasPrefix(name, whole) {
				name = whole
			}
		}
		f.Errors[name] = x.Detail
	}
	return true
}

// newTimer is GET /timers/new. The parameter from is the id of a timer to begin with.
func newTimer(v *visit) error {
	if !v.MayWrite() {
		return errLooks
	}
	f := &form{Values: map[string]string{
		"app": v.grant.App, scheduleKind: "cron", scheduleWhen: "0 9 * * MON-FRI", "callback.method": "POST", "callback.url": "",
	}}
	if v.grant.App == "*" {
		f.Values["app"] = ""
	}
	if from := v.query("from"); from != "" {
		t, err := v.api.Get(v.ctx, from)
		if err != nil {
			return err
		}
		f = formOf(t.Definition)
		if t.Name != "" {
			f.Values["name"] = t.Name + "-copy"
		}
	}
	f.Preview = v.preview(f)
	return v.show("edit", v.T("New timer"), f)
}

// createTimer is POST /timers/new.
func createTimer(v *visit) error {
	f := readForm(v)
	f.ID = ""
	var d client.Definition
	doc := f.document()
	err := json.Unmarshal([]byte(text(doc)), &d)
	if err != nil {
		err = &client.Error{Status: http.StatusBadRequest, Detail: err.Error()}
	} else {
		f.refuseZeros(doc, d)
	}
	if err == nil && f.Errors == nil {
		var made *client.PutResult
		if made, err = v.api.Create(v.ctx, d); err == nil {
			return redirect(timerPath(made.Timer.ID))
		}
	}
	return v.again(f, v.T("New timer"), err)
}

// refuseZeros refuses what a request would leave out, where the default would take its
// place: a field whose zero has no meaning.
func (f *form) refuseZeros(doc map[string]any, d client.Definition) {
	typed, sent := map[string]string{}, map[string]string{}
	flatten(typed, "", doc)
	flatten(sent, "", tree(d).(map[string]any))
	for _, name := range inputs {
		if _, ok := sent[name]; !ok && typed[name] != "" && name != "schedule.jitter" {
			if f.Errors == nil {
				f.Errors = map[string]string{}
			}
			f.Errors[name] = "must be greater than 0"
		}
	}
}

// again shows a form that was not taken, with what is wrong.
func (v *visit) again(f *form, title string, err error) error {
	if err != nil && !f.refused(err) {
		return err
	}
	v.status = http.StatusUnprocessableEntity
	f.Preview = v.preview(f)
	return v.show("edit", title, f)
}

func editTimer(v *visit) error {
	if !v.MayWrite() {
		return errLooks
	}
	t, err := v.api.Get(v.ctx, v.r.PathValue("id"))
	if err != nil {
		return err
	}
	f := formOf(t.Definition)
	f.ID, f.Version = t.ID, text(t.Version)
	f.Preview = v.preview(f)
	return v.show("edit", v.T("Edit"), f)
}

// changeTimer is POST /timers/{id}/edit: a merge patch of what differs, if the
// timer still is what the form was filled from.
func changeTimer(v *visit) error {
	f := readForm(v)
	t, err := v.api.Get(v.ctx, f.ID)
	if err != nil {
		return err
	}
	var version int
	if json.Unmarshal([]byte(f.Version), &version) != nil {
		return &fault{http.StatusBadRequest, "The form is invalid."}
	}
	// Both in the words of a form, for a duration can be written in many ways, and
	// as they come back from a browser, which changes white space.
	shown := formOf(t.Definition)
	for name, value := range shown.Values {
		shown.Values[name] = typed(name, value)
	}
	was, is := shown.document(), f.document()
	is["app"], is["name"] = was["app"], was["name"]
	if was["name"] == nil {
		delete(is, "name")
	}
	if f.Errors == nil {
		patch := difference(tree(was).(map[string]any), tree(is).(map[string]any))
		if text(merged(tree(was), patch)) != text(tree(is)) {
			f.Errors = map[string]string{bodyInput: "a null in an object cannot be set by this form, only by PUT or xtimer timer apply"}
			return v.again(f, v.T("Edit"), nil)
		}
		if len(patch) > 0 {
			_, err = v.api.Patch(v.ctx, f.ID, patch, client.IfMatch(version))
		}
		if err == nil {
			return redirect(timerPath(f.ID))
		}
	}
	return v.again(f, v.T("Edit"), err)
}
