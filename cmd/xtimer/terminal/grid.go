package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Grid is a table of words in columns.
type Grid struct {
	Head    []string
	rows    [][]string
	colours [][]string // of the cells of each row; may be short
	width   []int      // of the columns; nil: not printed yet
}

// Add adds a row.
func (g *Grid) Add(cells ...string) { g.Paint(nil, cells...) }

// Paint adds a row whose cells have colours.
func (g *Grid) Paint(colours []string, cells ...string) {
	for i, c := range cells {
		cells[i] = Printable(c)
	}
	g.rows = append(g.rows, cells)
	g.colours = append(g.colours, colours)
}

// Print writes the columns as wide as they need to be. A second Print writes the rows that
// were added since the first, under the same columns.
func (g *Grid) Print(out io.Writer) error {
	p := NewPainter(out)
	var b strings.Builder
	line := func(row []string, colour func(i int) string) {
		for i, c := range row {
			b.WriteString(p.Paint(colour(i), c))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", g.width[i]-Width(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	first := g.width == nil
	if first {
		g.width = make([]int, len(g.Head))
	}
	for _, row := range append(g.rows, g.Head) {
		for i, c := range row {
			g.width[i] = max(g.width[i], Width(c))
		}
	}
	if first {
		line(g.Head, func(int) string { return Bold })
	}
	for n, row := range g.rows {
		line(row, func(i int) string {
			if i < len(g.colours[n]) {
				return g.colours[n][i]
			}
			return Plain
		})
	}
	g.rows, g.colours = nil, nil
	_, err := io.WriteString(out, b.String())
	return err
}

// Printable shows a text on one line, and lets none steer the terminal.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '·'
		}
		return r
	}, s)
}

// Sheet is a list of names with their values.
type Sheet struct{ lines [][2]string }

// Add adds a line.
func (s *Sheet) Add(name, format string, args ...any) {
	s.lines = append(s.lines, [2]string{name, Printable(fmt.Sprintf(format, args...))})
}

// Has adds a line unless the value is empty.
func (s *Sheet) Has(name, value string) {
	if value != "" {
		s.Add(name, "%s", value)
	}
}

// Print writes the values under each other.
func (s *Sheet) Print(out io.Writer) error {
	p := NewPainter(out)
	width := 0
	for _, l := range s.lines {
		width = max(width, Width(l[0]))
	}
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(p.Paint(Dim, Pad(l[0], width+2)))
		b.WriteString(l[1])
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
