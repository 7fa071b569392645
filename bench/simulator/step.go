package simulator

import (
	"fmt"
	"testing/synctest"
	"time"

	"xtimer/engine"
)

// do makes one step happen.
func (m *machine) do(s Step) {
	synctest.Wait() // what came before it at this instant is over
	m.note("%s", s)
	m.did = append(m.did, fmt.Sprint(m.since(), " ", s))
	m.mu.Lock()
	l := m.life
	m.mu.Unlock()
	during := func(set func(*trouble), undo func(*trouble)) {
		m.mu.Lock()
		set(&m.trouble)
		m.mu.Unlock()
		time.AfterFunc(s.For, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			undo(&m.trouble)
		})
	}
	switch s.Kind {
	case Crash:
		if l != nil {
			m.mu.Lock()
			m.trouble.crash = s
			m.mu.Unlock()
			m.die(l, s.Kept, s.Draw)
		}
	case CrashAt:
		m.mu.Lock()
		m.trouble.crash, m.trouble.crashAt = s, s.Nth+1
		m.mu.Unlock()
	case Stop:
		if l != nil {
			m.mu.Lock()
			m.trouble.crash = s
			m.mu.Unlock()
			l.stop()
		}
	case Clock:
		// Logs have a step to the ms, and a start may have held the driver up.
		time.Sleep((m.since() + time.Millisecond - 1).Truncate(time.Millisecond) - m.since())
		m.mu.Lock()
		from := m.wall().UnixMilli()
		m.offset += s.By
		if n := len(m.steps) - 1; n >= 0 && m.steps[n].at == m.since() { // nobody saw the clock between
			from = m.steps[n].from
			m.steps = m.steps[:n]
		}
		m.steps = append(m.steps, clockStep{m.since(), from, m.wall().UnixMilli()})
		m.mu.Unlock()
	case Slow:
		during(func(t *trouble) { t.pace = s.By }, func(t *trouble) { t.pace = 0 })
	case Stall:
		m.mu.Lock()
		m.trouble.stall = s.By
		m.mu.Unlock()
	case WarmAway:
		during(func(t *trouble) { t.warmAway = true }, func(t *trouble) { t.warmAway = false })
	case WarmLoss:
		m.mu.Lock()
		m.trouble.lost = func(engine.TimerID) bool { return true }
		m.mu.Unlock()
	case ColdAway:
		during(func(t *trouble) { t.coldAway = true }, func(t *trouble) { t.coldAway = false })
	case ColdMute:
		during(func(t *trouble) { t.coldMute = true }, func(t *trouble) { t.coldMute = false })
	default:
		m.ask(s, l)
	}
}
