package fair

import (
	"fmt"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"xtimer/engine/flow"
)

// list reads all pages of what waits for a key; between two of them others have the queue.
func (q *hand) list(page func() int, between func()) (all []*call) {
	var seen Seen
	for {
		ws, _, end := q.WaitingFor("a", "k", &seen, page())
		for _, w := range ws {
			if w.Came <= seen[w.Row] {
				panic("the page goes back")
			}
			seen[w.Row] = w.Came
			all = append(all, w.Value)
		}
		if end {
			return all
		}
		between()
	}
}

// The list is in the order in which the items go, whatever their priorities and lanes are.
func TestTheListIsInTheOrderOfTheCalls(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		targets := rapid.IntRange(1, 20).Draw(rt, "targets")
		n := rapid.IntRange(0, 2000).Draw(rt, "items")
		size := rapid.IntRange(1, 700).Draw(rt, "page")
		spread := rapid.IntRange(0, 9).Draw(rt, "priorities")
		byHand(t, 1000, 1000, 1000, func(q *hand) {
			q.SetRule(flowName("a", "k"), &flow.Rule{Paused: flow.Never})
			for i := range n {
				q.push(q.keyed("a", fmt.Sprint("t", i%targets), []string{"k", "k k2"}[i%2], uint8(i*7%(spread+1))))
				time.Sleep(time.Duration(i%3) * time.Millisecond)
			}
			listed := q.list(func() int { return size }, func() {})
			if len(listed) != n {
				rt.Fatalf("%d of %d are listed", len(listed), n)
			}
			q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 1000, Per: time.Second, Burst: 1}})
			var order []*call
			q.within(time.Duration(n+10)*1100*time.Microsecond, func(c *call) { order = append(order, c); c.end() })
			for i := range listed {
				// Items of several lanes that came in the same millisecond go in any order.
				if order[i] != listed[i] && rankOf(order[i]) != rankOf(listed[i]) {
					rt.Fatalf("call %d is of rank %d, and the list has one of rank %d", i, rankOf(order[i]), rankOf(listed[i]))
				}
			}
		})
	})
}

func rankOf(c *call) int64 { return c.Ready - int64(c.Priority)*ageing }

// A page of a key with many lanes is made of the first of them, and says that there are more.
func TestAPageOfManyLanes(t *testing.T) {
	byHand(t, 10, 10, 10, func(q *hand) {
		q.SetRule(flowName("a", "k"), &flow.Rule{Paused: flow.Never})
		var calls []*call
		for i := range 2 * looksAtOnce { // after the last of them others have the queue
			calls = append(calls, q.keyed("a", fmt.Sprint("t", i), "k", 5))
			q.push(calls[i])
		}
		if listed := q.list(func() int { return 100 }, func() {}); !slices.Equal(listed, calls) {
			t.Errorf("%d of %d are listed, or in another order", len(listed), len(calls))
		}
	})
}

