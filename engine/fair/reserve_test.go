package fair

import (
	"fmt"
	"testing"
	"time"
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
