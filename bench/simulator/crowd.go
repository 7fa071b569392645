package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
)

// crowd is a burst of one-shots, some with large bodies, for one target that does not
// answer for a while; and after it a few whose target fails while the disk stands still,
// until the process dies: the next life knows of none of their attempts, or of the first.
// A third of the scripts have one, with little room for what waits.
type crowd struct {
	from, to time.Duration // when the one target is mute
	fails    time.Duration // when the other begins to fail, for failsFor
}

const (
	crowdSize    = 60
	crowdTarget  = "http://127.0.0.1:9/"
	crowdTimeout = 2 * time.Second
	crowdPlaces  = 8        // the calls that may be in flight to one target
	crowdBodies  = 64 << 10 // bytes of bodies in memory; one alone is always taken
	crowdBody    = 16 << 10 // the largest

	failSize    = 6
	failsTarget = "http://127.0.0.1:8/"
	failsFor    = 6 * time.Second
)

// crowd writes the steps of a crowd. It draws from a source of its own: all else in the
// script is what it was without.
func (w *writer) crowd() {
	if w.Seed%6 > 1 { // the others have room for 4 and for 40 tasks
		return
	}
	d := draw{rand.New(rand.NewPCG(w.Seed, 3))}
	w.Settings.PerTarget, w.Settings.Bodies = crowdPlaces, crowdBodies
	for i := range w.Steps { // a queue of a timer has a bound of its own, a hundred tasks
		if o := &w.Steps[i].Definition.Overlap; *o == engine.OverlapQueue {
			*o = engine.OverlapSkip
		}
	}
	from := 10*time.Second + d.upTo(w.Calm/2)
	w.Crowd = crowd{from, from + 30*time.Second, from + 35*time.Second}
	for i := range crowdSize {
		def := engine.NewDefinition()
		def.App, def.Name = "app", fmt.Sprintf("c%d", i)
		def.Callback.URL, def.Callback.Timeout = crowdTarget+def.Name, crowdTimeout
		if d.chance(50) {
			def.Callback.HasBody, def.Callback.BodyKind = true, engine.BodyText
			def.Callback.Body = []byte(strings.Repeat("x", 1+d.IntN(crowdBody)))
		}
		def.Retry.MaxAttempts, def.Retry.Backoff, def.Retry.Jitter = 1+d.IntN(3), 500*time.Millisecond, 0
		def.Misfire = engine.Misfire{Policy: engine.MisfireAll, Window: 24 * time.Hour}
		def.Delivery = oneOf(d, engine.AtLeastOnce, engine.AtLeastOnce, engine.AtMostOnce)
		def.Schedule.At = w.Epoch.Add(from + d.upTo(5*time.Second)).UnixMilli()
		w.Steps = append(w.Steps, Step{At: from - 5*time.Second + d.upTo(5*time.Second), Kind: Create, Name: def.Name, Definition: def, Draw: d.Uint64()})
	}
	at := w.Crowd.fails
	for i := range failSize {
		def := engine.NewDefinition()
		def.App, def.Name = "app", fmt.Sprintf("r%d", i)
		def.Callback.URL, def.Callback.Timeout = failsTarget+def.Name, crowdTimeout
		def.Retry.MaxAttempts, def.Retry.Backoff, def.Retry.Multiplier, def.Retry.Jitter = 100, 200*time.Millisecond, 1, 0
		def.Misfire = engine.Misfire{Policy: engine.MisfireAll, Window: 24 * time.Hour}
		def.Schedule.At = w.Epoch.Add(at + d.upTo(500*time.Millisecond)).UnixMilli()
		w.Steps = append(w.Steps, Step{At: at - 2*time.Second, Kind: Create, Name: def.Name, Definition: def, Draw: d.Uint64()})
	}
	w.Steps = append(w.Steps,
		Step{At: at, Kind: Stall, By: 4 * time.Second},
		Step{At: at + time.Second + d.upTo(time.Second), Kind: Crash, Kept: oneOf(d, 0, 0, 50, 100), For: d.upTo(time.Second), Draw: d.Uint64()})
}

// isMute reports whether a call meets the target of a crowd while that does not answer.
// mu is held.
func (m *machine) isMute(c *engine.Call) bool {
	at := m.since()
	return m.script.Crowd.from <= at && at < m.script.Crowd.to && strings.HasPrefix(c.Timer.Callback.URL, crowdTarget)
}

// isFailing reports whether a call meets the other target while that fails. mu is held.
func (m *machine) isFailing(c *engine.Call) bool {
	at := m.since()
	return m.script.Crowd.fails <= at && at < m.script.Crowd.fails+failsFor && strings.HasPrefix(c.Timer.Callback.URL, failsTarget)
}

// holdMute: a target that does not answer loses places: after three timeouts it has half
// of them at most, whatever waits for it.
func (m *machine) holdMute() {
	var open []*call // of the life of the last one
	var first time.Duration
	for _, c := range m.calls {
		if !c.mute {
			continue
		}
		if len(open) > 0 && open[0].life != c.life {
			open = nil
		}
		if open == nil {
			first = c.at
		}
		open = append(slices.DeleteFunc(open, func(was *call) bool { return was.over != 0 && was.over < c.began }), c)
		if c.at > first+3*crowdTimeout+time.Second && len(open) > crowdPlaces/2 {
			m.wrong("%s: at %v %d calls are in flight to a target that has been mute since %v", c.name, c.at, len(open), first)
			return
		}
	}
}

const (
	// someMore is what may be in memory beyond the bound of tasks: the shares of lanes that
	// came when one had taken all of it, 16 dues of a range in each lane, what was under way
	// before a start, calls in flight, and tasks that wait for their next attempt.
	someMore = 48
	// leavesSoon is when what is beyond it has been settled and has left.
	leavesSoon = 5 * time.Second
)

// holdMemory looks again and again at how much a life has in memory.
func (m *machine) holdMemory(l *life) {
	set := &m.script.Settings
	most := int64(set.Waiting) + someMore
	for since := m.since(); ; {
		select {
		case <-l.gone:
			return
		case <-time.After(100 * time.Millisecond):
		}
		tasks, bytes := l.e.Memory()
		m.mu.Lock()
		now := m.since()
		if tasks <= most || m.trouble.coldAway || m.trouble.coldMute || now < m.slow+time.Second {
			since = now
		}
		m.mu.Unlock()
		switch {
		case now > since+leavesSoon:
			m.wrong("%d tasks are in memory since %v, more than %d", tasks, since, most)
			return
		case set.Bodies > 0 && bytes > set.Bodies:
			m.wrong("bodies of %d bytes are in memory, more than %d", bytes, set.Bodies)
			return
		}
	}
}
