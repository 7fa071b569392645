package fair

import (
	"testing"
	"time"

	"xtimer/engine/flow"
)

// A departure counts at each limit of the lane; a call that would wait too long counts at none, and one that
// stays gives its departures back.
func TestDepartures(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		for key, n := range map[string]int{"x": 20, "y": 1} {
			q.SetRule(flowName("a", key), &flow.Rule{Limit: &flow.Limit{Rate: n, Per: time.Second, Burst: 1}})
		}
		both, one := q.Lane("a", "t", "x y"), q.Lane("a", "t", "x")
		depart := func(l *Lane[*call], want time.Duration, may bool) *Departure[*call] {
			t.Helper()
			d, wait, ok := q.Depart(l)
			if wait != want || ok != may {
				t.Fatalf("wait %v, %v; want %v, %v", wait, ok, want, may)
			}
			return &d
		}
		depart(both, 0, true).Stay()
		depart(both, 0, true)
		depart(both, time.Second, false)
		depart(one, 50*time.Millisecond, true)
		depart(one, 100*time.Millisecond, true)
		depart(one, 150*time.Millisecond, false)
		time.Sleep(time.Second)
		depart(both, 0, true).Stay()
		depart(both, 0, true)
		depart(q.Lane("a", "t", ""), 0, true).Stay()
		forced := q.ForcedLane("a", "t", "x y", 0)
		for range 5 {
			depart(forced, 0, true)
		}
	})
}
