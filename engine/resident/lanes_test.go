package resident

import "testing"

// A lane that has nothing in memory counts itself when it asks for its share: the second
// of two lanes gets half of what may wait, also while the first has taken all of it.
func TestShareOfASecondLane(t *testing.T) {
	lanes := newLanes(40)
	first, second := lanes.Of(1), lanes.Of(2)
	for range 40 {
		first.enter()
	}
	if n := second.room(); n != 20 {
		t.Errorf("the second lane has room for %d, want 20", n)
	}
}
