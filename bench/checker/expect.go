package checker

import (
	"cmp"
	"math"
	"slices"
)

// Timer is the life of one timer, as it is known to whoever has a run judged.
type Timer struct {
	ID, App, Name string
	Definitions   []*Definition // that it has had: what one of them allows is allowed
	Finals        []*Final
	Dues          []*Due

	// Of a timer that is known from the logs alone.
	eras    []*Era
	born    *Asked // its create
	deleted *Asked // nil: not
	changes []*Asked
}

// some reports whether one of the definitions is such, and all whether each is.
func (t *Timer) some(is func(*Definition) bool) bool { return slices.ContainsFunc(t.Definitions, is) }

func (t *Timer) all(is func(*Definition) bool) bool {
	return !t.some(func(d *Definition) bool { return !is(d) })
}

// Era is the time during which a schedule was in force.
type Era struct {
	Generation uint32 // 0: not known
	From       int64  // its dues count from here (Unix ms)
	Over       bool   // somebody asked for its end

	// Of a timer that is known from the logs alone.
	def    *Definition
	defs   []*Asked // the requests that gave its definition: another callback is no other era
	anchor int64
	fresh  bool // an instant that was past when it was given is due
	unsure bool // nobody knows whether it came into force
	// The request that ended it was sent and answered then (Unix ms). Never
	// answered, it may or may not have ended it.
	endSent, endAnswered int64
	end                  *Asked
}

const forever = math.MaxInt64

// Due is a due that there may be.
type Due struct {
	At   int64  // Unix ms
	Eras []*Era // that may have it
	Must bool   // it has to be called, or to have its reason
	// Redriven is how often somebody may have asked for it again when it was over.
	Redriven int
	// Unreached: an attempt reached nobody.
	Unreached bool
	// Doubtful: a request that gave it was in doubt. Nobody knows from when the service knew of it.
	Doubtful bool

	timer    *Timer
	arrivals []*Arrived
}

func (o *Due) key() key { return key{o.timer.ID, o.At} }

// ended is when the last schedule that has this due was ended for sure.
func (o *Due) ended() (at int64, by *Asked) {
	for _, e := range o.Eras {
		if e.endAnswered >= at {
			at, by = e.endAnswered, e.end
		}
	}
	return at, by
}

// since is from when (Unix ms) a call of the due has waited: an instant may have been
// past when it was given.
func (o *Due) since(a *Arrived) int64 {
	since := o.At
	for _, e := range o.Eras {
		if e.Generation == a.Generation {
			since = max(since, e.From)
		}
	}
	return since
}

// final is what history says of the due.
func (o *Due) final() *Final {
	var run *Final
	for _, f := range o.timer.Finals {
		if f.Due == o.At {
			return f
		}
		if f.Due < o.At && o.At <= f.DueLast {
			run = f
		}
	}
	return run
}

// expect works out all dues that there must be, and may be.
func (c *court) expect() error {
	c.timers, c.unknown = map[string]*Timer{}, map[string]*Asked{}
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
			t.Finals = append(t.Finals, a.Final)
		case Trigger:
			c.occurrence(t, &Era{def: t.eras[len(t.eras)-1].def, endSent: forever, endAnswered: forever}, a.From).Must = true
		}
	}
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
		t = &Timer{ID: a.Timer, App: a.App, Name: a.Name, born: a}
		c.timers[a.Timer] = t
		t.begin(a)
	case Change, Enable:
		if t == nil {
			return
		}
		t.changes = append(t.changes, a)
		if e := t.standing(); a.Op == Change && e != nil && a.Definition.Schedule == e.def.Schedule && a.From <= e.From {
			e.defs = append(e.defs, a)
			e.def = a.Definition
			t.Definitions = append(t.Definitions, a.Definition)
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

func (t *Timer) standing() *Era {
	if e := t.eras[len(t.eras)-1]; e.end == nil {
		return e
	}
	return nil
}

func (t *Timer) begin(a *Asked) {
	e := &Era{
		def: a.Definition, defs: []*Asked{a}, From: a.From, anchor: a.Anchor, fresh: a.Op == Create || a.Op == Change,
		unsure: !a.OK, endSent: forever, endAnswered: forever,
	}
	if e.anchor == 0 && len(t.eras) > 0 {
		e.anchor = t.eras[0].anchor
	}
	if e.unsure {
		e.From = a.Invoked
	}
	t.eras = append(t.eras, e)
	t.Definitions = append(t.Definitions, e.def)
}

func (t *Timer) finish(a *Asked) {
	for _, e := range t.eras {
		if e.endAnswered == forever {
			e.endSent, e.Over = min(e.endSent, a.Invoked), true
			if a.OK {
				e.endAnswered, e.end = a.Answered, a
			}
		}
	}
}

// dues are the occurrences of an era.
func (c *court) dues(t *Timer, e *Era, last int64) error {
	ds, err := e.def.Schedule.Dues(e.From, e.anchor, e.From, min(last, e.endAnswered))
	if err != nil {
		return err
	}
	if at := e.def.Schedule.At; at != 0 && at <= e.From && e.fresh {
		ds = append(ds, at)
	}
	for _, d := range ds {
		o := c.occurrence(t, e, d)
		o.Must = o.Must || !e.unsure && max(d, e.From) < e.endSent && d <= c.run.Ended
	}
	return nil
}

// occurrence is the due of a timer, which an era has as well.
func (c *court) occurrence(t *Timer, e *Era, due int64) *Due {
	k := key{t.ID, due}
	o := c.due[k]
	if o == nil {
		o = &Due{At: due, timer: t}
		c.due[k] = o
		t.Dues = append(t.Dues, o)
	}
	o.Eras = append(o.Eras, e)
	return o
}
