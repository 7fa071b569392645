package policy

import (
	"xtimer/engine"
	"xtimer/engine/plan"
)

// maxCaughtUp is the most dues that an enable catches up.
const maxCaughtUp = 1000

// Passed are the rows for the dues in (since, now] that an enable of t catches up.
// They are those that it had while it was disabled: its max_runs count from before.
func Passed(t *engine.Timer, generation uint32, since, now int64, catch engine.CatchUp, over Spans) ([]engine.Owed, error) {
	former := *t
	former.ValidFrom = since
	p, err := plan.Of(&former)
	if err != nil {
		return nil, err
	}
	owed := func(due int64) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: generation, Origin: engine.FromCatchUp, NotBefore: due, Lane: t.Lane()}
	}
	if catch == engine.CatchUpLatest {
		for due, ok := p.Prev(now); ok; due, ok = p.Prev(due - 1) {
			if !over.Has(due) {
				return []engine.Owed{owed(due)}, nil
			}
		}
		return nil, nil
	}
	var out []engine.Owed
	for due, ok := p.Next(since); ok && due <= now; due, ok = p.Next(due) {
		if over.Has(due) {
			continue
		}
		if len(out) == maxCaughtUp {
			return nil, engine.Invalid("catch_up", "catch_up_too_many", "more than %d dues passed while the timer was disabled", maxCaughtUp)
		}
		out = append(out, owed(due))
	}
	return out, nil
}
