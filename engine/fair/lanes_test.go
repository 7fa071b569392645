package fair

import (
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// TestForgottenTargets: targets that come and go leave nothing behind, also if they did
// not answer.
func TestForgottenTargets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config[int]{Places: 100, PerApp: 100, PerTarget: 100, Run: func(int) Result {
			return Result{Ended: Unanswered, Took: time.Second}
		}})
		for i := range 4 * manyLanes {
			q.Push(&Item[int]{Lane: q.Lane("app", strconv.Itoa(i), "")})
			if i%manyLanes == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if len(q.targets) > 2*manyLanes {
			t.Errorf("%d targets are remembered", len(q.targets))
		}
		if s := q.Stats(1); s.Limited != len(q.targets) {
			t.Errorf("%d targets are limited, of %d", s.Limited, len(q.targets))
		}
		for _, x := range q.limited {
			if q.targets[x.name] != x {
				t.Fatalf("%s is limited, and was forgotten", x.name)
			}
		}
		q.Close()
		q.Wait()
	})
}

// Keys that come and go leave nothing behind, also where some call of their target is always in flight.
func TestForgottenKeysOfABusyTarget(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		long := q.keyed("shop", "t", "long", 5)
		q.push(long)
		q.look()
		for i := range 3 * manyLanes / 2 {
			q.Lane("shop", "t", fmt.Sprint("order-", i))
		}
		q.Queue.mu.Lock()
		lanes := len(q.lanes)
		q.Queue.mu.Unlock()
		if lanes > manyLanes || long.Lane.dead.Load() {
			t.Errorf("%d lanes are remembered; the one with a call is forgotten: %v", lanes, long.Lane.dead.Load())
		}
		long.end()
	})
}
