package policy

import (
	"cmp"
	"slices"
)

// Spans are dues that are over, single ones and runs, in order.
type Spans [][2]int64

func (s Spans) Has(due int64) bool {
	i, ok := slices.BinarySearchFunc(s, due, func(x [2]int64, due int64) int { return cmp.Compare(x[0], due) })
	return ok || i > 0 && due <= s[i-1][1]
}

// CompareSpans orders them.
func CompareSpans(a, b [2]int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }
