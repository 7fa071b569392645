package fair

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xtimer/engine/flow"
)

// What lanes get that want all they can get is what the package comment says.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		n       int
		oneApp  bool
		answers bool
		least   int // of the lanes
		most    int
		free    int
	}{
		{1, true, true, 6145, 6145, 2047},
		{8, false, true, 931, 931, 744},
		{1000, true, true, 6, 7, 1254},
		{1000, false, true, 7, 8, 513},
		{1, true, false, 48, 48, 8144},
		{1000, true, false, 3, 4, 4795},
		{1000, false, false, 4, 5, 3599},
	} {
		q := New(Config[int]{Places: 8192, PerApp: 8192, PerTarget: 8192})
		var lanes []*Lane[int]
		for i := range c.n {
			app := "app"
			if !c.oneApp {
				app = fmt.Sprint(i)
			}
			l := q.Lane(app, fmt.Sprint(i), "")
			if c.answers {
				l.target.learn(time.Second)
				l.target.most = 8192
			}
			lanes = append(lanes, l)
			for j := range min(8192, 16384/c.n) {
				if l.push(&Item[int]{Lane: l, Value: j}) {
					q.place(l, 0)
				}
			}
		}
		for q.pick(0).lane != nil {
		}
		least, most := lanes[0].calls, lanes[0].calls
		for _, l := range lanes {
			least, most = min(least, l.calls), max(most, l.calls)
		}
		if free := q.places - q.calls; least != c.least || most != c.most || free != c.free {
			t.Errorf("%d lanes, of one app %v, answering %v: %d to %d each and %d free", c.n, c.oneApp, c.answers, least, most, free)
		}
	}
}

// The calls of other apps to silent targets take all places that such calls may have. An app has a limit, a task for
// each of many silent targets, and many for one that answers: these are called as the limit admits. When there are
// places again, the silent targets are called, too.
func TestSilentTargetsKeepNobodyBehindALimit(t *testing.T) {
	quota, rule := quotaOf("x", 10, 0)
	for name, limit := range map[string]func(q *hand){
		"rate": func(q *hand) {
			q.SetRule(flowName("x", "k"), &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
		},
		"concurrency": func(q *hand) { q.SetRule(flowName("x", "k"), &flow.Rule{Limit: &flow.Limit{Concurrency: 1}}) },
		"quota":       func(q *hand) { q.SetRule(quota, rule) },
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, 64, 64, 64, func(q *hand) {
				q.trust("x", "good")
				q.trust("b", "busy")
				const mutes = 5
				for i := range mutes {
					q.push(q.call("x", fmt.Sprint("mute", i), 5, 0))
				}
				mute := q.look()
				time.Sleep(time.Second)
				for _, c := range mute {
					c.done <- Result{Ended: Unanswered, Took: time.Second}
				}
				q.look()
				for i := range 200 {
					to := fmt.Sprint("s", i%10)
					q.push(q.call("o"+to, to, 5, 0))
				}
				others := q.look()
				for range 64 {
					q.push(q.call("b", "busy", 5, 0))
				}
				others = append(others, q.look()...)
				limit(q)
				for range 30 {
					q.push(q.keyed("x", "good", "k", 5))
				}
				for i := range mutes {
					q.push(q.keyed("x", fmt.Sprint("mute", i), "k", 9))
				}
				called := map[string]int{}
				serve := func(d time.Duration) {
					for began := time.Now(); time.Since(began) < d; time.Sleep(5 * time.Millisecond) {
						for _, c := range q.look() {
							called[strings.TrimRight(c.to, "0123456789")]++
							c.end()
						}
					}
				}
				if serve(4 * time.Second); called["good"] != 30 {
					t.Errorf("%d of 30 calls to the target that answers", called["good"])
				}
				if endAll(others); called["mute"] != 0 {
					t.Errorf("%d calls to silent targets, for which there was no place", called["mute"])
				}
				if serve(4 * time.Second); called["mute"] != mutes {
					t.Errorf("%d of %d silent targets were called when there were places", called["mute"], mutes)
				}
			})
		})
	}
}

// An app has all calls that it may have, and its lane stands for a place at a target with a limit: other apps call the
// target as the limit admits. When the app has room again, it does, too.
func TestAnAppWithoutRoomKeepsNobodyBehindALimit(t *testing.T) {
	const shared = "http://shared:80"
	for name, limit := range map[string]*flow.Limit{
		"rate":        {Rate: 10, Per: time.Second, Burst: 1},
		"concurrency": {Concurrency: 1},
	} {
		t.Run(name, func(t *testing.T) {
			byHand(t, 1000, 100, 10, func(q *hand) {
				q.SetRule(flow.Name{Kind: flow.OfTarget, Key: flow.TargetOf(shared)}, &flow.Rule{Limit: limit})
				for i := range 10 {
					q.push(q.call("full", fmt.Sprint("slow", i), 5, 0))
				}
				slow := q.look()
				q.push(q.call("other", shared, 5, 0))
				former := q.look()
				if len(slow) != 10 || len(former) != 1 {
					t.Fatalf("%d and %d calls began", len(slow), len(former))
				}
				for range 10 {
					q.push(q.call("full", shared, 5, 0))
					q.push(q.call("other", shared, 5, 0))
				}
				endAll(former)
				if at := q.within(1300*time.Millisecond, (*call).end); len(at) != 10 {
					t.Errorf("%d of 10 calls of the other app: %v", len(at), at)
				}
				endAll(slow)
				if at := q.within(1100*time.Millisecond, (*call).end); len(at) != 10 {
					t.Errorf("%d of 10 calls of the app that has room: %v", len(at), at)
				}
			})
		})
	}
}
