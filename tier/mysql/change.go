package mysql

import (
	"bytes"

	"xtimer/engine"
)

// prepared is a change with what can be encoded in its caller's goroutine.
type prepared struct {
	*engine.Change
	ID  engine.TimerID
	row *row // as Timer is stored; nil deletes
}

// prepare takes as many changes as fit into one statement, one at least.
func prepare(cs []*engine.Change) *op {
	o := &op{done: make(chan struct{})}
	var encoded []byte
	for _, c := range cs {
		if n := len(o.changes); n == statementRows || n > 0 && o.bytes >= statementBytes {
			break
		}
		p := prepared{Change: c, ID: c.ID}
		if t := c.Timer; t != nil {
			p.ID = t.ID
			encoded = engine.AppendTimer(encoded[:0], t)
			p.row = &row{timer: t, encoded: bytes.Clone(encoded), bound: t.ValidFrom}
			o.bytes += len(p.row.encoded)
		}
		o.changes = append(o.changes, p)
	}
	o.out = make([]engine.Applied, len(o.changes))
	return o
}

// change judges one change, and makes it in the group unless something stands
// in its way.
func (g *group) change(p *prepared) engine.Applied {
	st := g.at(p.ID)
	if a := g.judge(p, st); a.Err != nil || a.Existing != nil {
		return a
	}
	for _, k := range p.Pay {
		g.owed[k] = nil
	}
	for i := range p.Owe {
		g.owed[p.Owe[i].Key] = &p.Owe[i]
	}
	for _, t := range p.Tasks {
		g.tasks[t.Key] = t
	}
	if st.after != nil {
		g.replace(p, st)
	}
	st.after = nil
	if t := p.Timer; t != nil {
		st.after = p.row
		g.clock = max(g.clock, t.UpdatedAt)
		if t.Name != "" {
			g.names[pair{t.App, t.Name}] = t.ID
		}
		if o := p.Once; o != nil && p.Was == 0 {
			was := g.once[pair{o.App, o.Key}]
			n := &once{timer: t.ID, body: o.Body, expires: o.Expires, put: true}
			if was != nil {
				n.former = was.former
			}
			g.once[pair{o.App, o.Key}] = n
		}
	}
	g.feed = append(g.feed, p)
	return engine.Applied{}
}

// replace takes out what stood before p. The index keeps its bound if the dues
// stay what they were.
func (g *group) replace(p *prepared, st *standing) {
	old, t := st.after.timer, p.Timer
	if old.Name != "" {
		g.names[pair{old.App, old.Name}] = 0
	}
	g.clock = max(g.clock, old.UpdatedAt, p.At)
	if t == nil || t.Version != old.Version {
		f := former{timer: old, until: g.clock}
		if t == nil {
			f.deleted = p.At
			g.last[old.ID] = old
		}
		g.versions = append(g.versions, f)
	}
	if t == nil {
		return
	}
	p.row.bound = t.ValidFrom
	if t.Status == old.Status && t.Schedule == old.Schedule && t.ValidFrom == old.ValidFrom && t.Generation == old.Generation {
		p.row.bound = max(st.after.bound, t.ValidFrom)
	}
}

// judge tells what stands in the way of a change.
func (g *group) judge(p *prepared, st *standing) engine.Applied {
	t := p.Timer
	switch {
	case st.after == nil && (p.Was != 0 || t == nil):
		return engine.Applied{Err: engine.ErrNotFound}
	case p.Was == 0 && t == nil, p.Was != 0 && st.after.timer.Version != p.Was:
		return engine.Applied{Err: engine.ErrConflict}
	case t == nil:
		return engine.Applied{}
	}
	if p.Was == 0 && p.Once != nil {
		// A create happens at CreatedAt: that tells whether the key is expired.
		if o := g.once[pair{p.Once.App, p.Once.Key}]; o != nil && o.expires > t.CreatedAt {
			return g.repeat(p.Once, o)
		}
	}
	if id := g.names[pair{t.App, t.Name}]; id != 0 && (id != t.ID || p.Was == 0) {
		return engine.Applied{Existing: g.timers[id].after.timer, Err: engine.ErrConflict}
	}
	if p.Was == 0 && st.after != nil {
		return engine.Applied{Err: engine.ErrConflict} // the id is taken
	}
	return engine.Applied{}
}

// repeat answers a create whose Idempotency-Key was used.
func (g *group) repeat(o *engine.Once, was *once) engine.Applied {
	if was.body != o.Body {
		return engine.Applied{Err: &engine.Fault{
			Kind: engine.FaultInvalid, Code: "idempotency_key_reused",
			Detail: "the Idempotency-Key was used with another body",
		}}
	}
	if st := g.timers[was.timer]; st != nil && st.after != nil {
		return engine.Applied{Existing: st.after.timer, Replayed: true}
	}
	if t := g.last[was.timer]; t != nil {
		return engine.Applied{Existing: t, Replayed: true}
	}
	return engine.Applied{Replayed: true, Err: engine.ErrNotFound}
}

// isSame tells whether a row is stored as it would be.
func (r *row) isSame(o *row) bool {
	return r != nil && o != nil && r.bound == o.bound && bytes.Equal(r.encoded, o.encoded)
}
