package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// postbox takes batches; other calls go on to the receiver of the world.
type postbox struct {
	*receiver
	took    time.Duration // until a batch is answered
	drop    func()        // before the first byte of a batch
	answer  func(b *engine.BatchCall) *engine.Outcome
	batches *[]postedCall
}

type postedCall struct {
	at   int64 // Unix ms
	keys []engine.Key
}

// posts has the receiver of the world take batches. It returns what tells them.
func (w *world) posts(p postbox) func() []postedCall {
	p.batches = &[]postedCall{}
	w.caller = func(c engine.Caller) engine.Caller {
		mine := p
		mine.receiver = c.(*receiver)
		return &mine
	}
	return func() []postedCall {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(*p.batches)
	}
}

func (p *postbox) Call(c *engine.Call) engine.Outcome {
	if c.Batch == nil {
		return p.receiver.Call(c)
	}
	w, started := p.w, time.Now()
	out, failures := engine.Outcome{Code: 200}, map[engine.Key]engine.Outcome{}
	var dead error
	if p.drop != nil {
		p.drop()
	}
	if !c.Send(func() bool {
		dead = p.l.do(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			out.Sent = w.clock()
			one := postedCall{at: w.now()}
			for _, m := range c.Batch.Calls {
				one.keys = append(one.keys, m.Key)
				seen := &call{name: m.Timer.Name, key: m.Key, attempt: m.Attempt, redelivered: m.Redelivered, at: one.at, ended: one.at, by: p.l}
				w.saw(seen)
				if f := w.script[m.Timer.Name]; f != nil {
					if rep := f(seen); rep.class != engine.ClassOK {
						failures[m.Key] = engine.Outcome{Class: rep.class, Code: rep.code, ErrorClass: "status", RetryAfter: rep.retry}
					}
				}
			}
			*p.batches = append(*p.batches, one)
		})
		return dead == nil
	}) {
		return engine.Outcome{}
	}
	if dead != nil {
		return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "dead"}
	}
	select {
	case <-time.After(p.took):
	case <-p.l.gone:
		return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "dead"}
	}
	out.Took, c.Batch.Failures = time.Since(started), failures
	if p.answer != nil {
		if o := p.answer(c.Batch); o != nil {
			o.Sent, o.Took = out.Sent, out.Took
			return *o
		}
	}
	return out
}

func batches(most int, wait time.Duration) func(*engine.Definition) {
	return func(d *engine.Definition) {
		d.Callback.URL = "http://127.0.0.1:1/batch"
		d.Callback.Batch = &engine.Batch{Max: most, Wait: wait}
	}
}

// Tasks that are due at once go in few calls, each settled by itself; one that is alone does
// not wait.
func TestTasksThatAreDueAtOnceShareCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		posted := w.posts(postbox{took: 2 * time.Millisecond})
		w.start()
		due := w.now() + 5_000
		var ids []engine.TimerID
		for i := range 1000 {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due), batches(100, 0), retry(4, time.Second, 1))))
			if i%3 == 0 {
				w.replies(fmt.Sprint(i), fail, ok)
			}
		}
		lone := w.make(timer("lone", at(due+3_000), batches(100, 0)))
		other := timer("other", at(due), batches(100, 0))
		other.Callback.Headers = []engine.Header{{Name: "A", Value: "b"}}
		w.make(other)
		time.Sleep(20 * time.Second)
		w.settle()
		if n := len(posted()); n < 15 || n > 60 {
			t.Errorf("%d calls for 1,334 attempts", n)
		}
		for _, p := range posted() {
			if len(p.keys) > 100 {
				t.Errorf("a call of %d tasks", len(p.keys))
			}
		}
		for i, id := range ids {
			r := w.record(engine.Key{Timer: id, Due: due})
			if want := 1 + (3-i%3)/3; r.Status != engine.Succeeded || len(r.Attempts) != want || r.Attempts[0].BatchSize == 0 || r.Attempts[0].Batch == 0 {
				t.Fatalf("%d: %+v", i, r)
			}
		}
		if c := w.of("other"); len(c) != 1 || slices.ContainsFunc(posted(), func(p postedCall) bool { return len(p.keys) > 1 && slices.Contains(p.keys, c[0].key) }) {
			t.Errorf("a task with another header was in a call with others: %+v", c)
		}
		if r := w.record(engine.Key{Timer: lone, Due: due + 3_000}); r.Lateness > time.Millisecond || r.Attempts[0].BatchSize != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// A call waits for the tasks that are due until so long after its first one, or until it is full.
