package fair

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"xtimer/engine/flow"
)

// A task that keeps its place is cancelled while it is pushed: its item comes between Remove and Leave. Each other
// item of the lane is handed out once, wherever it lies, and the place is free.
func TestItemIsPushedBetweenRemoveAndLeave(t *testing.T) {
	for _, places := range []int{1, 2} { // with one, the lane keeps order
		for before := range 3 {
			t.Run(fmt.Sprint(places, " ", before), func(t *testing.T) {
				byHand(t, 100, 100, 100, func(q *hand) {
					k := flowName("a", "k")
					q.SetRule(k, &flow.Rule{Limit: &flow.Limit{Concurrency: places, HoldTask: true}})
					q.Halt()
					x := q.keyed("a", "t", "k", 5)
					q.Keep(&x.Item)
					if !x.Keeps() {
						t.Fatal("no place")
					}
					var others []*call
					for range 2 {
						others = append(others, q.keyed("a", "t", "k", 5))
					}
					q.push(others[:before]...)
					if q.Remove(&x.Item) {
						t.Error("removed before it was pushed")
					}
					q.push(x)
					q.Leave(&x.Item)
					q.push(others[before:]...)
					if s, _ := q.Gate(k); s.InFlight != 0 || x.Keeps() || x.waits {
						t.Errorf("%d places are taken, keeps: %v, waits: %v", s.InFlight, x.Keeps(), x.waits)
					}
					q.Resume()
					var got []*call
					for made := q.look(); len(made) > 0; made = q.look() {
						endAll(made)
						synctest.Wait()
						for _, c := range made {
							q.Leave(&c.Item)
						}
						got = append(got, made...)
					}
					if len(got) != 2 || !slices.Contains(got, others[0]) || !slices.Contains(got, others[1]) {
						t.Errorf("%d calls, the cancelled one among them: %v, want the 2 others", len(got), slices.Contains(got, x))
					}
					if waiting, flying := q.Load(); waiting != 0 || flying != 0 {
						t.Errorf("%d wait, %d are in flight", waiting, flying)
					}
				})
			})
		}
	}
}
