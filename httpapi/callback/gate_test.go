package callback

import (
	"net"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
)

// gate is one that opens as often as it is told to, and notes what it is told.
type gate struct {
	opens  int
	leaves []bool
	waits  time.Duration
	stays  int
}

func (g *gate) Wait() (time.Duration, bool) {
	waits := g.waits
	time.Sleep(waits)
	g.waits = 0
	return waits, true
}

func (g *gate) Stay() { g.stays++ }

func (g *gate) Enter() bool {
	g.opens--
	return g.opens >= 0
}

func (g *gate) Leave(sent bool) { g.leaves = append(g.leaves, sent) }

func gated(g *gate, url string, opts ...func(*engine.Timer)) *engine.Call {
	c := testCall(url, opts...)
	c.Gate = g
	return c
}

// A call that is withdrawn sends no byte, over whatever it would have, and costs no
// connection.
func TestWithdrawnCall(t *testing.T) {
	ca := newCA(t)
	for name, p := range map[string]*peer{
		"tcp": listen(t, nil, answering(ok200)),
		"tls": listen(t, ca.issue(t, "127.0.0.1", time.Hour), answering(ok200)),
	} {
		t.Run(name, func(t *testing.T) {
			cb := newCaller(t, Config{RootCAs: ca.pool})
			for range 2 { // a new connection, a kept one
				g := &gate{}
				if o := cb.Call(gated(g, p.url)); o.Class != engine.ClassNotSent || !o.Sent.IsZero() || len(g.leaves) != 0 {
					t.Errorf("%+v, %v", o, g.leaves)
				}
				if p.requests.Load() != 0 {
					t.Fatal("it was sent")
				}
			}
			g := &gate{opens: 1}
			expect(t, cb.Call(gated(g, p.url)), engine.ClassOK, "")
			// A TLS server has sent tickets, so what was not written to does not look quiet.
			if !slices.Equal(g.leaves, []bool{true}) || name == "tcp" && p.conns.Load() != 1 {
				t.Errorf("%v, %d connections", g.leaves, p.conns.Load())
			}
		})
	}
}

// A kept connection that turns out to be gone when it is written to costs another
// look at the gate: the next connection takes its time.
func TestGateBeforeEachConnection(t *testing.T) {
	over := make(chan struct{})
	p := listen(t, nil, func(s *session) {
		s.request()
		s.say(ok200)
		<-over
	})
	defer close(over)
	cb := newCaller(t, Config{})
	for _, opens := range []int{2, 1} {
		expect(t, cb.Call(testCall(p.url)), engine.ClassOK, "")
		origin, _ := splitURL(p.url)
		tg, err := cb.target(origin)
		if err != nil {
			t.Fatal(err)
		}
		tg.mu.Lock()
		tg.idle[0].direct = false
		tg.idle[0].Conn = deaf{tg.idle[0].Conn}
		tg.mu.Unlock()
		g := &gate{opens: opens}
		o := cb.Call(gated(g, p.url))
		want := [][]bool{1: {false}, 2: {false, true}}[opens]
		if !slices.Equal(g.leaves, want) || (o.Class == engine.ClassOK) != (opens == 2) {
			t.Errorf("a gate that opens %d times was left %v: %+v", opens, g.leaves, o)
		}
		cb.Close()
		cb = newCaller(t, Config{})
	}
}

// deaf is a connection that was reset: nothing can be written.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, net.ErrClosed }

// What is written at the gate does not wait for a target that does not read.
func TestGateOfALargeRequest(t *testing.T) {
	over := make(chan struct{})
	defer close(over)
	p := listen(t, nil, func(s *session) {
		s.r.Peek(1)
		<-over
	})
	cb := newCaller(t, Config{})
	left := make(chan time.Time, 1)
	call := testCall(p.url, timeout(2*time.Second), func(tm *engine.Timer) {
		tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = make([]byte, 16<<20), true, engine.BodyBase64
	})
	call.Gate = timed{left}
	o := cb.Call(call)
	ended := time.Now()
	expect(t, o, engine.ClassUnknown, wordTimeout)
	select {
	case at := <-left:
		if ended.Sub(at) < time.Second/2 {
			t.Errorf("the gate was left %v before the end of a call of %v", ended.Sub(at), o.Took)
		}
	default:
		t.Error("the gate was never left")
	}
}

// timed notes when it was left.
type timed struct{ left chan time.Time }

func (timed) Wait() (time.Duration, bool) { return 0, true }
func (timed) Stay()                       {}
func (timed) Enter() bool                 { return true }
func (g timed) Leave(bool)                { g.left <- time.Now() }

// A call that waits for its limits has the whole of its timeout after that, over a kept connection and a new one.
func TestTheTimeoutBeginsAfterTheWait(t *testing.T) {
	p := listen(t, nil, answering(ok200))
	kept := newCaller(t, Config{})
	expect(t, kept.Call(testCall(p.url)), engine.ClassOK, "")
	for name, c := range map[string]*Caller{"kept": kept, "new": newCaller(t, Config{})} {
		o := c.Call(gated(&gate{opens: 1, waits: 700 * time.Millisecond}, p.url, timeout(600*time.Millisecond)))
		if o.Class != engine.ClassOK || o.Took > 600*time.Millisecond {
			t.Errorf("%s: %v %q after %v", name, o.Class, o.ErrorClass, o.Took)
		}
	}
}
