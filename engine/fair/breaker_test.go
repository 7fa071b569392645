package fair

import (
	"testing"
	"time"

	"xtimer/engine/flow"
)

// broken is a queue with a key whose breaker has just opened for a second.
func broken(t *testing.T, f func(q *hand, k flow.Name)) {
	t.Helper()
	byHand(t, 100, 100, 100, func(q *hand) {
		k := flowName("a", "k")
		q.SetRule(k, &flow.Rule{Limit: &flow.Limit{Breaker: flow.Breaker{Share: 0.5, Of: 2, Within: time.Minute, Open: time.Second, MaxOpen: time.Minute}}})
		for range 2 {
			q.push(q.keyed("a", "t", "k", 5))
			q.fail()
		}
		q.wantBroken(t, 1)
		f(q, k)
	})
}

// fail ends the calls that began: they failed.
func (q *hand) fail() (n int) {
	made := q.look()
	for _, c := range made {
		c.done <- Result{Ended: Answered, Bad: true}
	}
	q.look()
	return len(made)
}

func (q *hand) wantBroken(t *testing.T, n int) {
	t.Helper()
	if got, names := q.OpenBreakers(), q.Broken(); got != n || len(names) != n {
		t.Errorf("%d breakers hold calls, %v, want %d", got, names, n)
	}
}

// forget has the queue forget what it can.
func (q *hand) forget() {
	q.Queue.mu.Lock()
	defer q.Queue.mu.Unlock()
	q.prune()
}

// A breaker whose time is over holds no calls while none come. Hours later one call is tried all the same, and the
// breaker holds those that wait for it.
func TestABreakerForWhichNoCallWaits(t *testing.T) {
	broken(t, func(q *hand, k flow.Name) {
		time.Sleep(2 * time.Second)
		q.wantBroken(t, 0)
		for i := range 3 {
			time.Sleep(5 * time.Hour)
			q.forget() // the lane, and not the breaker
			q.push(q.keyed("a", "t", "k", 5), q.keyed("a", "u", "k", 5))
			made := q.look()
			if q.wantBroken(t, 1); len(made) != 1 {
				t.Fatalf("%d calls are tried", len(made))
			}
			if i == 2 {
				endAll(made)
				endAll(q.look())
				q.wantBroken(t, 0)
				break
			}
			made[0].done <- Result{Ended: Answered, Bad: true}
			q.wantBroken(t, 1)
			time.Sleep(time.Minute)
			q.wantBroken(t, 1)
			if n := q.fail(); n != 1 {
				t.Errorf("%d calls, and one has waited", n)
			}
			time.Sleep(time.Minute)
			q.wantBroken(t, 0)
		}
	})
}

// A key that nobody calls for a day after its breaker has opened leaves nothing behind.
func TestAForgottenBreaker(t *testing.T) {
	broken(t, func(q *hand, k flow.Name) {
		time.Sleep(time.Hour)
		q.forget()
		if len(q.gates) != 1 {
			t.Error("the gate is forgotten, and a call may still come")
		}
		time.Sleep(24 * time.Hour)
		q.forget()
		if len(q.gates) != 0 || len(q.broken) != 0 {
			t.Errorf("%d gates, %d broken ones", len(q.gates), len(q.broken))
		}
	})
}

// A breaker ends with its limit, also where no lane names the key any more.
func TestABreakerWithoutItsLimit(t *testing.T) {
	broken(t, func(q *hand, k flow.Name) {
		q.forget()
		if q.wantBroken(t, 1); q.gates[k].users != 0 {
			t.Fatal("a lane names the key")
		}
		q.SetRule(k, nil)
		q.wantBroken(t, 0)
		if q.forget(); len(q.gates) != 0 {
			t.Errorf("%d gates", len(q.gates))
		}
	})
	broken(t, func(q *hand, k flow.Name) { // likewise, where nobody asks
		q.forget()
		q.SetRule(k, nil)
		if q.forget(); len(q.gates) != 0 || len(q.broken) != 0 {
			t.Errorf("%d gates, %d broken ones", len(q.gates), len(q.broken))
		}
	})
}
