package fair

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/engine/flow"
)

func limitOf(rate int, per time.Duration, burst int) *flow.Rule {
	return &flow.Rule{Limit: &flow.Limit{Rate: rate, Per: per, Burst: burst}}
}

// Whatever calls are ready when, of lanes with several limits, and whichever of them stay: none of the limits is
// exceeded in any window, no call waits for longer than it may, and all wait in turn.
func TestDeparturesKeepEachLimit(t *testing.T) {
	rates := map[string]*flow.Limit{
		"x": limitOf(7, time.Second, 1).Limit, "y": limitOf(10, time.Second, 10).Limit, "z": limitOf(1, 3*time.Second, 1).Limit, "w": limitOf(100, time.Minute, 100).Limit,
	}
	for seed := range uint64(20) {
		byHand(t, 100, 100, 100, func(q *hand) {
			for key, l := range rates {
				q.SetRule(flowName("a", key), &flow.Rule{Limit: l})
			}
			r := rand.New(rand.NewPCG(seed, 1))
			lanes := []string{"x", "y", "z", "w", "x y", "y w", "x w y", "z y"}
			left, refused := map[string][]time.Duration{}, 0
			var mu sync.Mutex
			var ready sync.WaitGroup
			for range 60 {
				time.Sleep(time.Duration(r.IntN(900)) * time.Millisecond)
				for range r.IntN(12) {
					keys, stays := lanes[r.IntN(len(lanes))], r.IntN(8) == 0
					ready.Go(func() {
						var d Departure[*call]
						began := q.now()
						ok := q.Depart(q.Lane("a", "t", keys), &d)
						mu.Lock()
						defer mu.Unlock()
						at := q.now()
						if at-began != d.Waited || at-began > longestDeparture {
							t.Errorf("a call of %s waited %v, by its departure %v", keys, at-began, d.Waited)
						}
						switch {
						case !ok:
							refused++
						case stays:
							d.Stay()
						default:
							for _, c := range d.counts {
								left[c.gate.name.Key] = append(left[c.gate.name.Key], at)
							}
							d.Leave(true)
						}
					})
				}
			}
			ready.Wait()
			for key, l := range rates {
				at := left[key]
				if len(at) < 10 {
					t.Errorf("seed %d: %d calls of %s", seed, len(at), key)
				}
				for i := l.Rate; i < len(at); i++ {
					if d := at[i] - at[i-l.Rate]; d < l.Per {
						t.Fatalf("seed %d: %d calls of %s within %v", seed, l.Rate+1, key, d)
					}
				}
			}
			for name, g := range q.gates {
				if len(g.ready) != 0 {
					t.Errorf("seed %d: %d calls wait at %s when all have left", seed, len(g.ready), name.Key)
				}
			}
		})
	}
}

// Calls that are ready at once leave in their order, at the pace of the key; one that came for a limit that is then
// lifted leaves within a second.
func TestDeparturesInOrder(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.SetRule(flowName("a", "x"), limitOf(4, time.Second, 1))
		l, begun := q.Lane("a", "t", "x"), q.now()
		var order []string
		var mu sync.Mutex
		for i := range 50 {
			go func() {
				var d Departure[*call]
				ok := q.Depart(l, &d)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, fmt.Sprint(i, ok, (q.now()-begun).Milliseconds()/250))
			}()
			time.Sleep(time.Microsecond)
		}
		time.Sleep(4900 * time.Millisecond)
		mu.Lock()
		var want []string
		for i := 41; i < 50; i++ {
			want = append(want, fmt.Sprint(i, false, 0)) // they would wait for more than 10 s
		}
		want = append([]string{fmt.Sprint(0, true, 0)}, want...)
		for i := 1; i <= 19; i++ {
			want = append(want, fmt.Sprint(i, true, i))
		}
		if !slices.Equal(order, want) {
			t.Errorf("the calls have left as %v, want %v", order, want)
		}
		mu.Unlock()
		q.SetRule(flowName("a", "x"), nil)
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 50 {
			t.Errorf("%d calls have left a second after the limit was lifted", len(order))
		}
	})
}

// A departure that is taken back lets go who waits for it, also at a gate that the call had not passed when it was
// handed out.
func TestCallThatStaysLetsOthersGo(t *testing.T) {
	byHand(t, 100, 100, 100, func(q *hand) {
		push := func(to string) *call {
			c := &call{app: "a", to: to, done: make(chan Result, 1)}
			c.Item = Item[*call]{Value: c, Lane: q.Lane("a", to, "y"), Priority: 5, Ready: 1}
			q.push(c)
			return c
		}
		a := push("t")
		if len(q.look()) != 1 {
			t.Fatal("not handed out")
		}
		q.SetRule(flowName("a", "y"), limitOf(1, 24*time.Hour, 1))
		var d Departure[*call]
		if !q.Depart(a.Lane, &d) {
			t.Fatal("no departure")
		}
		b := push("t2")
		if len(q.look()) != 0 {
			t.Fatal("handed out")
		}
		d.Stay()
		a.done <- Result{}
		if len(q.look()) != 1 {
			t.Error("the departure was taken back, and nothing is handed out")
		}
		b.done <- Result{}
	})
}

// A target that answers at once is not silent because calls to it wait for the departures of a key, and a call that
// was refused at once after its wait is no timeout.
func TestATargetIsNotSilentWhileCallsWaitForDepartures(t *testing.T) {
	for how, res := range map[string]Result{"answers": {Ended: Answered, Took: time.Millisecond}, "refuses": {Ended: Unanswered, Took: time.Millisecond}} {
		t.Run(how, func(t *testing.T) { waitsAtTarget(t, res) })
	}
}

func waitsAtTarget(t *testing.T, res Result) {
	byHand(t, 100, 100, 100, func(q *hand) {
		q.trust("a", "t")
		var cs []*call
		for range 20 {
			c := q.keyed("a", "t", "x", 5)
			cs = append(cs, c)
			q.push(c)
		}
		if n := len(q.look()); n != 20 {
			t.Fatal("not handed out", n)
		}
		l := cs[0].Lane
		most := l.target.most
		q.SetRule(flowName("a", "x"), limitOf(5, time.Second, 1))
		for _, c := range cs {
			go func() {
				var d Departure[*call]
				q.Depart(l, &d)
				d.Leave(true)
				d.End()
				res := res
				res.Waited = d.Waited
				c.done <- res
			}()
		}
		time.Sleep(1500 * time.Millisecond)
		q.Queue.mu.Lock()
		ok, now := l.target.answers(q.now()), l.target.most
		q.Queue.mu.Unlock()
		if !ok || now < most {
			t.Errorf("the target answers: %v; its limit went from %d to %d", ok, most, now)
		}
		time.Sleep(10 * time.Second)
	})
}
