package callback

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// departing is a gate with the departures of a queue, as that of an attempt.
type departing struct {
	q *fair.Queue[int]
	l *fair.Lane[int]
	d fair.Departure[int]
}

func (g *departing) Wait() (time.Duration, bool) {
	was := g.d.Waited
	ok := g.q.Depart(g.l, &g.d)
	return g.d.Waited - was, ok
}
func (g *departing) Stay()           { g.d.Stay() }
func (g *departing) Enter() bool     { return true }
func (g *departing) Leave(sent bool) { g.d.Leave(sent) }

// A target hangs up all kept connections, and is slow to be found again: the rate of 10 a second holds for the calls
// that had to dial anew.
func TestARateHoldsWhereKeptConnectionsWereHungUp(t *testing.T) {
	const n = 25
	var mu sync.Mutex
	var came []time.Time
	var open []*session
	p := listen(t, nil, func(s *session) {
		mu.Lock()
		open = append(open, s)
		mu.Unlock()
		for s.request() {
			mu.Lock()
			came = append(came, time.Now())
			mu.Unlock()
			time.Sleep(200 * time.Millisecond) // so that each has its connection
			if !s.say(ok200) {
				return
			}
		}
	})
	var until time.Time
	cb := newCaller(t, Config{Resolver: resolver(t, func() []string {
		mu.Lock()
		u := until
		mu.Unlock()
		time.Sleep(time.Until(u))
		return []string{"127.0.0.1"}
	})})
	url := fmt.Sprintf("http://slow.test.:%d/", p.port)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { expect(t, cb.Call(testCall(url)), engine.ClassOK, "") })
	}
	wg.Wait()
	mu.Lock()
	for _, s := range open {
		s.Close()
	}
	came, until = nil, time.Now().Add(2700*time.Millisecond)
	mu.Unlock()

	q := fair.New(fair.Config[int]{Places: 100, PerApp: 100, PerTarget: 100, Run: func(int) fair.Result { return fair.Result{} }})
	defer q.Close()
	q.SetRule(flow.Name{Kind: flow.OfFlow, App: "a", Key: "k"}, &flow.Rule{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}})
	l := q.Lane("a", "t", "k")
	for range n {
		wg.Go(func() {
			c := testCall(url, timeout(10*time.Second))
			c.Gate = &departing{q: q, l: l}
			if o := cb.Call(c); o.Class != engine.ClassOK {
				t.Errorf("%+v", o)
			}
		})
	}
	wg.Wait()
	slices.SortFunc(came, time.Time.Compare)
	most := 0
	for i := range came {
		j := i
		for j < len(came) && came[j].Sub(came[i]) < 950*time.Millisecond {
			j++
		}
		most = max(most, j-i)
	}
	if len(came) != n || most > 15 { // a busy machine writes some late; without the departure taken back all come at once
		t.Errorf("%d calls came, up to %d of them within 950 ms", len(came), most)
	}
}

// A target hangs up on a connection that waits for its departure: nothing was taken, and the call is made over another.
func TestTheTargetHangsUpDuringTheWait(t *testing.T) {
	ca := newCA(t)
	for name, secure := range map[string]bool{"new": false, "tls new": true, "kept": false, "tls kept": true} {
		t.Run(name, func(t *testing.T) {
			impatient := func(s *session) { // as a server whose idle timeout is 700 ms
				for {
					s.SetReadDeadline(time.Now().Add(700 * time.Millisecond))
					if !s.request() || !s.say(ok200) {
						return
					}
				}
			}
			p := listen(t, nil, impatient)
			if secure {
				p = listen(t, ca.issue(t, "127.0.0.1", time.Hour), impatient)
			}
			cb := newCaller(t, Config{RootCAs: ca.pool})
			before := int64(0)
			if name == "kept" || name == "tls kept" {
				expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
				before++
			}
			o := cb.Call(gated(&gate{opens: 3, waits: 1500 * time.Millisecond}, p.url, func(tm *engine.Timer) { tm.Callback.Timeout = 5 * time.Second; tm.Delivery = engine.AtMostOnce }))
			if o.Class != engine.ClassOK {
				t.Errorf("class %d %q, and the target took %d requests", o.Class, o.ErrorClass, int64(p.requests.Load())-before)
			}
		})
	}
}

// A kept connection gets too old for an at_most_once call while the call waits: the call has another.
func TestAKeptConnectionAgesDuringTheWait(t *testing.T) {
	conns := atomic.Int32{}
	p := listen(t, nil, func(s *session) {
		conns.Add(1)
		last := time.Now()
		for s.request() {
			if time.Since(last) > 1200*time.Millisecond {
				return // as a server whose close of the idle connection crossed the request
			}
			if !s.say(ok200) {
				return
			}
			last = time.Now()
		}
	})
	cb := newCaller(t, Config{})
	expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
	o := cb.Call(gated(&gate{opens: 3, waits: 1500 * time.Millisecond}, p.url, func(tm *engine.Timer) {
		tm.Callback.Timeout = 5 * time.Second
		tm.Delivery = engine.AtMostOnce
	}))
	if o.Class != engine.ClassOK || conns.Load() != 2 {
		t.Errorf("class %d %q, %d connections", o.Class, o.ErrorClass, conns.Load())
	}
}

// A connection whose call has waited and was then withdrawn is no fresh one for the next call.
func TestAConnectionIsNotFreshAfterAWait(t *testing.T) {
	for _, opens := range []int{0, 1} {
		conns := atomic.Int32{}
		p := listen(t, nil, func(s *session) {
			conns.Add(1)
			for s.request() && s.say(ok200) {
			}
		})
		cb := newCaller(t, Config{})
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		cb.Call(gated(&gate{opens: opens, waits: 300 * time.Millisecond}, p.url))
		before := conns.Load()
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		if n := conns.Load() - before; n != int32(1-opens) {
			t.Errorf("withdrawn: %v: the next call has made %d connections", opens == 0, n)
		}
	}
}
