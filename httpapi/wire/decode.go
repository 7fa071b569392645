package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
)

// Decoder reads one JSON value. Decoding is strict and by table: each kind of object has a table of its
// fields, such as those of decode_timer.go, and each field a reader of its
// value (decode_value.go). The tokens come from jsontext, which refuses
// duplicate names, invalid UTF-8 and every liberty with the grammar.
//
//   - A name that is not in a table is refused; names are case-sensitive.
//   - null means the same as omitting the field: the default applies.
//   - A syntax error ends the decoding at once. The error of a field is recorded
//     with the field's path, and decoding continues, so that a response lists all
//     errors.
//   - All decoded values are copies: the decoder keeps no part of the request's buffer.
//
// Reflection (json.Unmarshal into structs, BenchmarkDecodeReflect) takes half as
// long again, with times and durations still to be read, and ends at the first
// fault.
type Decoder struct {
	dec *jsontext.Decoder
	buf bytes.Buffer
	// prefix stands before every path: "timers[3]." in a batch.
	prefix string
	// faults of fields so far; malformed tells that one of them is of the
	// form (400) and not of the value (422).
	faults    []engine.FieldFault
	malformed bool
	code      string // of the first fault
	// err is what ended the decoding: a fault of the grammar.
	err error
	// scratch holds the last string that had escapes in it.
	scratch []byte
}

// maxDepth bounds the nesting of a callback's body, the only value whose
// nesting the tables do not bound.
const maxDepth = 32

// maxPatchDepth is that of a patch: a callback's body is two objects deep in it.
const maxPatchDepth = maxDepth + 2

var decoders = sync.Pool{New: func() any { return &Decoder{dec: new(jsontext.Decoder)} }}

// Decode reads one JSON value of the whole of b with read.
func Decode(b []byte, read func(d *Decoder)) error {
	return DecodeAt("", b, read)
}

// DecodeAt decodes a part of a larger value: it adds prefix to the path of each fault.
func DecodeAt(prefix string, b []byte, read func(d *Decoder)) error {
	d := decoders.Get().(*Decoder)
	defer d.release()
	d.reset(prefix, b)
	read(d)
	d.end()
	return d.fault()
}

func (d *Decoder) reset(prefix string, b []byte) {
	d.buf = *bytes.NewBuffer(b)
	d.dec.Reset(&d.buf)
	d.prefix, d.err = prefix, nil
	d.clear()
}

func (d *Decoder) release() {
	d.buf = bytes.Buffer{}
	d.dec.Reset(&d.buf) // lets go of the request's buffer
	d.clear()
	decoders.Put(d)
}

func (d *Decoder) clear() { d.faults, d.malformed, d.code = nil, false, "" }

// Apart reads an item and returns the faults of its fields. The decoder continues with
// the rest of the value as if the item had no fault. A syntax error ends the decoding.
func (d *Decoder) Apart(read func()) error {
	faults, malformed, code := d.faults, d.malformed, d.code
	d.clear()
	read()
	if d.err != nil {
		return nil
	}
	err := d.fault()
	d.faults, d.malformed, d.code = faults, malformed, code
	return err
}

// Refuse ends the decoding with err.
func (d *Decoder) Refuse(err error) { d.err = err }

// end refuses what stands behind the value.
func (d *Decoder) end() {
	if d.err != nil {
		return
	}
	if _, err := d.dec.ReadToken(); err != io.EOF {
		d.fail("malformed_json", "unexpected data follows the JSON value at byte %d", d.dec.InputOffset())
	}
}

// fault returns nil, or the fault with all errors found.
func (d *Decoder) fault() error {
	if d.err != nil {
		return d.err
	}
	if len(d.faults) == 0 {
		return nil
	}
	f := &engine.Fault{Kind: engine.FaultInvalid, Code: d.code, Fields: d.faults}
	if d.malformed {
		f.Kind = engine.FaultMalformed
	}
	f.Detail = summary(f.Fields)
	return f
}

