package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine/flow"
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

// TestOrderOfLanesThatStand: lanes of two apps stand for a place at a target with an order, while others have
// all places. The item that is due first goes first, whichever lane came first, and whosever turn it is.
func TestOrderOfLanesThatStand(t *testing.T) {
	for _, dues := range [][2]int64{{1000, 2000}, {2000, 1000}} {
		for _, apps := range [][2]string{{"a", "b"}, {"b", "a"}} {
			q := New(Config[int64]{Places: 1, PerApp: 10, PerTarget: 10})
			q.closed, q.armed = true, 1 // no worker takes an item, no timer fires
			pick := func() run[int64] {
				q.closed = false
				defer func() { q.closed = true }()
				return q.pick(q.now())
			}
			q.Push(&Item[int64]{Lane: q.Lane("busy", "http://busy:1", ""), Priority: 5})
			busy := pick()
			target := q.Lane("a", "http://t:1", "").target.key
			q.SetRule(flow.Name{Kind: flow.OfTarget, Key: target}, &inLine)
			for i, due := range dues {
				q.Push(&Item[int64]{Value: due, Lane: q.Lane(apps[i], "http://t:1", ""), Priority: 5, Ready: 1, Due: due})
			}
			q.release(busy, Result{Ended: Answered, Took: time.Millisecond}, q.now())
			if r := pick(); r.lane == nil || r.value != 1000 {
				t.Errorf("of dues that came as %d, of %q, %d goes first", dues, apps, r.value)
			}
		}
	}
}
