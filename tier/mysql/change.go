package mysql

import (
	"bytes"

	"xtimer/engine"
	"xtimer/engine/policy"
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
		if n := len(o.changes); n == statementRows || n > 0 && (o.bytes >= statementBytes || o.stands+c.Size > standingBytes) {
			break
		}
		o.stands += c.Size
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
	if a := policy.Judge(p.Change, st.standing(), g); a != (engine.Applied{}) {
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
			n := &once{Use: policy.Use{Timer: t.ID, Body: o.Body, Expires: o.Expires}, put: true}
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
	if policy.SameDues(old, t) {
		p.row.bound = max(st.after.bound, t.ValidFrom)
	}
}

// Named returns the timer that has the name, or nil.
func (g *group) Named(app, name string) (*engine.Timer, error) {
	return g.timers[g.names[pair{app, name}]].standing(), nil
}

// Used returns the last create made with an Idempotency-Key, or nil.
func (g *group) Used(app, key string) (*policy.Use, error) {
	if o := g.once[pair{app, key}]; o != nil {
		return &o.Use, nil
	}
	return nil, nil
}

// Made returns the timer as it stands, or its last version if it was deleted, or nil.
func (g *group) Made(id engine.TimerID) (*engine.Timer, error) {
	if t := g.timers[id].standing(); t != nil {
		return t, nil
	}
	return g.last[id], nil
}

// standing returns the timer as the group leaves it, or nil.
func (st *standing) standing() *engine.Timer {
	if st == nil || st.after == nil {
		return nil
	}
	return st.after.timer
}

// isSame reports whether writing o in place of r would change nothing.
func (r *row) isSame(o *row) bool {
	return r != nil && o != nil && r.bound == o.bound && bytes.Equal(r.encoded, o.encoded)
}
