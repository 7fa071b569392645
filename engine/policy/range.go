package policy

import (
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// Ranges are the rows that owe the dues in (after, to]: one range, with the key of the
// ms before its first due. Where a task has that key, or had, its end would pay the
// range, for there is one row under a key: the first due gets a row of its own, and
// the range begins with the next.
func Ranges(t *engine.Timer, p *plan.Plan, after, to int64, taken func(engine.Key) (bool, error)) (os []engine.Owed, err error) {
	for {
		due, ok := p.Next(after)
		if !ok || due > to {
			return os, nil
		}
		k := engine.Key{Timer: t.ID, Due: due - 1}
		is := len(os) > 0 && os[len(os)-1].Key == k
		if !is {
			if is, err = taken(k); err != nil {
				return nil, err
			}
		}
		o := engine.Owed{Key: k, To: to, Generation: t.Generation, NotBefore: due, Lane: t.Lane()}
		if !is {
			return append(os, o), nil
		}
		o.Key.Due, o.To = due, 0
		os = append(os, o)
		after = due
	}
}

// Owes reports whether a row under a key was just decided: those of a timer come last.
func (d *Triage) Owes(k engine.Key) bool {
	for _, o := range slices.Backward(d.Owe) {
		if o.Key.Timer != k.Timer || o.Key == k {
			return o.Key == k
		}
	}
	return false
}
