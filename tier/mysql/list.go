package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"xtimer/engine"
)

// What one page of a list looks at, and how much of it in one statement.
const (
	timerSteps = 5000
	timerChunk = 1000
	// listBytes is how much the bodies of a page, or of a statement, may be: 1,000 of
	// 512 KiB, and the answer made of them, do not fit into memory.
	listBytes = 4 << 20
)

// path is the way a list of timers goes: through an index, in its order.
type path struct {
	from  string // the tables
	where string // what is fixed
	order string
	after func(c cursor) string // what comes after a cursor
	place func(t *engine.Timer) cursor
}

func text(s string) string { return string(appendBytes(nil, s)) }

func byID(t *engine.Timer) cursor { return cursor{id: t.ID} }

func afterID(c cursor) string { return fmt.Sprintf("t.id>%d", c.id) }

// pathOf picks the index that leaves the least to look at.
func pathOf(f *engine.TimerFilter) path {
	for _, m := range f.Labels {
		if !m.Not && m.Value != "" { // an empty value also means: no such label
			return path{
				from: "labels l JOIN timers t ON t.id=l.timer", where: is("l.name", text(m.Key)) + " AND " + is("l.value", text(m.Value)), order: "l.name,l.value,l.timer",
				after: func(c cursor) string { return fmt.Sprintf("l.timer>%d", c.id) }, place: byID,
			}
		}
	}
	p := path{from: "timers t", where: "TRUE", order: "t.id", after: afterID, place: byID}
	switch {
	case f.HasStatus && f.Status == engine.Finished && f.App == "":
		p.from += " FORCE INDEX (by_end)"
		p.where, p.order = is("t.status", strconv.Itoa(int(engine.Finished))), "t.status,t.ends,t.id"
		p.after = func(c cursor) string {
			return fmt.Sprintf("(t.ends>%[1]d OR t.ends=%[1]d AND t.id>%[2]d)", c.num, c.id)
		}
		p.place = func(t *engine.Timer) cursor { return cursor{num: max(lastDue(t), t.UpdatedAt), id: t.ID} }
	case f.HasStatus && (f.App == "" || f.NamePrefix == ""):
		p.from += " FORCE INDEX (by_status)"
		p.where, p.order = is("t.status", strconv.Itoa(int(f.Status))), "t.status,t.app,t.id"
		if f.App != "" {
			p.where += " AND " + is("t.app", text(f.App))
			break // and so by id
		}
		p.after = func(c cursor) string {
			return fmt.Sprintf("(t.app>%[1]s OR t.app=%[1]s AND t.id>%[2]d)", text(c.text), c.id)
		}
		p.place = func(t *engine.Timer) cursor { return cursor{text: t.App, id: t.ID} }
	case f.App != "":
		p.from += " FORCE INDEX (by_name)"
		p.where, p.order = is("t.app", text(f.App)), "t.app,t.name,t.nameless"
		if f.NamePrefix != "" {
			p.where += " AND t.name>=" + text(f.NamePrefix)
			if end := following([]byte(f.NamePrefix)); end != nil {
				p.where += " AND t.name<" + string(appendBytes(nil, end))
			}
		}
		p.after = func(c cursor) string {
			return fmt.Sprintf("(t.name>%[1]s OR t.name=%[1]s AND t.nameless>%[2]d)", text(c.text), c.num)
		}
		p.place = func(t *engine.Timer) cursor {
			c := cursor{text: t.Name, id: t.ID}
			if t.Name == "" {
				c.num = int64(t.ID)
			}
			return c
		}
	}
	return p
}

// following is the first text after all that begin with prefix; nil: none is.
func following(prefix []byte) []byte {
	b := bytes.Clone(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return b[:i+1]
		}
	}
	return nil
}

