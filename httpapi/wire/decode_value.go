package wire

import (
	"encoding/base64"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"xtimer/engine"
)

// Text reads a string and copies it.
func (d *Decoder) Text(to *string) {
	if v, ok := d.scalar('"', "a string"); ok {
		*to = string(d.unquote(v))
	}
}

// Choice reads a string that must be one of a few.
func Choice[T any](d *Decoder, to *T, parse func(string) (T, bool), choices string) {
	var s string
	if v, ok := d.scalar('"', "a string"); ok {
		s = string(d.unquote(v))
		w, ok := parse(s)
		if !ok {
			d.Invalid("unknown_value", "%s is not one of %s", Quote(s), choices)
			return
		}
		*to = w
	}
}

// required reads a string that may not be empty, for an empty one would pass
// for none.
func (d *Decoder) required(to *string) {
	n := len(d.faults)
	if d.Text(to); *to == "" && d.err == nil && len(d.faults) == n {
		d.Invalid("empty", "must not be empty")
	}
}

// Flag reads true or false.
func (d *Decoder) Flag(to *bool) {
	switch k := d.dec.PeekKind(); k {
	case 't', 'f':
		*to = k == 't'
		d.token()
	default:
		d.skip()
		if d.err == nil {
			d.wrong("must be true or false, not %s", kindName(k))
		}
	}
}

// integer reads a whole number within [low, high]. Numbers with a fraction or
// an exponent are refused: none goes through a float.
func (d *Decoder) integer(to *int64, low, high int64) {
	v, ok := d.scalar('0', "a whole number")
	if !ok {
		return
	}
	n, whole, err := integer(v)
	switch {
	case !whole:
		d.wrong("must be a whole number, not %s", Quote(string(v)))
	case err != nil || n < low || n > high:
		d.Invalid("out_of_range", "%s is not in the range %d to %d", Quote(string(v)), low, high)
	default:
		*to = n
	}
}

func (d *Decoder) number(to *float64) {
	v, ok := d.scalar('0', "a number")
	if !ok {
		return
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || math.IsInf(f, 0) {
		d.Invalid("out_of_range", "%s is too large", Quote(string(v)))
		return
	}
	*to = f
}

// tooLong is about a duration that a Go duration cannot hold.
const tooLong = "%s is out of range: a duration is at most 2562047h, which is 292 years"

// isLong reports whether what Go does not take for a duration has the form of one:
// then there is too much of it. With one digit a number each is small enough.
func isLong(s string) bool {
	_, err := time.ParseDuration(numbers.ReplaceAllString(s, "1"))
	return err == nil
}

var numbers = regexp.MustCompile("[0-9]+")

// duration reads a Go duration ("1h30m") or a whole number of ms. What it may
// be is for engine.Definition.Validate to say.
func (d *Decoder) duration(to *time.Duration) {
	k := d.dec.PeekKind()
	v := d.raw()
	if d.err != nil {
		return
	}
	switch k {
	case '"':
		s := d.unquote(v)
		x, err := time.ParseDuration(string(s))
		if err != nil && isLong(string(s)) {
			d.Invalid("out_of_range", tooLong, Quote(string(s)))
			return
		}
		if err != nil {
			d.wrong("%s is not a duration like \"250ms\" or \"1h30m\"", Quote(string(s)))
			return
		}
		*to = x
	case '0':
		const most = math.MaxInt64 / int64(time.Millisecond)
		n, whole, err := integer(v)
		switch {
		case !whole:
			d.wrong("must be a whole number of ms, not %s", Quote(string(v)))
		case err != nil || n > most || n < -most:
			d.Invalid("out_of_range", tooLong, Quote(string(v))+" ms")
		default:
			*to = time.Duration(n) * time.Millisecond
		}
	default:
		d.wrong("must be a duration (\"30m\") or a number of ms, not %s", kindName(k))
	}
}

// positive reads a duration whose zero would pass for none.
func (d *Decoder) positive(to *time.Duration) {
	n := len(d.faults)
	if d.duration(to); d.err == nil && len(d.faults) == n && *to <= 0 {
		d.Invalid("out_of_range", "must be greater than 0")
		*to = 0
	}
}

// Instant reads a time: RFC 3339 or Unix ms.
func (d *Decoder) Instant(to *int64) {
	k := d.dec.PeekKind()
	v := d.raw()
	if d.err != nil {
		return
	}
	switch k {
	case '"':
		s := string(d.unquote(v))
		t, fault, ok := ParseTime(s)
		switch {
		case ok:
			*to = t
		case fault == "":
			d.wrong("%s is not a time like \"2026-11-20T17:00:00.250Z\"", Quote(s))
		default:
			d.Invalid("out_of_range", "%s", fault)
		}
	case '0':
		n, whole, err := integer(v)
		switch {
		case !whole:
			d.wrong("must be a whole number of ms, not %s", Quote(string(v)))
		case err != nil || n <= 0 || n > engine.MaxDue:
			d.Invalid("out_of_range", "%s is not a Unix time in ms from 1 to %d", Quote(string(v)), engine.MaxDue)
		case IsSeconds(n):
			d.Invalid("out_of_range", "%s", NotSeconds(n))
		default:
			*to = n
		}
	default:
		d.wrong("must be a time (\"2026-11-20T17:00:00.250Z\") or Unix ms, not %s", kindName(k))
	}
}

// IsSeconds reports whether a number of ms looks like a Unix time in seconds: it lies in
// 1970 or soon after, and as seconds in 1973 or later.
func IsSeconds(n int64) bool { return 1e8 <= n && n < 1e11 }

// NotSeconds says what is wrong with such a number.
func NotSeconds(n int64) string {
	return fmt.Sprintf("%d is %s: numbers are Unix time in milliseconds; did you mean seconds? Then send %d000", n, engine.FormatInstant(n), n)
}

// ParseTime reads an RFC 3339 time as Unix ms. Digits finer than a millisecond
// are rounded up, because the service promises never to be early. fault is set if
// the time is out of range.
func ParseTime(s string) (ms int64, fault string, ok bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || !isRFC3339(s) {
		return 0, "", false
	}
	ms = t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		ms++
	}
	if ms <= 0 || ms > engine.MaxDue {
		return 0, Quote(s) + " is not after 1970 and before the year 10000", false
	}
	return ms, "", true
}

