package scheduler_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// heavy gives a timer a body of n bytes, which begins with its text.
func heavy(text string, n int) func(*engine.Definition) {
	return func(d *engine.Definition) {
		d.Callback.HasBody, d.Callback.BodyKind = true, engine.BodyText
		d.Callback.Body = append([]byte(text), bytes.Repeat([]byte{'.'}, n-len(text))...)
		d.Callback.Headers = []engine.Header{{Name: "X-Of", Value: text}}
		d.Labels = []engine.Label{{Key: "of", Value: text}}
	}
}

// payloads watches calls: each has its whole payload, and all together no more than
// the limit are in memory at any time.
type payloads struct {
	engine.Caller
	w     *world
	most  atomic.Int64
	calls atomic.Int64
	away  *atomic.Bool // the cold tier is
}

func (p *payloads) Call(c *engine.Call) engine.Outcome {
	kept, flying := p.w.Payloads()
	raiseTo(&p.most, kept+flying)
	p.calls.Add(1)
	if b := &c.Timer.Callback; c.Timer.Omitted != 0 || len(b.Headers) != 1 || !bytes.HasPrefix(b.Body, []byte(b.Headers[0].Value)) {
		p.w.t.Errorf("%s is called with %d headers and a body of %d bytes, %d are missing", c.Timer.Name, len(b.Headers), len(b.Body), c.Timer.Omitted)
	}
	return p.Caller.Call(c)
}

func raiseTo(v *atomic.Int64, to int64) {
	for was := v.Load(); was < to && !v.CompareAndSwap(was, to); was = v.Load() {
	}
}

// bounded is a bubble with a limit of bytes of payloads, and a watch over them.
func bounded(t *testing.T, limit int64, f func(t *testing.T, w *world, p *payloads)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *world) {
		p := &payloads{w: w, away: w.outage()}
		w.config.Bodies = limit
		w.caller = func(c engine.Caller) engine.Caller {
			p.Caller = c
			return p
		}
		w.start()
		f(t, w, p)
		if most := p.most.Load(); most > limit {
			t.Errorf("%d bytes of payloads were in memory, the limit is %d", most, limit)
		}
		w.settle()
		w.settle()
		kept, flying, lacking, waiting, shares := w.CountsOfBodies()
		if real, _ := w.Payloads(); kept != real || flying != 0 || waiting != 0 || shares != 0 {
			t.Errorf("when all is over %d bytes are kept (counted: %d), %d flying, %d wait, %d shares", real, kept, flying, waiting, shares)
		}
		if lacking < 0 {
			t.Errorf("%d bytes are lacking", lacking)
		}
	})
}

// Whatever bodies are, what they take is bounded, and all are called, whether their
// timers come from a create, from a tier, or from a start.
func TestBodiesAreBounded(t *testing.T) {
	const limit = 2 << 20
	for how, after := range map[string]time.Duration{"created near": 5 * time.Second, "loaded": 10 * time.Minute, "found by a start": 0} {
		t.Run(how, func(t *testing.T) {
			bounded(t, limit, func(t *testing.T, w *world, p *payloads) {
				const n = 300
				for i := range n {
					name := fmt.Sprint("t", i)
					size := []int{200, 2000, 10_000, 100_000, 256 << 10, 512 << 10}[i%6]
					w.replies(name, slow(time.Duration(i%7)*100*time.Millisecond))
					w.make(timer(name, delay(after+time.Second), heavy(name, size)))
				}
				if after == 0 {
					w.crash(20 * time.Second)
				}
				time.Sleep(after + time.Minute)
				w.settle()
				if got := p.calls.Load(); got < n {
					t.Errorf("%d calls, want %d", got, n)
				}
				for i := range n {
					if cs := w.of(fmt.Sprint("t", i)); len(cs) == 0 {
						t.Errorf("t%d was not called", i)
					}
				}
				if kept, _, lacking, _, _ := w.CountsOfBodies(); kept != 0 || lacking != 0 {
					t.Errorf("timers that are over keep %d bytes and lack %d", kept, lacking)
				}
			})
		})
	}
}