// Between two pages items come and go, in lanes with marks too: those that stay are listed once.
func TestPagesHaveWhatStays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		byHand(t, 1000, 1000, 1000, func(q *hand) {
			q.SetRule(flowName("a", "k"), &flow.Rule{Paused: flow.Never})
			var waiting []*call
			gone := map[*call]bool{}
			come := func(n int) {
				for i := range n {
					c := q.keyed("a", fmt.Sprint("t", i*i%3), "k", uint8(i%2*5))
					q.push(c)
					waiting = append(waiting, c)
				}
			}
			come(rapid.IntRange(0, 3000).Draw(rt, "items"))
			stays := slices.Clone(waiting)
			listed := q.list(func() int { return rapid.IntRange(1, 900).Draw(rt, "page") }, func() {
				come(rapid.IntRange(0, 50).Draw(rt, "more"))
				for range rapid.IntRange(0, 400).Draw(rt, "fewer") {
					i := 0 // the first, or any
					if rapid.Bool().Draw(rt, "any") {
						i = rapid.IntRange(0, len(waiting)-1).Draw(rt, "which")
					}
					if c := waiting[i]; !gone[c] && q.Remove(&c.Item) {
						gone[c] = true
					}
				}
				waiting = slices.DeleteFunc(waiting, func(c *call) bool { return gone[c] })
				if len(waiting) == 0 {
					come(1)
				}
			})
			times := map[*call]int{}
			for _, c := range listed {
				if times[c]++; times[c] > 1 {
					rt.Fatal("an item is listed twice")
				}
			}
			for _, c := range stays {
				if !gone[c] && times[c] == 0 {
					rt.Fatal("an item that stays is not listed")
				}
			}
			for _, l := range q.lanes {
				if !slices.IsSortedFunc(l.marks, func(a, b *Item[*call]) int { return compareCame(a, b.came) }) {
					rt.Fatal("the marks are out of order")
				}
				for _, m := range l.marks {
					if !m.marked || !m.waits || m.Lane != l {
						rt.Fatal("a mark does not wait")
					}
				}
			}
		})
	})
}

// What holds an item and how many go before it say when it may be called.
func TestAnItemIsExpected(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
		var calls []*call
		for i := range 30 {
			calls = append(calls, q.keyed("a", fmt.Sprint("t", i%2), "k", 5))
			q.push(calls[i])
		}
		for _, c := range q.look() {
			c.end()
		}
		began := time.Now()
		expected := map[*call]time.Duration{}
		for _, c := range calls {
			if c.waits {
				expected[c] = q.Expected(&c.Item) - q.Now()
			}
		}
		if len(expected) != 29 {
			t.Fatalf("%d wait", len(expected))
		}
		n := 0
		q.within(4*time.Second, func(c *call) {
			n++
			if off := c.began.Sub(began) - expected[c]; off.Abs() > 200*time.Millisecond {
				t.Errorf("call %d is expected after %v, and made after %v", n, expected[c], c.began.Sub(began))
			}
			c.end()
		})
		q.SetRule(flowName("a", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 1}})
		one, two := q.keyed("a", "t", "k", 5), q.keyed("a", "t", "k", 5)
		q.push(one, two)
		first := q.look()
		if len(first) != 1 || q.Expected(&two.Item) != flow.Never {
			t.Error("it is known when a place becomes free")
		}
		for _, c := range append(first, two) {
			c.end()
		}
	})
}

// BenchmarkWaitingFor reads a page of 100 of so many items that wait. ns/hold is for how long a reader
// has the lock of the queue at a time.
func BenchmarkWaitingFor(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		for _, lanes := range []int{1, 10, 1_000} {
			for _, where := range []string{"first", "middle"} {
				b.Run(fmt.Sprintf("%d-lanes-%d-%s", n, lanes, where), func(b *testing.B) {
					q := New(Config[int]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(int) Result { select {} }})
					q.SetRule(flowName("a", "k"), &flow.Rule{Paused: flow.Never})
					type task struct { // as large as one in memory
						Item[int]
						_ [700 - unsafe.Sizeof(Item[int]{})]byte
					}
					tasks := make([]task, n)
					for i := range tasks {
						tasks[i].Item = Item[int]{Value: i, Lane: q.Lane("a", fmt.Sprint("t", i%lanes), "k"), Priority: 5, Ready: int64(i / 100)}
						q.Push(&tasks[i].Item)
					}
					var seen Seen
					if where == "middle" {
						seen[5] = uint64(n / 2)
					}
					holds := 0
					b.ReportAllocs()
					for b.Loop() {
						g, lanes, upTo := q.lanesFor("a", "k")
						r := &keyReader[int]{q: q, upTo: upTo, most: 100}
						if ws, _ := r.page(g, lanes, &seen); len(ws) != 100 {
							b.Fatal(len(ws))
						}
						holds += 1 + r.round
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(holds), "ns/hold")
				})
			}
		}
	}
}
