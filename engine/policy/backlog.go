package policy

import (
	"xtimer/engine"
	"xtimer/engine/plan"
)

// InBacklog reports whether a backlog decides whether a due of a timer is called that waits
// for its first attempt. What somebody has asked for since, or by hand, is called. While the
// clock is behind the backlog, it has been set back, and the dues are to come again.
func InBacklog(b engine.Backlog, t *engine.Timer, origin engine.Origin, due, now int64) bool {
	is := func(upTo int64) bool {
		if due > upTo || now < upTo {
			return false
		}
		switch origin {
		case engine.FromSchedule:
			return t.ValidFrom <= upTo
		case engine.FromCatchUp: // its dues are older than its generation
			return t.UpdatedAt <= upTo
		}
		return false
	}
	return is(b.Skip) || is(b.Latest) && !t.Schedule.OneShot()
}

// Leave are those dues of a backlog that are not called. All of the dues wait; last is the last
// of them that is known to wait, -1 for none.
func (s Spans) Leave(b engine.Backlog, p *plan.Plan) (not Spans, last int64) {
	s = s.Ordered()
	last = -1
	for _, x := range s {
		if x[1] <= b.Skip {
			continue
		}
		due := x[1]
		if x[0] != x[1] {
			var ok bool
			if due, ok = p.Prev(x[1]); !ok || due < x[0] || due <= b.Skip {
				continue
			}
		}
		last = max(last, due)
	}
	for _, x := range s {
		switch {
		case last < x[0] || x[1] < last:
			not = append(not, x)
		case x[0] < last:
			not = append(not, [2]int64{x[0], last - 1})
		}
	}
	return not, last
}
