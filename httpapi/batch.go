package httpapi

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// maxBatch bounds the timers of one batch.
const maxBatch = 1000

// item is one timer of a batch, or what is wrong with it.
type item struct {
	def engine.Definition
	err error
}

// createTimers is POST /v1/timers/batch: each timer by itself, outcomes in
// order. {"timers":[…]} is one JSON text, so that a fault of its grammar refuses
// the whole; in NDJSON each line stands alone.
func (s *Server) createTimers(r *request) (reply, error) {
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	items, err := decodeBatch(body, isNDJSON(r.http.Request.Header.ContentType()))
	if err != nil {
		return reply{}, err
	}
	defs := make([]engine.Definition, 0, len(items))
	for i := range items {
		it := &items[i]
		if it.err == nil {
			it.err = cmp.Or(r.own(&it.def), s.callable(&it.def))
		} else {
			it.def.App = cmp.Or(it.def.App, r.ownApp())
		}
		if it.err = wire.WithInvalid(it.err, pathOf(i), &it.def); it.err == nil {
			defs = append(defs, it.def)
		}
	}
	var made []change.Created
	if len(defs) > 0 {
		made = s.e.CreateAll(r.ctx, defs)
		if !slices.ContainsFunc(made, func(c change.Created) bool { return !errors.Is(c.Err, engine.ErrElsewhere) }) {
			return reply{}, engine.ErrElsewhere // this node has no shards any more: nothing was made
		}
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, `{"results":[`...)
		next := 0
		for i := range items {
			if items[i].err == nil {
				c := &made[next]
				next++
				if c.Err == nil {
					b = appendCreated(wire.Comma(b), c)
					continue
				}
				items[i].err = c.Err
			}
			b = appendFailed(wire.Comma(b), s.problem(r, items[i].err), i)
		}
		return append(b, ']', '}')
	})}, nil
}

func isNDJSON(contentType []byte) bool {
	kind, _, _ := bytes.Cut(contentType, []byte(";"))
	return bytes.EqualFold(bytes.TrimSpace(kind), []byte("application/x-ndjson"))
}

// decodeBatch reads the timers of a batch; the error is of the whole.
func decodeBatch(body []byte, ndjson bool) ([]item, error) {
	items := make([]item, 0, min(maxBatch, len(body)/64+1)) // a timer has 64 bytes at least
	add := func() (*item, bool) {
		if len(items) == maxBatch {
			return nil, false
		}
		items = append(items, item{def: engine.NewDefinition()})
		return &items[len(items)-1], true
	}
	tooMany := problem.BadField("timers", "too_many", fmt.Sprintf("has more than %d items", maxBatch))
	var err error
	if ndjson {
		for line := range bytes.SplitSeq(body, []byte{'\n'}) {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			it, ok := add()
			if !ok {
				return nil, tooMany
			}
			it.err = wire.DecodeAt(pathOf(len(items)-1), line, func(d *wire.Decoder) { d.Timer(&it.def) })
		}
	} else {
		given := false
		table := []wire.Field[struct{}]{{Name: "timers", Read: func(d *wire.Decoder, _ *struct{}) {
			given = true
			d.List(func(int) {
				it, ok := add()
				if !ok {
					d.Refuse(tooMany)
					return
				}
				it.err = d.Apart(func() { d.Timer(&it.def) })
			})
		}}}
		if err = wire.Decode(body, func(d *wire.Decoder) { wire.Object(d, new(struct{}), table) }); err != nil {
			return nil, err
		}
		if !given {
			return nil, problem.BadField("timers", "missing", "is missing")
		}
	}
	if len(items) == 0 {
		return nil, problem.BadField("timers", "empty", "must not be empty")
	}
	return items, err
}

func pathOf(i int) string { return "timers[" + strconv.Itoa(i) + "]." }

func appendCreated(b []byte, c *change.Created) []byte {
	status := fasthttp.StatusCreated
	if c.Existed && !c.Replayed {
		status = fasthttp.StatusOK
	}
	b = wire.IntMember(append(b, '{'), "status", int64(status))
	b = append(wire.Member(b, "id"), '"')
	b = strconv.AppendUint(b, uint64(c.View.ID), 10)
	return append(b, '"', '}')
}

// appendFailed appends the problem of one item; the fields that it names begin
// with the item's place.
func appendFailed(b []byte, failed *problem.Problem, i int) []byte {
	p := *failed
	at := pathOf(i)
	fields := make([]engine.FieldFault, len(p.Fields))
	for j, f := range p.Fields {
		if !strings.HasPrefix(f.Field, at[:len(at)-1]) {
			f.Field = at + f.Field
		}
		fields[j] = f
	}
	p.Fields = fields
	b = wire.IntMember(append(b, '{'), "status", int64(p.Status))
	return append(p.Append(wire.Member(b, "error")), '}')
}
