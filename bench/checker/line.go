package checker

import (
	"cmp"
	"slices"
)

// inLine is L15 of a key with one place that a task keeps until its end: its tasks go one
// after the other, in the order of their dues. Tasks that were called before the key had one
// place keep theirs, however many these are, and go side by side. Tasks that waited at that time (from, Unix µs) may go in
// the order of their timers' turns.
func (c *court) inLine(k flowKey, from int64, hs []handout) {
	slices.SortStableFunc(hs, func(a, b handout) int { return cmp.Compare(a.call.At, b.call.At) })
	last := map[*Due]int{}   // by task, its last call so far
	began := map[*Due]bool{} // tasks that were called first since the key has one place
	var firsts []handout
	for i := range hs {
		h := &hs[i]
		if h.call == h.due.arrivals[0] {
			firsts, began[h.due] = append(firsts, *h), true
		}
		if was, again := last[h.due]; again && c.overtaken(hs[was:i+1], began) {
			c.broken("L15", "%s/%s: %s arrived between two calls of %s, at %d and %d", k.app, k.key, hs[i-1].due.key(), h.due.key(), hs[was].call.At, h.call.At)
		}
		last[h.due] = i
	}
	for i := range firsts {
		if len(c.set) > 0 {
			return // nobody knows where on its clock the service saw a due
		}
		late := &firsts[i]
		if !late.due.ordered() || late.due.At*1000 <= from {
			continue
		}
		since := (late.due.since(late.call) + c.run.OnTheWay) * 1000
		for _, h := range firsts[:i] {
			if h.due.At > late.due.At && h.call.At >= since && h.call.At < late.call.At && h.due.ordered() {
				c.broken("L15", "%s/%s: %s was called first at %d, after %s at %d, which is due later", k.app, k.key, late.due.key(), late.call.At, h.due.key(), h.call.At)
				break
			}
		}
	}
}

// overtaken reports whether calls of other tasks came between the first and the last of these,
// which are two calls of one task: unless the task had ended with the first, or a crash took
// away that there was one.
func (c *court) overtaken(hs []handout, began map[*Due]bool) bool {
	first, last := &hs[0], &hs[len(hs)-1]
	others := slices.ContainsFunc(hs, func(h handout) bool {
		return h.due != first.due && (began[h.due] || began[first.due]) && h.call.At > first.call.At && h.call.At < last.call.At
	})
	return others && first.due.Redriven == 0 && first.call.retryable() && c.forgot(first.call, last.call.At/1000) == nil
}

// ordered reports whether nothing but its key keeps a due from being called in its turn.
func (o *Due) ordered() bool {
	d := o.timer.Definitions[0]
	doubtful := o.Doubtful || slices.ContainsFunc(o.Eras, func(e *Era) bool { return e.unsure })
	return o.Redriven == 0 && !o.Unreached && !doubtful && len(o.timer.flowKeys()) == 2 &&
		o.timer.all(func(x *Definition) bool { return x.Flow == d.Flow && (x.Overlap == "" || x.Overlap == "allow") })
}
