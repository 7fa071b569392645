package wire

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
)

// entry is a field of an object, its value as it stands.
type entry struct {
	name  string // unquoted
	value jsontext.Value
}

// CheckPatch verifies that a patch is an object in strict JSON, not nested too deep, and
// without unknown fields: with null, one would change nothing, and so hide a slip.
func CheckPatch(patch []byte) error {
	err := Decode(patch, func(d *Decoder) {
		if k := d.dec.PeekKind(); k != '{' && k != 0 {
			d.skip()
			if d.err == nil {
				d.fail("wrong_type", "a merge patch of a timer must be an object, not %s", kindName(k))
			}
			return
		}
		if v := d.raw(); tooDeep(v, maxPatchDepth) {
			d.fail("too_deep", "the patch is nested deeper than %d", maxPatchDepth)
		}
	})
	if err != nil {
		return err
	}
	return Decode(patch, func(d *Decoder) { Object(d, new(struct{}), patchNames) })
}

// patchNames are the names that a patch may have. The values are read when they are merged.
var patchNames = namesOf(timerFields, map[string][]Field[struct{}]{
	"schedule": namesOf(scheduleFields, nil),
	"callback": namesOf(callbackFields, nil),
	"retry":    namesOf(retryFields, nil),
	"misfire":  namesOf(misfireFields, nil),
})

// namesOf are the names of a table, and of the objects within that have tables.
func namesOf[T any](table []Field[T], within map[string][]Field[struct{}]) []Field[struct{}] {
	names := make([]Field[struct{}], len(table))
	for i, f := range table {
		names[i] = Field[struct{}]{f.Name, func(d *Decoder, v *struct{}) {
			if inner := within[f.Name]; inner != nil && d.dec.PeekKind() == '{' {
				Object(d, v, inner)
				return
			}
			d.skip()
		}}
	}
	return names
}

// Patched is the definition after a patch.
func Patched(old engine.Definition, patch []byte) (engine.Definition, error) {
	doc := append(appendDefinition([]byte{'{'}, &old), '}')
	merged, err := mergePatch(doc, patch)
	if err != nil {
		return old, err
	}
	d := engine.NewDefinition()
	if err := DecodeTimer(merged, &d); err != nil {
		return old, err
	}
	if d.App != old.App {
		return old, engine.Invalid("app", "immutable", "the app of a timer cannot be changed")
	}
	if d.Name != old.Name {
		return old, engine.Invalid("name", "immutable", "the name of a timer cannot be changed")
	}
	return d, nil
}

// mergePatch is RFC 7396 on the text of two valid values: fields keep their
// order, and numbers their digits.
func mergePatch(target, patch jsontext.Value) (jsontext.Value, error) {
	if patch.Kind() != '{' {
		return patch, nil
	}
	var fields []entry
	if target.Kind() == '{' {
		var err error
		if fields, err = entries(target); err != nil {
			return nil, err
		}
	}
	changes, err := entries(patch)
	if err != nil {
		return nil, err
	}
	place := make(map[string]int, len(fields))
	for i, f := range fields {
		place[f.name] = i
	}
	for _, c := range changes {
		i, there := place[c.name]
		switch {
		case c.value.Kind() == 'n':
			if there {
				fields[i].value = nil
			}
			continue
		case !there:
			i, place[c.name] = len(fields), len(fields)
			fields = append(fields, entry{name: c.name})
		}
		if fields[i].value, err = mergePatch(fields[i].value, c.value); err != nil {
			return nil, err
		}
	}
	b := []byte{'{'}
	for _, f := range fields {
		if f.value == nil {
			continue // removed
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(AppendText(b, f.name), ':'), f.value...)
	}
	return append(b, '}'), nil
}

// entries takes an object apart.
func entries(object jsontext.Value) (list []entry, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		e := entry{name: name.String()}
		v, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		e.value = v.Clone()
		list = append(list, e)
	}
	return list, nil
}
