package inspect

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRested: a long count is made again after a while only.
func TestRested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c rested
		made := int64(0)
		count := func() int64 {
			time.Sleep(10 * time.Millisecond)
			made++
			return made
		}
		for range 100 {
			if n := c.of(count); n != 1 {
				t.Errorf("the result is of count %d", n)
			}
		}
		time.Sleep(countRest * 10 * time.Millisecond)
		if n := c.of(count); n != 2 {
			t.Errorf("after a rest the result is of count %d", n)
		}

		// A count that takes no time is made each time.
		var short rested
		for range 3 {
			short.of(func() int64 { made++; return made })
		}
		if made != 5 {
			t.Errorf("%d counts were made, not 5", made)
		}
	})
}
