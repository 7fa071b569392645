package allot

import (
	"testing"
	"time"

	"xtimer/engine/flow"
)

// A response closes a key for minutes, and somebody ends that at one node: all nodes call, although the owner of the
// key and a third node know of it almost a second later.
func TestAKeyIsOpenedAtAllNodes(t *testing.T) {
	for _, l := range []flow.Limit{
		{Rate: 20, Per: time.Second, Burst: 1, Cooldown: true},
		{Concurrency: 2, Cooldown: true},
		{Rate: 20 * 70, Per: 70 * time.Second, Burst: 20, Cooldown: true}, // slow: its owner stores the calls
	} {
		withNodes(t, 3, func(t *testing.T, x *among) {
			x.delay.Store(int64(time.Millisecond))
			x.set("k", l)
			x.give("k", 1)
			time.Sleep(2 * time.Minute) // since the start
			x.all[1].add(&item{key: "k", took: time.Millisecond, close: 4 * time.Minute})
			time.Sleep(time.Second)
			for _, n := range x.all {
				n.push("k", 5, time.Millisecond)
			}
			time.Sleep(time.Minute)
			if by := x.by("k", 0); by[1]+by[2]+by[3] != 1 {
				t.Errorf("%+v: calls by node while the key is closed: %v", l, by)
			}
			for i, n := range []*node{x.all[1], x.all[2], x.all[0]} {
				n.queue.SetRule(name("k"), &flow.Rule{Limit: new(l), Opened: 1, Started: true})
				time.Sleep(time.Duration(i) * 450 * time.Millisecond)
			}
			time.Sleep(4 * time.Second)
			if by := x.by("k", 0); by[1] != 5 || by[2] != 6 || by[3] != 5 {
				t.Errorf("%+v: calls by node when the key is open: %v", l, by)
			}
		})
	}
}
