package terminal

import (
	"strings"
	"testing"
)

// TestGridByDisplayWidth: a column begins at the same place of the screen in every row.
func TestGridByDisplayWidth(t *testing.T) {
	g := Grid{Head: []string{"TIMER", "STATUS"}}
	g.Add("billing/订单到期", "enabled")
	g.Add("billing/e\u0301te\u0301", "enabled") // accents of their own
	g.Add("billing/👩‍👩‍👧", "enabled")
	g.Add("billing/a", "enabled")
	var out strings.Builder
	if err := g.Print(&out); err != nil {
		t.Fatal(err)
	}
	const column = len("billing/") + 4*2 + 2
	for line := range strings.Lines(out.String()) {
		before, _, ok := strings.Cut(strings.TrimSpace(line), "enabled")
		if ok && Width(before) != column {
			t.Errorf("the second column begins at %d, not at %d: %q", Width(before), column, line)
		}
	}
}
