package definition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine"
	api "xtimer/httpapi/client"
)

// Change is a field that a new definition changes. From is "" where the field
// was not set, To where it will not be.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// Diff is what replacing one definition by another changes, field by field. A
// field that is left out is the same as one with its default.
func Diff(from, to api.Definition) ([]Change, error) {
	Fill(&from)
	Fill(&to)
	if reflect.DeepEqual(from, to) {
		return nil, nil // the most common case, and the cheap one
	}
	a, err := fields(from)
	if err != nil {
		return nil, err
	}
	b, err := fields(to)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	var changes []Change
	for _, f := range slices.Sorted(maps.Keys(all)) {
		if a[f] != b[f] {
			changes = append(changes, Change{f, a[f], b[f]})
		}
	}
	return changes, nil
}

// fields are the fields of a definition by their paths, each with its value as
// JSON.
func fields(d api.Definition) (map[string]string, error) {
	b, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("cannot compare %s/%s: %w", d.App, d.Name, err)
	}
	var tree map[string]any
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		return nil, fmt.Errorf("cannot compare %s/%s: %w", d.App, d.Name, err)
	}
	flat := map[string]string{}
	return flat, flatten(flat, "", tree)
}

func flatten(flat map[string]string, path string, tree map[string]any) error {
	for name, v := range tree {
		at := path + name
		// A callback's body is one value: its fields are the target's business.
		if sub, ok := v.(map[string]any); ok && at != "callback.body" {
			if err := flatten(flat, at+".", sub); err != nil {
				return err
			}
			continue
		}
		var b bytes.Buffer
		if err := terminal.WriteJSON(&b, v, ""); err != nil {
			return err
		}
		flat[at] = string(bytes.TrimSpace(b.Bytes()))
	}
	return nil
}

// Fill writes the server's defaults into what is not set.
func Fill(d *api.Definition) {
	def := engine.NewDefinition()
	or(&d.Callback.Method, def.Callback.Method)
	or(&d.Callback.Timeout, def.Callback.Timeout)
	or(&d.Callback.Success, def.Callback.Success)
	or(&d.Retry.MaxAttempts, def.Retry.MaxAttempts)
	or(&d.Retry.Backoff, def.Retry.Backoff)
	or(&d.Retry.Multiplier, def.Retry.Multiplier)
	or(&d.Retry.MaxBackoff, def.Retry.MaxBackoff)
	or(&d.Retry.Jitter, &def.Retry.Jitter)
	or(&d.Retry.MaxAge, def.Retry.MaxAge)
	or(&d.Misfire.Policy, def.Misfire.Policy.String())
	or(&d.Misfire.Window, &def.Misfire.Window)
	or(&d.Overlap, def.Overlap.String())
	or(&d.Delivery, def.Delivery.String())
	or(&d.Priority, &def.Priority)
	if len(d.Labels) == 0 {
		d.Labels = nil
	}
	if len(d.Callback.Headers) == 0 {
		d.Callback.Headers = nil
	}
	if len(d.Callback.SecretHeaders) == 0 {
		d.Callback.SecretHeaders = nil
	}
}

func or[T comparable](to *T, def T) { *to = cmp.Or(*to, def) }
