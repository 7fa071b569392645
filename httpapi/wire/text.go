package wire

import (
	"strings"
	"unicode/utf8"
)

// IsText reports whether s is UTF-8 without control characters.
func IsText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// Printable makes a user's text fit for a message.
func Printable(s string) string {
	q := Quote(s)
	return q[1 : len(q)-1]
}