// isRFC3339 reports whether a text that time.Parse takes has no hour of one digit, comma or
// offset of a day.
func isRFC3339(s string) bool {
	if s[13] != ':' || s[19] == ',' {
		return false
	}
	if s[len(s)-1] == 'Z' {
		return true
	}
	offset := s[len(s)-len("00:00"):]
	return offset[:2] < "24" && offset[3:] < "60"
}

// TextOrSecret reads a string, or the name of a secret: {"secret":"NAME"}.
func (d *Decoder) TextOrSecret(text, secret *string) {
	if d.dec.PeekKind() != '{' {
		d.Text(text)
		return
	}
	Object(d, secret, secretFields)
	if *secret == "" && d.err == nil {
		d.wrong("must be a string or name a secret: {\"secret\":\"NAME\"}")
	}
}

// secret reads the name of a secret, where its value may not stand.
func (d *Decoder) secret(name *string) {
	if d.dec.PeekKind() == '"' {
		d.token()
		d.wrong("must name a secret, and not have its value: {\"secret\":\"NAME\"}")
		return
	}
	Object(d, name, secretFields)
}

var secretFields = []Field[string]{{"secret", func(d *Decoder, v *string) { d.required(v) }}}

// pairs reads an object into a list sorted by name, for the order of an object's fields says
// nothing. pair reads the value of a name.
func pairs[T any](d *Decoder, to *[]T, pair func(k string) T, compare func(a, b T) int) {
	if !d.open('{', "an object of strings") {
		return
	}
	list := make([]T, 0, 4)
	for d.err == nil {
		if d.dec.PeekKind() == '}' {
			d.token()
			break
		}
		k := string(d.name())
		if d.err != nil {
			return
		}
		list = append(list, pair(k))
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, compare)
	*to = list
}

// base64 reads bytes in the standard alphabet, padded.
func (d *Decoder) base64(to *[]byte) {
	v, ok := d.scalar('"', "a string")
	if !ok {
		return
	}
	b, err := base64.StdEncoding.AppendDecode(make([]byte, 0, len(v)), d.unquote(v))
	if err != nil {
		d.wrong("is not base64 (standard alphabet, padded): %s", err)
		return
	}
	*to = b
}

// json reads any value, without the space between its tokens.
func (d *Decoder) json(to *[]byte) {
	v := d.raw()
	if d.err != nil {
		return
	}
	if tooDeep(v, maxDepth) {
		d.Note(true, "too_deep", "is nested deeper than %d", maxDepth)
		return
	}
	c := v.Clone()
	if err := c.Compact(jsontext.PreserveRawStrings(true)); err != nil {
		d.wrong("cannot be stored: %s", err)
		return
	}
	*to = c
}

func (d *Decoder) scalar(kind jsontext.Kind, what string) (jsontext.Value, bool) {
	k := d.dec.PeekKind()
	v := d.raw()
	if d.err != nil {
		return nil, false
	}
	if k != kind {
		d.wrong("must be %s, not %s", what, kindName(k))
		return nil, false
	}
	return v, true
}

// integer reads a JSON number. 100.0 and 1e2 are the integer 100, as in JSON Schema; an
// integer that is written so is exact up to 2^53. whole reports whether it is an integer.
func integer(v []byte) (n int64, whole bool, err error) {
	if !slices.ContainsFunc(v, func(c byte) bool { return c == '.' || c == 'e' || c == 'E' }) {
		n, err = strconv.ParseInt(string(v), 10, 64)
		return n, true, err
	}
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case err == nil && f != math.Trunc(f):
		return 0, false, nil
	case err != nil || math.Abs(f) > 1<<53:
		return 0, true, strconv.ErrRange
	}
	return int64(f), true, nil
}
