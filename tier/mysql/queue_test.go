package mysql

import (
	"testing"

	"xtimer/engine"
)

// TestGroupByBytes: a commit reads the definitions that it removes, all in one statement, so
// it takes fewer changes of large ones, from one caller as from many.
func TestGroupByBytes(t *testing.T) {
	for size, want := range map[int]int{512 << 10: standingBytes / (512 << 10), 100: statementRows, 100 << 20: 1} {
		var cs []*engine.Change
		var q queue
		q.open()
		for i := range 2 * statementRows {
			c := &engine.Change{ID: engine.TimerID(i + 1), Was: 1, Size: size}
			cs = append(cs, c)
			if err := q.put(prepare([]*engine.Change{c})); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(q.take()); n != want {
			t.Errorf("a commit takes %d deletes of %d bytes, want %d", n, size, want)
		}
		if n := len(prepare(cs).changes); n != want {
			t.Errorf("a commit takes %d deletes of %d bytes of one caller, want %d", n, size, want)
		}
	}
}
