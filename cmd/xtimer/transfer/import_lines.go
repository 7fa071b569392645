package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/document"
	"xtimer/cmd/xtimer/exit"
)

// maxLine of an export: a definition has at most 1 MiB, and owed rows beside it.
const maxLine = 16 << 20

// fileReader reads the lines of an export, of a file or of stdin ("-").
func fileReader(name string, stdin io.Reader) reader {
	return func(ctx context.Context, yield func(*item) error) error {
		in := stdin
		if name != "-" {
			f, err := os.Open(name)
			if err != nil {
				return exit.With(exit.StatusUsage, err)
			}
			defer f.Close()
			in = f
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 0, 1<<16), maxLine)
		for n := 1; lines.Scan(); n++ {
			b := bytes.TrimSpace(lines.Bytes())
			if len(b) == 0 {
				continue
			}
			i := &item{at: fmt.Sprintf("line %d", n)}
			if err := i.line.read(b); err != nil {
				i.fail(err)
			}
			if err := yield(i); err != nil {
				return err
			}
		}
		if err := lines.Err(); err != nil {
			return fmt.Errorf("cannot read the export: %w", err)
		}
		return nil
	}
}

// read reads a line. One that people wrote is checked for fields which no timer
// has; those of a store were written by export.
func (l *line) read(b []byte) error {
	if err := json.Unmarshal(b, l); err != nil {
		return fmt.Errorf("the line is not a timer: %w", err)
	}
	if l.Stored.isWhole() || l.Record != nil {
		return nil
	}
	n, err := definition.JSONNode(b, 1)
	if err != nil {
		return err
	}
	return lineShape.Check(document.Place{File: "line", Node: n})
}

var lineShape = definition.ShapeOf(reflect.TypeFor[line]())
