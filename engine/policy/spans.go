package policy

import (
	"cmp"
	"slices"

	"xtimer/engine/plan"
)

// Spans are instants from one to another, both included, in order: dues that are over, single
// ones and runs, or the time between those. Those of several sources may overlap until Ordered.
type Spans [][2]int64

// Has reports whether a due is in one of the spans.
func (s Spans) Has(due int64) bool {
	i, ok := slices.BinarySearchFunc(s, due, func(x [2]int64, due int64) int { return cmp.Compare(x[0], due) })
	return ok || i > 0 && due <= s[i-1][1]
}

// Ordered sorts spans, and joins those that overlap. It changes s.
func (s Spans) Ordered() Spans {
	slices.SortFunc(s, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	n := 0
	for _, x := range s {
		if n > 0 && x[0] <= s[n-1][1] {
			s[n-1][1] = max(s[n-1][1], x[1])
			continue
		}
		s[n] = x
		n++
	}
	return s[:n]
}

// Open is what is left of (after, to] without the spans. Those in which the plan has no
// due, as that of a run by hand, leave no gap.
func (s Spans) Open(p *plan.Plan, after, to int64) (open Spans) {
	from := after + 1
	for _, x := range s {
		if x[1] < from || x[0] > to {
			continue
		}
		if due, ok := p.Next(max(x[0], from) - 1); !ok || due > min(x[1], to) {
			continue
		}
		if x[0] > from {
			open = append(open, [2]int64{from, x[0] - 1})
		}
		from = x[1] + 1
	}
	if from <= to {
		open = append(open, [2]int64{from, to})
	}
	return open
}

// Cut cuts the span that an instant lies in after the instant.
func (s Spans) Cut(at int64) Spans {
	for i, x := range s {
		if x[0] <= at && at < x[1] {
			return slices.Concat(s[:i], Spans{{x[0], at}, {at + 1, x[1]}}, s[i+1:])
		}
	}
	return s
}

// Joined sorts spans, leaves out those without a due of the plan, and joins those between
// which the plan has none: what a timer called in a row is one span. It changes s.
func (s Spans) Joined(p *plan.Plan) Spans {
	s = s.Ordered()
	joined := s[:0]
	for _, x := range s {
		first, ok := p.Next(x[0] - 1)
		if !ok || first > x[1] {
			continue
		}
		if last := len(joined) - 1; last >= 0 {
			if next, ok := p.Next(joined[last][1]); ok && first <= next {
				joined[last][1] = max(joined[last][1], x[1])
				continue
			}
		}
		joined = append(joined, x)
	}
	return slices.Clip(joined)
}
