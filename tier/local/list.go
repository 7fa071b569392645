package local

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// timerSteps bounds the definitions that one page of a list looks at.
const timerSteps = 5000

// listBytes is how much the bodies of one page may be: 1,000 of 512 KiB, and the
// answer made of them, do not fit into memory.
const listBytes = 4 << 20

// path is the way a list of timers goes: through the keys of prefix, which lead
// to timers.
type path struct {
	kind   byte
	prefix []byte
	id     func(k, v []byte) (engine.TimerID, error)
	// skip reports from the entry alone that the filter does not select the timer.
	skip func(k, v []byte) bool
}

// idAtEnd reads the timer that most index keys end with.
func idAtEnd(k, _ []byte) (engine.TimerID, error) {
	if len(k) < 9 {
		return 0, damaged(k, errKey)
	}
	return readID(k[len(k)-8:]), nil
}

// pathOf picks the index that leaves the least to look at.
func pathOf(f *engine.TimerFilter) path {
	for _, m := range f.Labels {
		if !m.Not && m.Value != "" { // an empty value also means: no such label
			return path{kind: kindLabel, prefix: labelKey(nil, m.Key, m.Value), id: idAtEnd}
		}
	}
	switch {
	case f.HasStatus && f.Status == engine.Finished:
		p := path{kind: kindEnded, prefix: []byte{kindEnded}, id: idAtEnd}
		if f.App != "" {
			p.skip = func(_, v []byte) bool { return len(v) == 0 || string(v[1:]) != f.App }
		}
		return p
	case f.App != "" && f.NamePrefix != "":
		return byName(f)
	case f.HasStatus:
		prefix := []byte{kindStatus, byte(f.Status)}
		if f.App != "" {
			prefix = statusKey(nil, f.Status, f.App)
		}
		return path{kind: kindStatus, prefix: prefix, id: idAtEnd}
	case f.App != "":
		return byName(f)
	}
	p := path{kind: kindTimer, prefix: []byte{kindTimer}, id: idAtEnd}
	if f.Search != "" {
		head := &engine.Timer{}
		p.skip = func(_, v []byte) bool { return engine.DecodeTimerHead(v, head) == nil && !f.MatchesName(head.Name) }
	}
	return p
}

// byName is the way through the names of an app.
func byName(f *engine.TimerFilter) path {
	app := appendText([]byte{kindName}, f.App)
	n := len(app)
	p := path{kind: kindName, prefix: appendEscaped(app, f.NamePrefix), id: decodeName}
	if f.Search != "" {
		p.skip = func(k, _ []byte) bool {
			name, _, ok := readText(k[n:])
			return ok && !f.MatchesName(name)
		}
	}
	return p
}

// Timers lists by keyset: by (app, name) where the filter names an app and no
// status, else by id or by (app, id), finished ones by when they ended. A page
// may be short and still have a next one.
func (s *Store) Timers(ctx context.Context, f engine.TimerFilter, cursor string, limit int) ([]*engine.Timer, string, error) {
	p := pathOf(&f)
	from := p.prefix
	if cursor != "" {
		rest, err := openCursor(cursor, p.kind)
		if err != nil {
			return nil, "", err
		}
		last := append([]byte{p.kind}, rest...)
		if len(last) < len(p.prefix) || compare(last[:len(p.prefix)], p.prefix) != 0 {
			return nil, "", badCursor()
		}
		from = append(last, 0)
	}
	if limit <= 0 {
		return nil, "", nil
	}
	w, err := s.views.acquire()
	if err != nil {
		return nil, "", err
	}
	defer s.views.release(w)
	return w.list(ctx, &f, p, from, limit)
}

func (w *view) list(ctx context.Context, f *engine.TimerFilter, p path, from []byte, limit int) (ts []*engine.Timer, next string, err error) {
	rows, err := w.rows()
	if err != nil {
		return nil, "", err
	}
	defer rows.close()
	steps, size, more := 0, 0, false
	var last []byte
	err = scan(w, from, after(p.prefix), func(k, v []byte) (bool, error) {
		if len(ts) == limit || steps == timerSteps || size >= listBytes {
			more = true
			return false, nil
		}
		steps++
		if steps%256 == 0 && ctx.Err() != nil {
			return false, ctx.Err()
		}
		last = append(last[:0], k[1:]...)
		if p.skip != nil && p.skip(k, v) {
			return true, nil
		}
		t, err := p.timer(w, rows, k, v)
		if errors.As(err, new(*engine.Damage)) {
			return true, nil // who asks for the timer itself is told
		}
		if err == nil && f.Matches(t) {
			ts = append(ts, t)
			size += len(t.Callback.Body)
		}
		return true, err
	})
	if err != nil {
		return nil, "", err
	}
	if more {
		next = makeCursor(p.kind, last)
	}
	return ts, next, nil
}

// timer reads the definition that an entry leads to.
func (p *path) timer(w *view, rows *rows, k, v []byte) (*engine.Timer, error) {
	id, err := p.id(k, v)
	if err != nil {
		return nil, err
	}
	if p.kind != kindTimer {
		if v, err = rows.find(id); err != nil {
			return nil, err
		}
		if v == nil {
			return nil, damaged(k, pebble.ErrNotFound)
		}
	}
	t, err := decodeTimer(id, slices.Clone(v))
	if err != nil {
		return nil, err
	}
	return w.asEnded(t)
}

// A cursor names the last key of a page, with the kind of the walk in place of the
// key's first byte: a cursor of one walk is refused by another. A checksum finds a
// cursor that was cut or altered.
func makeCursor(kind byte, rest []byte) string {
	b := append([]byte{valueVersion, kind}, rest...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(s string, kind byte) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 6 {
		return nil, badCursor()
	}
	sum := len(b) - 4
	if crc32.ChecksumIEEE(b[:sum]) != binary.LittleEndian.Uint32(b[sum:]) || b[0] != valueVersion || b[1] != kind {
		return nil, badCursor()
	}
	return b[2:sum], nil
}

func badCursor() *engine.Fault {
	const detail = "it is not a cursor of this list"
	return &engine.Fault{
		Kind: engine.FaultMalformed, Code: "malformed", Detail: "cursor: " + detail,
		Fields: []engine.FieldFault{{Field: "cursor", Detail: detail}},
	}
}
