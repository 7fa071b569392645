package checker

import (
	"cmp"
	"slices"
	"strings"
)

// flowKey is a concrete key, or an app where the key is "".
type flowKey struct{ app, key string }

// handout is a call that was handed out to a worker in [from, to] (Unix µs).
type handout struct {
	due      *Due
	call     *Arrived
	from, to int64
}

// flows is L14, L15 and L16.
func (c *court) flows() {
	var asked []*Asked // limits, pauses and resumes, in their order
	for i := range c.logs.Asked {
		if a := &c.logs.Asked[i]; (a.Op == Limits || a.Op == Pause || a.Op == Resume) && !a.Failed {
			asked = append(asked, a)
		}
	}
	if len(asked) == 0 {
		return
	}
	slices.SortStableFunc(asked, func(a, b *Asked) int { return cmp.Compare(a.Invoked, b.Invoked) })
	calls := map[flowKey][]handout{}
	for _, o := range c.all {
		keys := o.timer.flowKeys()
		for _, a := range o.arrivals {
			h := c.handedOut(o, a)
			for _, k := range keys {
				calls[k] = append(calls[k], h)
			}
		}
	}
	for k, hs := range calls {
		slices.SortStableFunc(hs, func(a, b handout) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
		for _, t := range k.terms(asked) {
			in := slices.DeleteFunc(slices.Clone(hs), func(h handout) bool { return h.from <= t.from || h.to >= t.to })
			if t.limit.Rate > 0 {
				c.rate(k, t.limit, in)
			}
			if t.limit.Concurrency == 1 && t.limit.Hold == "task" {
				c.inLine(k, t.from, in)
			}
		}
		for _, p := range k.pauses(asked) {
			c.paused(k, p, hs)
		}
	}
}

// flowKeys are the keys that the timer has named all its life, and its app.
func (t *Timer) flowKeys() []flowKey {
	keys := []flowKey{{t.App, ""}}
	if len(t.Definitions) == 0 {
		return keys
	}
	for key := range strings.FieldsSeq(t.Definitions[0].Flow) {
		if t.all(func(d *Definition) bool { return slices.Contains(strings.Fields(d.Flow), key) }) {
			keys = append(keys, flowKey{t.App, key})
		}
	}
	return keys
}

// handedOut is when a call can have been handed out.
func (c *court) handedOut(o *Due, a *Arrived) handout {
	h := handout{o, a, a.At - c.run.OnTheWay*1000, a.At}
	if a.Begun != 0 {
		waits := c.run.Waits
		if o.timer.some((*Definition).atMostOnce) {
			waits = max(waits, c.run.Unsynced) // for its note
		}
		h.from, h.to = a.Begun-waits*1000, a.Begun
	}
	return h
}

// term is the time (Unix µs) in which a key has had one limit.
type term struct {
	limit    Limit
	from, to int64
}

// concerns reports whether a request is about the key.
func (k flowKey) concerns(a *Asked) bool {
	if k.app != a.App {
		return false
	}
	prefix, pattern := strings.CutSuffix(a.Flow, "*")
	return a.Flow == k.key || pattern && k.key != "" && strings.HasPrefix(k.key, prefix)
}

// terms are the limits that the key has had. The longest match counts, a limit counts from
// its answer, and of one that nobody knows to be in force nothing is judged.
func (k flowKey) terms(asked []*Asked) (all []term) {
	type known struct {
		name  string
		limit *Limit
		sure  bool
	}
	said := map[string]known{}
	effective := func() (in known) {
		longest := -1
		for name, s := range said {
			prefix, pattern := strings.CutSuffix(name, "*")
			length := len(prefix)
			if !pattern {
				length++
			}
			if (s.limit != nil || !s.sure) && length > longest {
				in, longest = s, length
			}
		}
		return in
	}
	var now known
	for _, a := range asked {
		if a.Op != Limits || !k.concerns(a) {
			continue
		}
		was := now
		if said[a.Flow] = (known{a.Flow, a.Limit, true}); !a.OK {
			said[a.Flow] = known{}
		}
		now = effective()
		if was.limit != nil && now.limit != nil && was.name == now.name && *was.limit == *now.limit {
			continue
		}
		if was.limit != nil {
			all[len(all)-1].to = a.Invoked * 1000
		}
		if now.limit != nil {
			all = append(all, term{*now.limit, (a.Answered + 1) * 1000, forever})
		}
	}
	return all
}

// rate is L14 of one key. The calls are in the order of their earliest hand-out.
func (c *court) rate(k flowKey, l Limit, hs []handout) {
	per := l.Per * 1000
	for i := 0; i < len(hs); i++ {
		if n := i + l.Rate; n < len(hs) && hs[n].to-hs[i].from < 2*per+c.run.OnTheWay*1000 {
			c.Full++
		}
		n, end := 0, i
		for ; end < len(hs) && hs[end].from < hs[i].from+per; end++ {
			if hs[end].to < hs[i].from+per {
				n++
			}
		}
		if n > l.Rate {
			c.broken("L14", "%d calls of %s/%s were handed out within %d ms, of %d: from %s at %d to %s at %d", n, k.app, k.key, l.Per, l.Rate,
				hs[i].due.key(), hs[i].call.At, hs[end-1].due.key(), hs[end-1].call.At)
			i = end - 1
		}
	}
}

// pauses are the times (Unix µs) in which the key, or the app, was paused for sure.
func (k flowKey) pauses(asked []*Asked) (all []term) {
	for i, a := range asked {
		if a.Op != Pause || !a.OK || !k.concerns(a) {
			continue
		}
		p := term{from: (a.Answered + 1) * 1000, to: forever}
		if a.Until != 0 {
			p.to = a.Until * 1000
		}
		for _, b := range asked[i+1:] {
			if b.Op != Limits && b.App == a.App && b.Flow == a.Flow {
				p.to = min(p.to, b.Invoked*1000)
				break
			}
		}
		all = append(all, p)
	}
	return all
}

// paused is L16 of one pause.
func (c *court) paused(k flowKey, p term, hs []handout) {
	for i := range hs {
		if h := &hs[i]; h.from > p.from && h.to < p.to {
			c.broken("L16", "%s arrived at %d, and %s/%s was paused since %d", h.due.key(), h.call.At, k.app, k.key, p.from)
		}
	}
}