// fail ends the decoding with a fault that belongs to no field.
func (d *Decoder) fail(code, format string, args ...any) {
	d.err = &engine.Fault{Kind: engine.FaultMalformed, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// broken ends the decoding with a fault of the grammar.
func (d *Decoder) broken(err error) {
	if d.err != nil {
		return
	}
	var s *jsontext.SyntacticError
	switch {
	case !errors.As(err, &s) || errors.Is(err, io.ErrUnexpectedEOF):
		if strings.TrimSpace(string(d.dec.UnreadBuffer())) == "" && d.dec.InputOffset() == 0 {
			d.fail("malformed_json", "the body is empty; it must be JSON")
			return
		}
		d.fail("malformed_json", "the JSON ends unexpectedly")
	case errors.Is(s.Err, jsontext.ErrDuplicateName):
		field := d.prefix + d.dotted(s.JSONPointer)
		d.err = &engine.Fault{
			Kind: engine.FaultMalformed, Code: "duplicate_field", Detail: field + " is given twice",
			Fields: []engine.FieldFault{{Field: field, Detail: "is given twice"}},
		}
	default:
		field := strings.TrimSuffix(d.prefix+d.dotted(s.JSONPointer), ".")
		what := strings.TrimPrefix(s.Err.Error(), "jsontext: ")
		d.fail("malformed_json", "invalid JSON at byte %d: %s", s.ByteOffset, what)
		if field != "" {
			d.err.(*engine.Fault).Fields = []engine.FieldFault{{Field: field, Detail: what}}
		}
	}
}

// wrong notes that the value just read has the wrong form: 400.
func (d *Decoder) wrong(format string, args ...any) { d.Note(true, "wrong_type", format, args...) }

// Invalid records that the value just read is not valid: 422.
func (d *Decoder) Invalid(code, format string, args ...any) { d.Note(false, code, format, args...) }

// maxFaults bounds the faults that one answer lists.
const maxFaults = 20

// Note records a fault of the value just read: of its form (malformed), or of the value.
func (d *Decoder) Note(malformed bool, code, format string, args ...any) {
	if len(d.faults) >= maxFaults {
		return
	}
	field := strings.TrimSuffix(d.prefix+d.dotted(d.dec.StackPointer()), ".")
	if field == "" {
		d.fail(code, "the body "+format, args...)
		return
	}
	if d.code == "" || malformed && !d.malformed {
		d.code = code
	}
	d.malformed = d.malformed || malformed
	d.faults = append(d.faults, engine.FieldFault{Field: field, Detail: fmt.Sprintf(format, args...)})
}

// dotted turns a JSON pointer into the form that people write: /timers/3/callback
// is timers[3].callback. A number is also a name, where the decoder is in an object.
func (d *Decoder) dotted(pointer jsontext.Pointer) string {
	var b strings.Builder
	for i, part := range strings.Split(string(pointer), "/") {
		if i == 0 {
			continue
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		isName := false
		if i <= d.dec.StackDepth() {
			kind, _ := d.dec.StackIndex(i)
			isName = kind == '{'
		}
		if n, err := strconv.ParseUint(part, 10, 32); err == nil && !isName {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		if part == "" {
			part = `""`
		}
		if len(part) > 64 {
			part = strings.ToValidUTF8(part[:64], "") + "…"
		}
		b.WriteString(part)
	}
	return b.String()
}

// Field is one name of an object of type T and the reader of its value.
type Field[T any] struct {
	Name string
	Read func(d *Decoder, v *T)
}

// Object reads an object by its table into v.
func Object[T any](d *Decoder, v *T, table []Field[T]) {
	if !d.open('{', "an object") {
		return
	}
	for d.err == nil {
		if d.dec.PeekKind() == '}' {
			d.token()
			return
		}
		name := d.name()
		if d.err != nil {
			return
		}
		read := (func(*Decoder, *T))(nil)
		for i := range table {
			if table[i].Name == string(name) {
				read = table[i].Read
				break
			}
		}
		switch {
		case read == nil:
			d.unknown(string(name))
			d.skip()
		case d.dec.PeekKind() == 'n':
			d.skip()
		default:
			read(d, v)
		}
	}
}

// unknown refuses a name that is in no table; it says more of those that only
// answers have.
func (d *Decoder) unknown(name string) {
	switch name {
	case "id", "status", "version", "created_at", "updated_at", "updated_by", "next_due", "last_task", "reason", "disabled_until", "deleted":
		d.Note(true, "unknown_field", "is set by the server and cannot be sent")
	default:
		d.Note(true, "unknown_field", "is not a known field")
	}
}

// List reads an array, each item with read.
func (d *Decoder) List(read func(i int)) {
	if !d.open('[', "an array") {
		return
	}
	for i := 0; d.err == nil; i++ {
		if d.dec.PeekKind() == ']' {
			d.token()
			return
		}
		read(i)
	}
}

// open reads the begin of an object or an array, or notes that it is none and
// skips it.
func (d *Decoder) open(kind jsontext.Kind, what string) bool {
	if d.err != nil {
		return false
	}
	if k := d.dec.PeekKind(); k != kind {
		d.skip()
		if d.err == nil {
			d.wrong("must be %s, not %s", what, kindName(k))
		}
		return false
	}
	d.token()
	return d.err == nil
}

func (d *Decoder) token() {
	if _, err := d.dec.ReadToken(); err != nil {
		d.broken(err)
	}
}

func (d *Decoder) skip() {
	if err := d.dec.SkipValue(); err != nil {
		d.broken(err)
	}
}

// raw reads any value; it is valid until the next read.
func (d *Decoder) raw() jsontext.Value {
	v, err := d.dec.ReadValue()
	if err != nil {
		d.broken(err)
		return nil
	}
	return v
}

// name reads the name of a field; it is valid until the next read.
func (d *Decoder) name() []byte {
	v := d.raw()
	if d.err != nil {
		return nil
	}
	return d.unquote(v)
}

func (d *Decoder) unquote(v []byte) []byte {
	if bytes.IndexByte(v, '\\') < 0 {
		return v[1 : len(v)-1]
	}
	d.scratch, _ = jsontext.AppendUnquote(d.scratch[:0], v)
	return d.scratch
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// tooDeep reports whether a valid JSON value is nested deeper than limit.
func tooDeep(v []byte, limit int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if depth++; depth > limit {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// Quote shortens a user's text for a message.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most]
		for len(s) > 0 && !utf8.ValidString(s) {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return strconv.Quote(s)
}
