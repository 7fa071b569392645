package checker

import (
	"cmp"
	"math"
	"slices"
)

// timer is the life of one timer, as its owner knows it.
type timer struct {
	id, app, name string
	eras          []*era
	born          *Asked // its create
	deleted       *Asked // nil: not
	changes       []*Asked
	finals        []*Final
}

// era is the time during which a schedule was in force.
type era struct {
	def          *Definition
	defs         []*Asked // the requests that gave its definition: another callback is no other era
	from, anchor int64
	fresh        bool // an instant that was past when it was given is due
	unsure       bool // nobody knows whether it came into force
	// The request that ended it was sent and answered then (Unix ms). Never
	// answered, it may or may not have ended it.
	endSent, endAnswered int64
	end                  *Asked
}

const forever = math.MaxInt64

// occurrence is a due that there may be.
type occurrence struct {
	key
	t        *timer
	eras     []*era
	must     bool // it has to be called, or to have its reason
	arrivals []*Arrived
}

func (o *occurrence) def() *Definition { return o.eras[len(o.eras)-1].def }

// ended is when the last schedule that has this due was ended for sure.
func (o *occurrence) ended() (at int64, by *Asked) {
	for _, e := range o.eras {
		if e.endAnswered >= at {
			at, by = e.endAnswered, e.end
		}
	}
	return at, by
}

// final is what history says of the due.
func (o *occurrence) final() *Final {
	for _, f := range o.t.finals {
		if f.Due <= o.due && o.due <= max(f.Due, f.DueLast) {
			return f
		}
	}
	return nil
}

// expect works out all dues that there must be, and may be.
func (c *court) expect() error {
	c.timers, c.unknown, c.due = map[string]*timer{}, map[string]*Asked{}, map[key]*occurrence{}
	asked := make([]*Asked, len(c.logs.Asked))
	for i := range c.logs.Asked {
		asked[i] = &c.logs.Asked[i]
	}
	slices.SortStableFunc(asked, func(a, b *Asked) int { return cmp.Compare(a.Invoked, b.Invoked) })
	for _, a := range asked {
		c.live(a)
	}
	last := c.run.Ended
	for i := range c.logs.Arrived {
		last = max(last, c.logs.Arrived[i].At/1000)
	}
	for _, t := range c.timers {
		for _, e := range t.eras {
			if err := c.dues(t, e, last); err != nil {
				return err
			}
		}
	}
	for _, a := range asked {
		t := c.timers[a.Timer]
		if t == nil || !a.OK {
			continue
		}
		switch a.Op {
		case Task:
			t.finals = append(t.finals, a.Final)
		case Trigger:
			e := &era{def: t.eras[len(t.eras)-1].def, endSent: forever, endAnswered: forever}
			c.occurrence(t, e, a.From).must = true
		}
	}
	for _, o := range c.due {
		c.all = append(c.all, o)
		if o.must {
			c.Dues++
		}
	}
	slices.SortFunc(c.all, func(a, b *occurrence) int { return cmp.Or(cmp.Compare(a.timer, b.timer), cmp.Compare(a.due, b.due)) })
	return nil
}

// live takes one request into the life of its timer.
func (c *court) live(a *Asked) {
	if a.Failed {
		return
	}
	t := c.timers[a.Timer]
	switch a.Op {
	case Create:
		if !a.OK {
			c.unknown[a.App+"/"+a.Name] = a
			return
		}
		t = &timer{id: a.Timer, app: a.App, name: a.Name, born: a}
		c.timers[a.Timer] = t
		t.begin(a)
	case Change, Enable:
		if t == nil {
			return
		}
		t.changes = append(t.changes, a)
		if e := t.standing(); a.Op == Change && e != nil && a.Definition.Schedule == e.def.Schedule && a.From <= e.from {
			e.defs = append(e.defs, a)
			e.def = a.Definition
			return
		}
		t.finish(a)
		t.begin(a)
	case Disable, Delete:
		if t == nil {
			return
		}
		t.changes = append(t.changes, a)
		def := t.eras[len(t.eras)-1].def
		t.finish(a)
		if a.Op == Delete {
			t.deleted = a
		} else if a.From != 0 { // until then
			until := *a
			until.Definition = def
			t.begin(&until)
		}
	}
}

func (t *timer) standing() *era {
	if e := t.eras[len(t.eras)-1]; e.end == nil {
		return e
	}
	return nil
}

func (t *timer) begin(a *Asked) {
	e := &era{
		def: a.Definition, defs: []*Asked{a}, from: a.From, anchor: a.Anchor, fresh: a.Op == Create || a.Op == Change,
		unsure: !a.OK, endSent: forever, endAnswered: forever,
	}
	if e.anchor == 0 && len(t.eras) > 0 {
		e.anchor = t.eras[0].anchor
	}
	if e.unsure {
		e.from = a.Invoked
	}
	t.eras = append(t.eras, e)
}

func (t *timer) finish(a *Asked) {
	for _, e := range t.eras {
		if e.endAnswered == forever {
			e.endSent = min(e.endSent, a.Invoked)
			if a.OK {
				e.endAnswered, e.end = a.Answered, a
			}
		}
	}
}

// dues are the occurrences of an era.
func (c *court) dues(t *timer, e *era, last int64) error {
	ds, err := e.def.Schedule.Dues(e.from, e.anchor, e.from, min(last, e.endAnswered))
	if err != nil {
		return err
	}
	if at := e.def.Schedule.At; at != 0 && at <= e.from && e.fresh {
		ds = append(ds, at)
	}
	for _, d := range ds {
		o := c.occurrence(t, e, d)
		o.must = o.must || !e.unsure && max(d, e.from) < e.endSent && d <= c.run.Ended
	}
	return nil
}

func (c *court) occurrence(t *timer, e *era, due int64) *occurrence {
	k := key{t.id, due}
	o := c.due[k]
	if o == nil {
		o = &occurrence{key: k, t: t}
		c.due[k] = o
	}
	o.eras = append(o.eras, e)
	return o
}
