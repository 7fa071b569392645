package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// grid is a table of words in columns.
type grid struct {
	head    []string
	rows    [][]string
	colours [][]string // of the cells of each row; may be short
}

func (g *grid) add(cells ...string) { g.paint(nil, cells...) }

func (g *grid) paint(colours []string, cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	g.rows = append(g.rows, cells)
	g.colours = append(g.colours, colours)
}

// print writes the columns as wide as they need to be.
func (g *grid) print(out io.Writer) error {
	p := newPainter(out)
	width := make([]int, len(g.head))
	for _, row := range append(g.rows, g.head) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	var b strings.Builder
	line := func(row []string, colour func(i int) string) {
		for i, c := range row {
			b.WriteString(p.paint(colour(i), c))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	line(g.head, func(int) string { return bold })
	for n, row := range g.rows {
		line(row, func(i int) string {
			if i < len(g.colours[n]) {
				return g.colours[n][i]
			}
			return plain
		})
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// printable shows a text on one line, and lets none steer the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '·'
		}
		return r
	}, s)
}

// sheet is a list of names with their values.
type sheet struct{ lines [][2]string }

func (s *sheet) add(name, format string, args ...any) {
	s.lines = append(s.lines, [2]string{name, printable(fmt.Sprintf(format, args...))})
}

// has adds a line unless the value is empty.
func (s *sheet) has(name, value string) {
	if value != "" {
		s.add(name, "%s", value)
	}
}

func (s *sheet) print(out io.Writer) error {
	p := newPainter(out)
	width := 0
	for _, l := range s.lines {
		width = max(width, utf8.RuneCountInString(l[0]))
	}
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(p.paint(dim, l[0]))
		b.WriteString(strings.Repeat(" ", width-utf8.RuneCountInString(l[0])+2))
		b.WriteString(l[1])
		b.WriteByte('\n')
	}
	_, err := io.WriteString(out, b.String())
	return err
}
