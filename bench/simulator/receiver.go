package simulator

import (
	"fmt"
	"hash/fnv"
	"time"

	"xtimer/engine"
)

// call is what the receiver saw and did.
type call struct {
	app, name   string
	key         engine.Key
	attempt     int
	redelivered bool
	version     uint32 // of the timer, in force when it was sent
	generation  uint32
	life        int
	fence       uint64        // of the shard; 0: there is one node
	asked       time.Duration // since the run began: when it was to be made
	at          time.Duration // of its first byte
	wall        time.Time
	sent        time.Time     // by the wall clock of the node
	ended       time.Duration // 0: never answered
	answer      answer
	mute        bool // its target was, see crowd
	// began and over order the calls and their answers, also within one instant;
	// over is 0 for one that was never answered.
	began, over int
}

// answer is what the receiver does with a call.
type answer struct {
	class engine.Class
	code  int
	dial  time.Duration // before the first byte, or before it is known that there will be none
	after time.Duration
}

// slowDial is the most that a dial takes.
const slowDial = 3 * time.Second

var ok = answer{class: engine.ClassOK, code: 200}

// receiver takes the calls of one life.
type receiver struct {
	m *machine
	l *life
}

// answers of a timer are drawn from the seed, its name, the due and the attempt.
// A third of the timers have a target that takes everything at once; of the others one
// call in ten is slow to begin.
func (m *machine) answer(c *engine.Call) (a answer) {
	if m.calm || m.script.Honest {
		return ok
	}
	switch {
	case m.isMute(c):
		return answer{class: engine.ClassUnknown, after: crowdTimeout}
	case m.isFailing(c):
		return answer{class: engine.ClassRetry, code: 500}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.Timer.Name))
	seed := h.Sum64() ^ m.script.Seed*0x9E3779B97F4A7C15
	temper := seed >> 20 % 3
	_, _ = h.Write([]byte{
		byte(c.Key.Due), byte(c.Key.Due >> 8), byte(c.Key.Due >> 16), byte(c.Attempt),
		byte(m.script.Seed), byte(m.script.Seed >> 8), byte(m.script.Seed >> 16),
	})
	roll := (h.Sum64() >> 13) % 100
	slow := time.Duration(h.Sum64()>>32%2000) * time.Millisecond
	defer func() {
		if temper != 0 && h.Sum64()>>5%10 == 0 {
			a.dial = time.Duration(h.Sum64() >> 3 % uint64(slowDial))
		}
	}()
	switch {
	case temper == 0 || roll >= 40:
		return ok
	case roll < 12:
		return answer{class: engine.ClassRetry, code: 500}
	case roll < 15:
		return answer{class: engine.ClassRejected, code: 404}
	case roll < 19: // never answers
		return answer{class: engine.ClassUnknown, after: c.Timer.Callback.Timeout}
	case roll < 22: // reads it and hangs up
		return answer{class: engine.ClassUnknown}
	case roll < 25: // nobody listens
		return answer{class: engine.ClassNotSent}
	case roll < 29:
		return answer{class: engine.ClassRetry, code: 503, after: slow}
	default:
		return answer{class: engine.ClassOK, code: 200, after: slow}
	}
}

// Call takes a call of a life that is not over.
func (r *receiver) Call(c *engine.Call) engine.Outcome {
	m := r.m
	r.l.reach("before a call")
	defer r.l.reach("after a call")
	m.mu.Lock()
	if r.l.over {
		m.mu.Unlock()
		return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "dead"}
	}
	seen := &call{
		app: c.Timer.App, name: c.Timer.Name, key: c.Key, attempt: c.Attempt, redelivered: c.Redelivered, version: c.Timer.Version,
		generation: c.Timer.Generation, life: r.l.n, fence: c.Fence, asked: m.since(), answer: m.answer(c), mute: m.isMute(c),
	}
	m.mu.Unlock()
	if seen.answer.dial > 0 {
		select {
		case <-time.After(seen.answer.dial):
		case <-r.l.gone:
			return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "dead"}
		}
		r.l.reach("before a call")
	}
	out := engine.Outcome{Class: seen.answer.class, Code: seen.answer.code}
	if out.Class == engine.ClassNotSent {
		m.mu.Lock()
		m.refused = append(m.refused, c.Key)
		m.mu.Unlock()
	} else if !c.Send(func() bool { return r.arrive(seen, c) }) {
		return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "withdrawn"}
	}
	out.Sent = seen.sent
	if seen.answer.after > 0 {
		select {
		case <-time.After(seen.answer.after):
		case <-r.l.gone:
			return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "dead"}
		}
	}
	m.mu.Lock()
	seen.ended = m.since()
	m.order++
	seen.over = m.order
	m.mu.Unlock()
	out.Took = seen.answer.dial + seen.answer.after
	switch out.Class {
	case engine.ClassOK:
	case engine.ClassNotSent:
		out.Sent, out.ErrorClass = time.Time{}, "refused"
	case engine.ClassUnknown:
		out.ErrorClass = "timeout"
	default:
		out.ErrorClass = "status"
	}
	return out
}

// arrive notes the first byte of a call, which reaches nobody when its life is over.
func (r *receiver) arrive(seen *call, c *engine.Call) bool {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.l.over {
		return false
	}
	m.order++
	seen.began, seen.at, seen.wall, seen.sent = m.order, m.since(), m.wallOf(r.l), m.wall()
	if r.l.node != nil {
		seen.sent = r.l.node.wall()
	}
	m.calls = append(m.calls, seen)
	if r.l.node != nil {
		r.l.node.holdArrival(seen)
	}
	mark := ""
	if c.Redelivered {
		mark = " again"
	}
	if r.l.node != nil {
		mark += fmt.Sprintf(" by life %d under %d", r.l.n, c.Fence)
	}
	m.tell("  %s %s attempt %d%s: %d after %v", c.Timer.Name, c.Key, c.Attempt, mark, seen.answer.code, seen.answer.after)
	return true
}