// Timers lists by keyset: by (app, name) where the filter names an app and no
// status, else by id or by (app, id), all finished ones by when they ended. A page
// may be short and still have a next one. A row that cannot be read is left out: who asks
// for the timer itself is told.
func (s *Store) Timers(ctx context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error) {
	p := pathOf(&f)
	scope := p.from + p.where + p.order
	where := p.where
	if after != "" {
		c, err := openCursor(after, scope)
		if err != nil {
			return nil, "", err
		}
		where = p.where + " AND " + p.after(c)
	}
	size := 0 // of the bodies in ts
	for steps := 0; limit > 0 && size < listBytes; {
		n := min(timerChunk, max(limit-len(ts)+1, 64), timerSteps-steps+1)
		var chunk []listed
		whole := true
		err := s.read(ctx, "list timers", func(ctx context.Context) error {
			read := 0
			chunk, whole = chunk[:0], true
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			q := fmt.Sprintf("SELECT t.id,t.status,t.app,t.name,t.ends,t.definition FROM %s WHERE %s ORDER BY %s LIMIT %d", p.from, where, p.order, n)
			err := s.scan(ctx, q, func(rows *sql.Rows) error {
				if read >= listBytes {
					whole = false
					stop()
					return errEnough
				}
				l, err := scanListed(rows)
				chunk = append(chunk, l)
				read += len(l.Callback.Body)
				return err
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		})
		if err != nil {
			return nil, "", err
		}
		for _, l := range chunk {
			if len(ts) == limit || steps == timerSteps || size >= listBytes {
				return ts, next, nil
			}
			steps++
			c := p.place(l.Timer)
			next, where = c.encode(scope), p.where+" AND "+p.after(c)
			if !l.damaged && f.Matches(l.Timer) {
				ts = append(ts, l.Timer)
				size += len(l.Callback.Body)
			}
		}
		if whole && len(chunk) < n {
			return ts, "", nil
		}
	}
	return ts, next, nil
}

// listed is a timer of a list. Of a damaged one there is what the indexes have.
type listed struct {
	*engine.Timer
	damaged bool
}

func scanListed(rows *sql.Rows) (l listed, err error) {
	var id engine.TimerID
	var status engine.Status
	var app, name string
	var ends int64
	var b sql.RawBytes
	if err := rows.Scan(&id, &status, &app, &name, &ends, &b); err != nil {
		return listed{Timer: &engine.Timer{}}, err
	}
	t, err := decodeTimer(id, status, bytes.Clone(b))
	if err == nil {
		return listed{Timer: t}, nil
	}
	t = &engine.Timer{ID: id, Status: status, LastDue: ends}
	t.App, t.Name = app, name
	return listed{t, true}, nil
}

// cursor names the last entry that a page of timers saw: where it stands in the
// order of its path.
type cursor struct {
	text string // of the order: an app, or a name
	num  int64  // of the order: the end, or nameless
	id   engine.TimerID
}

const cursorVersion = 1

// encode writes a cursor with the path it belongs to, so that another refuses
// it, and a checksum, which tells what was cut or altered.
func (c *cursor) encode(scope string) string {
	b := []byte{cursorVersion}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(scope)))
	b = binary.BigEndian.AppendUint64(b, uint64(c.num))
	b = binary.BigEndian.AppendUint64(b, uint64(c.id))
	b = append(b, c.text...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(s, scope string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 25 {
		return c, badCursor()
	}
	end := len(b) - 4
	if b[0] != cursorVersion || binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) ||
		binary.BigEndian.Uint32(b[1:]) != crc32.ChecksumIEEE([]byte(scope)) {
		return c, badCursor()
	}
	c.num, c.id = int64(binary.BigEndian.Uint64(b[5:])), engine.TimerID(binary.BigEndian.Uint64(b[13:]))
	c.text = string(b[21:end])
	return c, nil
}

func badCursor() *engine.Fault {
	const detail = "it is not a cursor of this list"
	return &engine.Fault{
		Kind: engine.FaultMalformed, Code: "malformed", Detail: "cursor: " + detail,
		Fields: []engine.FieldFault{{Field: "cursor", Detail: detail}},
	}
}
