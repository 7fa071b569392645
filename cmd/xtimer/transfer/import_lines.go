package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/document"
	"xtimer/cmd/xtimer/exit"
)

// fileReader reads the lines of an export, of a file or of stdin ("-"). A line has no
// bound: that of a timer has every unfinished task of the timer.
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
		lines := bufio.NewReaderSize(in, 1<<16)
		for n, ended := 1, false; !ended; n++ {
			b, err := lines.ReadBytes('\n')
			if ended = errors.Is(err, io.EOF); err != nil && !ended {
				return fmt.Errorf("cannot read the export: %w", err)
			}
			if b = bytes.TrimSpace(b); len(b) == 0 {
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
		return nil
	}
}

// read reads a line. One that people wrote is checked for fields which no timer
// has; those of a store were written by export.
func (l *line) read(b []byte) error {
	if err := json.Unmarshal(b, l); err != nil {
		return fmt.Errorf("the line is not a timer: %w", err)
	}
	if l.Stored.isWhole() || l.Record != nil || l.LeftOut != nil {
		return nil
	}
	n, err := definition.JSONNode(b, 1)
	if err != nil {
		return err
	}
	p := document.Place{File: "line", Node: n}
	if err := lineShape.Check(p); err != nil {
		return err
	}
	return definition.CheckZeros(p)
}

var lineShape = definition.ShapeOf(reflect.TypeFor[line]())
