package local

import (
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// Apply makes one change of one timer.
func (s *Store) Apply(ctx context.Context, c *engine.Change) (engine.Applied, error) {
	a := s.ApplyAll(ctx, []*engine.Change{c})[0]
	return a, a.Err
}

// ApplyAll makes many independent changes, up to groupLimit in one commit.
func (s *Store) ApplyAll(ctx context.Context, cs []*engine.Change) []engine.Applied {
	out := make([]engine.Applied, 0, len(cs))
	for len(cs) > 0 {
		n, weighs := 1, weight(cs[0])
		for ; n < len(cs) && weighs+weight(cs[n]) <= groupLimit; n++ {
			weighs += weight(cs[n])
		}
		out = append(out, s.applyPart(ctx, cs[:n], weighs)...)
		cs = cs[n:]
	}
	return out
}

func (s *Store) applyPart(ctx context.Context, cs []*engine.Change, weighs int) []engine.Applied {
	ps := prepare(cs)
	made := make([]engine.Applied, len(ps))
	err := s.do(ctx, weighs, func(g *group) error {
		for i := range ps {
			made[i] = g.change(&ps[i])
		}
		return nil
	})
	if err == nil {
		return made
	}
	out := make([]engine.Applied, len(ps)) // the committer may still write to made
	for i := range out {
		out[i].Err = err
	}
	return out
}

// prepared is a change with what can be encoded before the committer sees it,
// in the caller's goroutine.
type prepared struct {
	engine.Change
	row   []byte  // the stored form of Timer
	index []write // its index entries, if it is new
}

func prepare(cs []*engine.Change) []prepared {
	ps := make([]prepared, len(cs))
	buf := make([]byte, 0, 512*len(cs))
	ws := make([]write, 0, 4*len(cs))
	for i, c := range cs {
		p := &ps[i]
		p.Change = *c
		if c.Timer == nil {
			continue
		}
		p.ID = c.Timer.ID
		n := len(buf)
		buf = engine.AppendTimer(buf, c.Timer)
		p.row = buf[n:len(buf):len(buf)]
		if c.Was == 0 {
			n := len(ws)
			ws, buf = index(ws, buf, c.Timer, slot(c.Timer.ValidFrom))
			p.index = ws[n:len(ws):len(ws)]
		}
	}
	return ps
}

// change judges one change; it writes nothing unless all of it is made.
func (g *group) change(p *prepared) engine.Applied {
	old, err := g.timer(p.ID)
	if err != nil {
		return engine.Applied{Err: err}
	}
	if a := policy.Judge(&p.Change, old, g); a != (engine.Applied{}) {
		return a
	}
	var b bound
	if old != nil {
		b, err = g.bound(old)
	}
	if err = errors.Join(err, g.fetchOwed(p.Pay, p.Owe)); err != nil {
		return engine.Applied{Err: err}
	}
	// From here on nothing fails.
	g.decide(p)
	if old == nil {
		g.create(p)
	} else {
		g.replace(p, old, b)
	}
	return engine.Applied{}
}

// Named returns the timer that has the name, or nil.
func (g *group) Named(app, name string) (*engine.Timer, error) {
	id, err := g.named(app, name)
	if err != nil || id == 0 {
		return nil, err
	}
	t, err := g.timer(id)
	if err == nil && t == nil {
		err = damaged(g.probe, errors.New("a name without a timer"))
	}
	return t, err
}

// Made returns the timer as it stands, or its last version if it was deleted, or nil.
func (g *group) Made(id engine.TimerID) (*engine.Timer, error) {
	t, err := g.timer(id)
	if t == nil && err == nil {
		t, err = g.lastVersion(id)
	}
	return t, err
}

func (g *group) create(p *prepared) {
	t := p.Timer
	g.put(g.key(timerKey, t.ID), p.row)
	g.putAll(p.index)
	g.timers[t.ID] = t
	if t.Name != "" {
		g.probe = nameKey(g.probe[:0], t.App, t.Name, t.ID)
		g.names[string(g.probe)] = t.ID
	}
	g.st.newest = max(g.st.newest, t.ID)
	g.st.stats.timers[t.Status]++
	g.st.clock = max(g.st.clock, t.UpdatedAt)
	if o := p.Once; o != nil {
		u := &policy.Use{Timer: t.ID, Expires: o.Expires, Body: o.Body}
		key := onceKey(nil, o.App, o.Key)
		g.once[string(key)] = u
		g.put(key, encodeUse(nil, u))
		g.put(onceAtKey(nil, o), none)
	}
}

// replace replaces old by p.Timer, or removes old if it is nil, and keeps the former
// version.
func (g *group) replace(p *prepared, old *engine.Timer, b bound) {
	g.st.clock = max(g.st.clock, old.UpdatedAt, p.At)
	if p.Timer == nil {
		g.put(deletedKey(nil, old.ID), appendTime([]byte{valueVersion}, p.At))
	}
	if p.Timer == nil || p.Timer.Version != old.Version {
		g.put(versionKey(nil, old.ID, old.Version), engine.AppendTimer(nil, old))
		g.put(formerKey(nil, g.st.clock, old.ID, old.Version), none)
	}
	g.store(old, p.Timer, p.row, b)
}

// store replaces old by t (its stored form in row), or removes old if t is nil, and
// updates the indexes; b is the bound of old.
func (g *group) store(old, t *engine.Timer, row []byte, b bound) {
	was, buf := index(nil, nil, old, b.due)
	var is []write
	if t != nil {
		b = g.carry(old, t, b)
		is, _ = index(nil, buf, t, b.due)
		g.put(g.key(timerKey, t.ID), row)
		g.st.stats.timers[t.Status]++
	} else {
		g.dropBound(old.ID, b)
		g.delete(g.key(timerKey, old.ID))
		g.note(old.ID)
	}
	g.st.stats.timers[old.Status]--
	for _, w := range was {
		g.delete(w.key)
	}
	g.putAll(is)
	g.timers[old.ID] = t
	if old.Name != "" {
		g.names[string(nameKey(nil, old.App, old.Name, 0))] = 0
	}
	if t != nil && t.Name != "" {
		g.names[string(nameKey(nil, t.App, t.Name, 0))] = t.ID
	}
}

// carry returns the bound of t, which replaces old with bound b. The bound stays
// the same if the dues do.
func (g *group) carry(old, t *engine.Timer, b bound) bound {
	if policy.SameDues(old, t) && t.Status == engine.Enabled && b.stored {
		if b.version = t.Version; t.Version != old.Version {
			g.setBound(t.ID, b)
		}
		return b
	}
	g.dropBound(t.ID, b)
	return bound{due: slot(t.ValidFrom), version: t.Version}
}

// decide stores the rows and records of a change.
func (g *group) decide(p *prepared) {
	g.pay(p.Pay)
	g.owe(p.Owe)
	for _, t := range p.Tasks {
		ws, _ := recordWrites(nil, nil, t.Key, t.Status, engine.AppendTask(nil, t))
		ws = indexWrites(ws, []engine.Key{t.Key})
		g.st.touch(ws)
		g.putAll(ws)
		g.ranks[t.Key] = engine.RankOf(t)
	}
}

// key builds a key of a timer's id that stays until the commit.
func (g *group) key(build func([]byte, engine.TimerID) []byte, id engine.TimerID) []byte {
	n := len(g.buf)
	g.buf = build(g.buf, id)
	return g.buf[n:len(g.buf):len(g.buf)]
}