func TestABatchWaitsForMore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		posted := w.posts(postbox{})
		w.start()
		due := w.now() + 5_000
		for i, after := range []int64{0, 20, 40, 49, 80, 80, 80, 80, 80} {
			w.make(timer(fmt.Sprint(i), at(due+after), batches(5, 50*time.Millisecond)))
		}
		time.Sleep(10 * time.Second)
		var got []string
		for _, p := range posted() {
			got = append(got, fmt.Sprintf("%d at %d", len(p.keys), p.at-due))
		}
		if want := []string{"4 at 50", "5 at 80"}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// Four calls of batches to one target are in flight at most: what comes due meanwhile goes with
// the next one.
func TestFewBatchesAreInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		posted := w.posts(postbox{took: 5 * time.Second})
		w.start()
		due := w.now() + 5_000
		for i := range int64(200) {
			w.make(timer(fmt.Sprint(i), at(due+20*i), batches(100, 0)))
		}
		time.Sleep(30 * time.Second)
		early := 0
		for _, p := range posted() {
			if p.at < due+5_000 {
				early++
			}
		}
		if n := len(posted()); early != maxBatches || n < 6 || n > 9 {
			t.Errorf("%d calls before the first was answered, %d in all", early, n)
		}
	})
}

const maxBatches = 4

// A call waits for no longer than wait: a task whose due is ahead again, because the clock was
// set back, does not hold up the others.
func TestABatchWaitsWhileTheClockIsSetBack(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.posts(postbox{})
		w.start()
		w.SetRule(appApp, &pause)
		w.make(timer("ahead", at(w.now()+5_000), batches(10, 50*time.Millisecond)))
		time.Sleep(10 * time.Second)
		w.step(-time.Hour)
		w.SetRule(appApp, nil)
		time.Sleep(time.Second)
		w.make(timer("next", at(w.now()+1_000), batches(10, 50*time.Millisecond)))
		time.Sleep(2 * time.Second)
		if n := len(w.of("next")); n != 1 {
			t.Errorf("%d calls of the timer that is due now", n)
		}
	})
}

// A task that is cancelled before the first byte of its call is left out, and the others go.
func TestACancelledTaskIsLeftOutOfItsBatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var ids []engine.TimerID
		var victim atomic.Uint64
		posted := w.posts(postbox{drop: func() {
			if id := victim.Swap(0); id != 0 {
				if _, err := w.Delete(t.Context(), engine.TimerID(id), 0); err != nil {
					t.Error(err)
				}
			}
		}})
		w.start()
		due := w.now() + 5_000
		for i := range 3 {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due), batches(10, 10*time.Millisecond))))
		}
		victim.Store(uint64(ids[1]))
		time.Sleep(10 * time.Second)
		w.settle()
		if len(posted()) != 1 || len(posted()[0].keys) != 2 || len(w.of("1")) != 0 {
			t.Errorf("%v", posted())
		}
		if r := w.record(engine.Key{Timer: ids[0], Due: due}); r.Status != engine.Succeeded || r.Attempts[0].BatchSize != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// An outcome of a call is that of all its tasks, unless the answer names them.
func TestTheOutcomeOfABatch(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		first := true
		w.posts(postbox{answer: func(*engine.BatchCall) *engine.Outcome {
			if !first {
				return nil
			}
			first = false
			return &engine.Outcome{Class: engine.ClassUnknown, Code: 200, ErrorClass: "bad_answer"}
		}})
		w.start()
		due := w.now() + 5_000
		var ids []engine.TimerID
		for i := range 10 {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due), batches(10, 10*time.Millisecond))))
		}
		time.Sleep(10 * time.Second)
		w.settle()
		for _, id := range ids {
			r := w.record(engine.Key{Timer: id, Due: due})
			if r.Status != engine.Succeeded || len(r.Attempts) != 2 || r.Attempts[0].ErrorClass != "bad_answer" {
				t.Errorf("%+v", r)
			}
		}
	})
}