// Timers that stay keep what fits, and what does not is read for each call; a
// change is called with its own body.
func TestBodiesOfTimersThatStay(t *testing.T) {
	bounded(t, 1<<20, func(t *testing.T, w *world, p *payloads) {
		var ids []engine.TimerID
		for i := range 20 {
			name := fmt.Sprint("t", i)
			ids = append(ids, w.make(timer(name, every(time.Second), heavy(name, 100_000))))
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		kept, _, lacking, _, _ := w.CountsOfBodies()
		if kept < 400_000 || kept > 1<<19 || lacking < 1_400_000 {
			t.Errorf("%d bytes are kept, %d lack", kept, lacking)
		}
		for i, id := range ids {
			name := fmt.Sprint("u", i)
			if _, err := w.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				heavy(name, 50_000)(&d)
				d.Callback.URL = "http://127.0.0.1:1/changed"
				return d, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		for i, id := range ids {
			cs := w.of(fmt.Sprint("t", i))
			if len(cs) < 20 || slices.ContainsFunc(cs[len(cs)-9:], func(c call) bool { return c.url != "http://127.0.0.1:1/changed" }) {
				t.Errorf("t%d: %d calls, the last to %s", i, len(cs), cs[len(cs)-1].url)
			}
			if _, err := w.Delete(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		if kept, _, lacking, _, _ := w.CountsOfBodies(); kept != 0 || lacking != 0 {
			t.Errorf("after the deletes %d bytes are kept, %d lack", kept, lacking)
		}
	})
}

// A target that does not answer takes no more than a part of the room, and calls
// with small bodies need none.
func TestBodiesOfATargetThatDoesNotAnswer(t *testing.T) {
	bounded(t, 1<<20, func(t *testing.T, w *world, p *payloads) {
		var last atomic.Int64
		for i := range 60 {
			name := fmt.Sprint("mute", i)
			w.replies(name, timedOut)
			w.make(timer(name, delay(time.Second), heavy(name, 60_000), retry(1, time.Second, 1), func(d *engine.Definition) { d.App = "mute" }))
		}
		for i := range 20 {
			for _, size := range []int{100, 60_000} {
				name := fmt.Sprint("well", size, "-", i)
				w.make(timer(name, delay(2*time.Second), heavy(name, size), func(d *engine.Definition) { d.App = "well" }))
				w.behave(name, func(c *call) reply {
					raiseTo(&last, c.at-c.key.Due)
					return slow(10 * time.Millisecond)
				})
			}
		}
		time.Sleep(10 * time.Second)
		if last.Load() > 1000 {
			t.Errorf("calls of a target that answers are %d ms late", last.Load())
		}
		time.Sleep(5 * time.Minute)
		if got := p.calls.Load(); got != 100 {
			t.Errorf("%d calls, want 100", got)
		}
	})
}

// While the cold tier is away, what needs it waits, and no attempt is counted; what
// does not need it is called.
func TestBodiesWithoutTheColdTier(t *testing.T) {
	bounded(t, 1<<20, func(t *testing.T, w *world, p *payloads) {
		var ids []engine.TimerID
		for i := range 40 {
			name := fmt.Sprint("t", i)
			ids = append(ids, w.make(timer(name, delay(10*time.Second), heavy(name, []int{300, 100_000}[i%2]))))
		}
		time.Sleep(5 * time.Second)
		p.away.Store(true)
		time.Sleep(time.Minute)
		if got := p.calls.Load(); got < 20 || got > 26 {
			t.Errorf("%d calls without the cold tier", got)
		}
		p.away.Store(false)
		time.Sleep(time.Minute)
		w.settle()
		for i, id := range ids {
			if cs := w.of(fmt.Sprint("t", i)); len(cs) != 1 || cs[0].attempt != 1 {
				t.Errorf("t%d: %+v", i, cs)
			}
			if rec := w.records(id)[0]; rec.Status != engine.Succeeded || len(rec.Attempts) != 1 {
				t.Errorf("t%d: %+v", i, rec)
			}
		}
	})
}

// What waits for room when the process drains stays due.
func TestBodiesWhileDraining(t *testing.T) {
	bounded(t, 1<<20, func(t *testing.T, w *world, p *payloads) {
		for i := range 30 {
			name := fmt.Sprint("t", i)
			w.replies(name, slow(3*time.Second), ok)
			w.make(timer(name, delay(time.Second), heavy(name, 200_000)))
		}
		time.Sleep(2 * time.Second)
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.start()
		time.Sleep(2 * time.Minute)
		for i := range 30 {
			if cs := w.of(fmt.Sprint("t", i)); len(cs) != 1 {
				t.Errorf("t%d: %d calls", i, len(cs))
			}
		}
	})
}
