package terminal

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width is the number of columns that a terminal needs for a text: 2 for a Chinese
// character, 0 for a combining accent.
func Width(s string) int { return uniseg.StringWidth(s) }

// Pad fills a text with spaces up to a width.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}