// What an answer says of a task has the effect on its key that an answer to that task alone has: a
// breaker does not count 4xx, and cooldown closes the key.
func TestFailuresOfABatchCountForItsKey(t *testing.T) {
	breaker := flow.Limit{Breaker: flow.Breaker{Share: 0.5, Of: 2, Within: time.Minute, Open: time.Minute, MaxOpen: time.Minute}}
	for _, x := range []struct {
		name   string
		limit  flow.Limit
		reply  reply
		failed int // of three tasks in each call
		held   bool
	}{
		{"rejected", breaker, reply{class: engine.ClassRejected, code: 404}, 3, false},
		{"too many requests", breaker, reply{class: engine.ClassRetry, code: 429}, 3, false},
		{"a third fails", breaker, reply{class: engine.ClassRetry, code: 503}, 1, false},
		{"two thirds fail", breaker, reply{class: engine.ClassRetry, code: 503}, 2, true},
		{"without a wait", flow.Limit{Cooldown: true}, reply{class: engine.ClassRetry, code: 429}, 1, false},
		{"with a wait", flow.Limit{Cooldown: true}, reply{class: engine.ClassRetry, code: 429, retry: 10 * time.Second}, 1, true},
		{"with a wait, rejected", flow.Limit{Cooldown: true}, reply{class: engine.ClassRejected, code: 404, retry: 10 * time.Second}, 1, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.posts(postbox{})
				w.rules(map[flow.Name]flow.Rule{keyK: {Limit: &x.limit}})
				w.start()
				due := w.now() + 5_000
				var last engine.TimerID
				for call := range int64(3) {
					for i := range 3 {
						name := fmt.Sprint(call, ".", i)
						if i < x.failed && call < 2 {
							w.replies(name, x.reply)
						}
						last = w.make(timer(name, at(due+call*2_000), batches(10, 0), flows("k"), retry(1, time.Second, 1)))
					}
				}
				time.Sleep(2 * time.Minute)
				w.settle()
				if r := w.record(engine.Key{Timer: last, Due: due + 4_000}); (r.Lateness > time.Second) != x.held {
					t.Errorf("the third call was %v late", r.Lateness)
				}
			})
		})
	}
}

// A crash while batches of at_most_once tasks are under way leaves them unknown: none is called again.
func TestABatchAtMostOnceIsNotedBefore(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.posts(postbox{took: time.Second})
		w.start()
		due := w.now() + 5_000
		var ids []engine.TimerID
		for i := range 50 {
			ids = append(ids, w.make(timer(fmt.Sprint(i), at(due), batches(100, 10*time.Millisecond), atMostOnce)))
		}
		time.Sleep(5_500 * time.Millisecond)
		w.power(2 * time.Second)
		time.Sleep(10 * time.Second)
		w.settle()
		for i, id := range ids {
			if r := w.record(engine.Key{Timer: id, Due: due}); r.Status != engine.Unknown || len(w.of(fmt.Sprint(i))) != 1 {
				t.Fatalf("%+v, %d calls", r, len(w.of(fmt.Sprint(i))))
			}
		}
	})
}

// Whatever is due when, fails, is deleted, or crashes between: no member of a batch is called
// before its due, or after its timer was deleted, and each due ends in one record.
func TestBatchesKeepThePromises(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) { w.randomBatches(rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func (w *world) randomBatches(r *rand.Rand) {
	posted := w.posts(postbox{took: time.Duration(r.IntN(40)) * time.Millisecond})
	w.start()
	from := w.now() + 1_000
	wait := time.Duration(r.IntN(3)) * 20 * time.Millisecond
	dues, deleted, ids := map[engine.TimerID]int64{}, map[engine.TimerID]int64{}, []engine.TimerID{}
	for i := range 400 {
		name, due := fmt.Sprint(i), from+int64(r.IntN(8))*int64(r.IntN(500))
		if i%3 == 0 {
			w.replies(name, fail, ok)
		}
		id := w.make(timer(name, at(due), batches(2+r.IntN(2)*40, wait), retry(5, 100*time.Millisecond, 1)))
		dues[id] = due
		ids = append(ids, id)
	}
	for range 8 {
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		switch id := ids[r.IntN(len(ids))]; r.IntN(3) {
		case 0:
			w.crash(time.Duration(r.IntN(300)) * time.Millisecond)
		default:
			if out, err := w.Delete(w.t.Context(), id, 0); err == nil && fmt.Sprint(out) != "" {
				if _, twice := deleted[id]; !twice {
					deleted[id] = w.now()
				}
			}
		}
	}
	time.Sleep(20 * time.Second)
	w.settle()
	w.mu.Lock()
	for _, c := range w.calls {
		if c.at < c.key.Due {
			w.t.Errorf("%s was called %d ms before its due", c.name, c.key.Due-c.at)
		}
		if at, ok := deleted[c.key.Timer]; ok && c.at > at {
			w.t.Errorf("%s was called %d ms after it was deleted", c.name, c.at-at)
		}
	}
	n := len(w.calls)
	w.mu.Unlock()
	if len(posted()) >= n {
		w.t.Errorf("%d calls of %d tasks", len(posted()), n)
	}
	for id, due := range dues {
		if _, ok := deleted[id]; ok {
			continue
		}
		if rs := w.records(id); len(rs) != 1 || rs[0].Status != engine.Succeeded || rs[0].Key.Due != due {
			w.t.Errorf("%d records of a task: %+v", len(rs), rs)
		}
	}
}
