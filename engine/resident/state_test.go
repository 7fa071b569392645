package resident

import (
	"fmt"
	"strings"
	"testing"
)

// TestMoves tries each state after each: what the table has is done, all else is a bug.
func TestMoves(t *testing.T) {
	want := map[State]string{
		isNew:     "queued retrying",
		Queued:    "frozen parked preparing retrying leaving done gone",
		Frozen:    "queued done gone",
		Parked:    "queued done gone",
		Preparing: "queued frozen writing retrying done gone",
		Writing:   "preparing sending retrying done gone",
		Sending:   "retrying done gone",
		Retrying:  "queued done gone",
		Leaving:   "queued done gone",
		Done:      "gone",
		Gone:      "",
	}
	for from := range states {
		for to := range states {
			x := &Task{state: from, timer: &Timer{}, Lane: &Lane{}}
			bug := func() (bug any) {
				defer func() { bug = recover() }()
				x.move(to)
				return nil
			}()
			may := strings.Contains(" "+want[from]+" ", " "+to.String()+" ")
			switch {
			case may && (bug != nil || x.state != to):
				t.Errorf("%v does not become %v: %v", from, to, bug)
			case !may && (bug == nil || !strings.HasPrefix(fmt.Sprint(bug), "BUG: ") || x.state != from):
				t.Errorf("%v becomes %v: %v", from, to, bug)
			}
		}
	}
}

// TestEachStateEnds: from each state a task can end, and leave memory.
func TestEachStateEnds(t *testing.T) {
	ends := [states]bool{Gone: true}
	for range states {
		for from := range states {
			for _, to := range moves[from] {
				ends[from] = ends[from] || ends[to]
			}
		}
	}
	for s, ok := range ends {
		if !ok {
			t.Errorf("a task that is %v never leaves memory", State(s))
		}
	}
}
