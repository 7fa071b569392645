package httpapi

import (
	"strings"
	"unicode/utf8"
)

// isText tells whether s is UTF-8 without control characters.
func isText(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// printable makes a user's text fit for a message.
func printable(s string) string {
	q := quote(s)
	return q[1 : len(q)-1]
}
