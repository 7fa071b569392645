package wire

import (
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"
)

// Answers are written by hand, by appending: a timer costs well under a
// microsecond and no allocation.

const hexDigits = "0123456789abcdef"

// plain tells which bytes stand for themselves in a JSON string.
var plain = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\' && c != 0x7f
	}
	return t
}()

// AppendText appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD: an excerpt of an answer may be anything.
func AppendText(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			// U+2028 and U+2029 end a line in JavaScript and in some readers of
			// event streams.
			if (r != utf8.RuneError || n > 1) && r != '\u2028' && r != '\u2029' {
				i += n
				continue
			}
			b = append(b, s[from:i]...)
			if n == 1 {
				r = utf8.RuneError
			}
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			i += n
			from = i
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendTextBytes(b, s []byte) []byte {
	return AppendText(b, unsafe.String(unsafe.SliceData(s), len(s)))
}

// Member appends a comma where one is needed, and the name of a field, which
// must be plain.
func Member(b []byte, name string) []byte {
	if c := b[len(b)-1]; c != '{' {
		b = append(b, ',')
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"', ':')
}

// Comma appends a comma unless the array has just begun.
func Comma(b []byte) []byte {
	if b[len(b)-1] != '[' {
		b = append(b, ',')
	}
	return b
}

// TextMember appends a field whose value is a text.
func TextMember(b []byte, name, v string) []byte { return AppendText(Member(b, name), v) }

// IntMember appends a field whose value is a whole number.
func IntMember(b []byte, name string, v int64) []byte { return AppendInt(Member(b, name), v) }

// AppendInt appends a whole number.
func AppendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }

// BoolMember appends a field whose value is true or false.
func BoolMember(b []byte, name string, v bool) []byte {
	return strconv.AppendBool(Member(b, name), v)
}

// FloatMember appends a field whose value is a number, without an exponent.
func FloatMember(b []byte, name string, v float64) []byte {
	return strconv.AppendFloat(Member(b, name), v, 'f', -1, 64)
}

// TimeMember appends a field whose value is a time, as AppendTime does.
func TimeMember(b []byte, name string, ms int64) []byte { return AppendTime(Member(b, name), ms) }

// DurationMember appends a field whose value is a Go duration.
func DurationMember(b []byte, name string, v time.Duration) []byte {
	return appendDuration(Member(b, name), v)
}

// AppendTime appends Unix ms as RFC 3339 with ms, in UTC.
func AppendTime(b []byte, ms int64) []byte {
	t := time.UnixMilli(ms).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = append(b, '"')
	b = digits(b, year, 1000)
	b = digits(append(b, '-'), int(month), 10)
	b = digits(append(b, '-'), day, 10)
	b = digits(append(b, 'T'), hour, 10)
	b = digits(append(b, ':'), minute, 10)
	b = digits(append(b, ':'), second, 10)
	b = digits(append(b, '.'), t.Nanosecond()/int(time.Millisecond), 100)
	return append(b, 'Z', '"')
}

// digits appends v with as many digits as unit has.
func digits(b []byte, v, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+v/unit%10))
	}
	return b
}

// appendDuration appends a Go duration without the zeros that its String has
// at the end: 24h, 1h30m, 250ms.
func appendDuration(b []byte, d time.Duration) []byte {
	b = append(b, '"')
	if d < 0 {
		b = append(append(b, d.String()...), '"')
		return b
	}
	if h := d / time.Hour; h > 0 {
		b = append(strconv.AppendInt(b, int64(h), 10), 'h')
		d -= h * time.Hour
		if d == 0 {
			return append(b, '"')
		}
	}
	if m := d / time.Minute; m > 0 {
		b = append(strconv.AppendInt(b, int64(m), 10), 'm')
		d -= m * time.Minute
		if d == 0 {
			return append(b, '"')
		}
	}
	if d%time.Second == 0 {
		b = append(strconv.AppendInt(b, int64(d/time.Second), 10), 's')
	} else {
		b = append(b, d.String()...)
	}
	return append(b, '"')
}
