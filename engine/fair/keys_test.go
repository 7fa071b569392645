package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestSeveralKeysWithOrder: lanes may name several keys that keep order. Of each key one task is under way at
// a time, whatever comes, and all of them go in the end.
func TestSeveralKeysWithOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stuck := time.AfterFunc(20*time.Second, func() { panic("the queue hands lanes from one gate to the other for ever") })
		defer stuck.Stop()
		q := New(Config[int]{Places: 100, PerApp: 100, PerTarget: 100})
		q.closed, q.armed = true, 1 // no worker takes an item, no timer fires
		var names [7]string
		var lanes []*Lane[int]
		for i := range names {
			for k := range 3 {
				if (i+1)>>k&1 != 0 {
					names[i] += fmt.Sprintf(" k%d", k)
				}
			}
			names[i] = names[i][1:]
			lanes = append(lanes, q.Lane("a", fmt.Sprintf("http://t%d:1", i), names[i]))
		}
		for k := range 3 {
			q.SetRule(flowName("a", fmt.Sprint("k", k)), &inLine)
		}
		items := map[int]*Item[int]{}
		var runs []run[int]
		handOut := func() {
			for {
				q.closed = false
				r := q.pick(q.now())
				q.closed = true
				if r.lane == nil {
					return
				}
				for _, was := range runs {
					if a, b := slices.Index(lanes, r.lane), slices.Index(lanes, was.lane); (a+1)&(b+1) != 0 {
						t.Fatalf("a call for %q goes while one for %q is under way", names[a], names[b])
					}
				}
				runs = append(runs, r)
			}
		}
		end := func() {
			if len(runs) == 0 {
				return
			}
			i := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
			r := runs[i]
			runs = slices.Delete(runs, i, i+1)
			q.release(r, Result{Ended: Answered, Took: time.Millisecond}, q.now())
			q.Leave(items[r.value])
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				i := rapid.IntRange(0, len(lanes)-1).Draw(t, "lane")
				it := &Item[int]{Value: len(items), Lane: lanes[i], Priority: 5, Due: int64(1000 + rapid.IntRange(0, 50).Draw(t, "due"))}
				items[it.Value] = it
				q.Push(it)
			case 2:
				handOut()
			case 3:
				end()
			}
		}
		for handOut(); len(runs) > 0; handOut() {
			end()
		}
		if n, _ := q.Load(); n > 0 {
			t.Fatalf("%d items wait, and none goes", n)
		}
	})
}
