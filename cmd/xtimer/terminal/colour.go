package terminal

import (
	"io"
	"os"
)

// The colours that a terminal shows; nothing else than a terminal gets them.
const (
	Plain  = ""
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Painter colours words for a terminal, and leaves them alone for all else and
// for those who set NO_COLOR.
type Painter bool

// NewPainter colours what goes to w.
func NewPainter(w io.Writer) Painter {
	return Painter(Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// Paint is s in a colour.
func (p Painter) Paint(colour, s string) string {
	if !p || colour == Plain {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}
