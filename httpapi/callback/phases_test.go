package callback

import (
	"testing"
	"time"

	"xtimer/engine"
)

// pausing is a peer's way of taking its time before an answer, and within it.
func pausing(pause time.Duration) func(*session) {
	return func(s *session) {
		for s.request() {
			time.Sleep(pause)
			if !s.say(ok200[:20]) {
				return
			}
			time.Sleep(pause)
			s.say(ok200[20:])
		}
	}
}

// onKept looks at the phases of a call over a kept connection. A busy machine may
// stop this process between the reading and the noting; not every time.
func onKept(t *testing.T, cb *Caller, p *peer, pause time.Duration) {
	t.Helper()
	for try := 0; ; try++ {
		o := cb.Call(testCall(p.url))
		expect(t, o, engine.ClassOK, "")
		if ph := o.Phases; ph.Dial == 0 && ph.TLS == 0 && ph.Send > 0 && ph.FirstByte > pause/2 && ph.Read > pause/2 {
			return
		}
		if try == 50 {
			t.Fatalf("a kept connection: %+v", o.Phases)
		}
	}
}

// TestPhases: the time of an attempt stands in the phase it was spent in.
func TestPhases(t *testing.T) {
	const pause = 30 * time.Millisecond
	ca := newCA(t)
	p := listen(t, ca.issue(t, "127.0.0.1", time.Hour), pausing(pause))
	cb := newCaller(t, Config{RootCAs: ca.pool})
	o := cb.Call(testCall(p.url))
	expect(t, o, engine.ClassOK, "")
	if ph := o.Phases; ph.Dial <= 0 || ph.TLS <= 0 || ph.Send <= 0 {
		t.Errorf("a new connection: %+v", ph)
	}
	onKept(t, cb, p, pause)
	plain := listen(t, nil, pausing(pause))
	expect(t, cb.Call(testCall(plain.url)), engine.ClassOK, "")
	onKept(t, cb, plain, pause)

	// One that fails ends in the phase where it failed.
	mute := listen(t, nil, (*session).hold)
	o = cb.Call(testCall(mute.url, timeout(time.Second)))
	expect(t, o, engine.ClassUnknown, wordTimeout)
	if ph := o.Phases; ph.FirstByte <= 0 || ph.Read != 0 {
		t.Errorf("a mute target: %+v", ph)
	}
	o = cb.Call(testCall("https"+mute.url[4:], timeout(time.Second)))
	expect(t, o, engine.ClassNotSent, wordTimeout)
	if ph := o.Phases; ph.Dial <= 0 || ph.TLS <= 0 || ph.Send+ph.FirstByte+ph.Read != 0 {
		t.Errorf("a handshake without an end: %+v", ph)
	}
}
