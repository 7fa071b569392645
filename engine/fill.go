package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// gaps are the minutes whose buckets cannot be trusted: an entry could not be
// added, or what was read was not what had been written. They are read from the
// cold tier until they are filled anew.
type gaps struct {
	mu      sync.Mutex
	minutes map[int64]uint64 // by due / minute: the number of the last loss
	losses  uint64
}

// add notes a loss in each minute that begins in [from, to).
func (g *gaps) add(from, to int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.losses++
	for m := from / minute; m*minute < to; m++ {
		g.minutes[m] = g.losses
	}
}

func (g *gaps) has(at int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.minutes[at/minute] != 0
}

// next is the first minute in [from, to) that has a gap, and the number of
// losses so far.
func (g *gaps) next(from, to int64) (at int64, losses uint64, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := from / minute; m*minute < to; m++ {
		if g.minutes[m] != 0 {
			return m * minute, g.losses, true
		}
	}
	return 0, g.losses, false
}

// mended forgets the losses of [from, to) up to a number: those that came later
// stay. What began before from is forgotten altogether.
func (g *gaps) mended(from, to int64, losses uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m, n := range g.minutes {
		if m*minute < from || m*minute < to && n <= losses {
			delete(g.minutes, m)
		}
	}
}

// distrust notes that the warm tier does not have what is due at the instant, and
// wakes who mends it.
func (m *migrator) distrust(due int64) {
	m.gaps.add(due, due+1)
	m.wake()
}

// lose notes that the warm tier failed: all of it is to be filled anew.
func (m *migrator) lose(err error) {
	if m.e.warmUp.Swap(false) {
		m.e.log.Warn("the warm tier is away; the coming hour is read from the cold tier", "error", err)
	}
	m.gaps.add(m.e.loaded.Load(), max(m.filled.Load(), m.e.warmed.Load()))
}

// fillTo mends the gaps in the warm tier, and fills it to a window ahead of now.
func (m *migrator) fillTo(ctx context.Context) error {
	e := m.e
	if !m.opened {
		if err := e.cfg.Warm.Open(ctx); err != nil {
			m.lose(err)
			return nil // it costs speed, never a fire
		}
		m.opened = true
	}
	start := e.loaded.Load()
	if m.filled.Load() == 0 {
		m.filled.Store(start)
	}
	for ctx.Err() == nil {
		from, losses, ok := m.gaps.next(start, m.filled.Load())
		if !ok {
			break
		}
		to := from + minute
		for to < min(from+slice, m.filled.Load()) && m.gaps.has(to) {
			to += minute
		}
		if up, err := m.fill(ctx, from, to); !up || err != nil {
			return err
		}
		m.gaps.mended(from, to, losses)
	}
	end := (e.now()+e.cfg.Window.Milliseconds())/minute*minute + minute
	for m.filled.Load() < end {
		from := m.filled.Load()
		to := min(from+slice, end)
		raise(&e.warmed, to)
		if up, err := m.fill(ctx, from, to); !up || err != nil {
			return err
		}
		m.filled.Store(to)
	}
	if err := e.cfg.Warm.Drop(ctx, start-minute); err != nil {
		m.lose(err)
		return nil
	}
	if !e.warmUp.Swap(true) {
		e.log.Info("the warm tier is back and filled")
	}
	return nil
}

// fill puts what is due in [from, to) into its buckets and declares them whole.
// up is false when the warm tier failed, which is noted; err is the cold tier's.
func (m *migrator) fill(ctx context.Context, from, to int64) (up bool, err error) {
	var warm error
	err = m.e.cfg.Cold.Due(ctx, from-1, to-1, func(cs []Candidate) (err error) {
		warm, err = m.e.warm(ctx, cs, from, to)
		return errors.Join(warm, err)
	})
	Failpoint("warm-rebuild")
	if err == nil {
		if warm = m.e.cfg.Warm.Seal(ctx, from, to); warm == nil {
			return true, nil
		}
	}
	if ctx.Err() != nil {
		return false, nil
	}
	switch {
	case errors.Is(warm, ErrGap): // it lost a part of it meanwhile: once more
		m.gaps.add(from, to)
		m.wake()
		return false, nil
	case warm != nil:
		m.lose(warm)
		return false, nil
	}
	return false, fmt.Errorf("cannot fill the hour of %s: %w", milliTime(from).UTC().Format(time.RFC3339), err)
}

// warm puts candidates into the buckets of [from, to), one entry a minute. The
// first error is the warm tier's.
func (e *Engine) warm(ctx context.Context, cs []Candidate, from, to int64) (error, error) {
	es := make([]Entry, 0, len(cs))
	var raised []Bound
	t := new(Timer) // only the head of each
	for _, c := range cs {
		if c.Definition == nil {
			es = append(es, Entry{ID: c.ID, Due: c.Due})
			continue
		}
		if err := DecodeTimerHead(c.Definition, t); err != nil {
			return nil, fmt.Errorf("timer %s: %w", c.ID, err)
		}
		if t.Status != Enabled {
			continue
		}
		if t.Schedule.OneShot() {
			es = append(es, Entry(c))
			continue
		}
		p, err := PlanOf(t)
		if err != nil {
			e.leaveOut(c.ID, err)
			continue
		}
		es = entries(es, c.ID, c.Definition, &p, from, to)
		if b, ok := e.bound(t, &p, c.Due); ok {
			raised = append(raised, b)
		}
	}
	e.minutes.add(es)
	if err := e.cfg.Warm.Add(ctx, es); err != nil {
		return err, nil
	}
	if len(raised) > 0 {
		return nil, e.cfg.Cold.Raise(ctx, raised)
	}
	return nil, nil
}

// entries appends the first due of each minute in [from, to).
func entries(es []Entry, id TimerID, definition []byte, p *Plan, from, to int64) []Entry {
	for after := from - 1; ; {
		due, ok := p.Next(after)
		if !ok || due >= to {
			return es
		}
		es = append(es, Entry{ID: id, Due: due, Definition: definition})
		after = due/minute*minute + minute - 1
	}
}

// zoneMoves is by how much (ms) a new time zone database may bring a due nearer
// that was planned by the former one. A country that changes its clocks does so by
// an hour or two; one that crosses the date line goes beyond it.
const zoneMoves = 4 * 60 * minute

// bound is a better lower bound for the index of a recurring timer, when the
// one there is an hour old or more: the first due later than the watermark, and
// for a calendar as much less as its zone may yet move.
func (e *Engine) bound(t *Timer, p *Plan, was int64) (Bound, bool) {
	sh := e.shardOf(t.ID)
	sh.mu.Lock()
	w := sh.watermark
	busy := sh.timers[t.ID] != nil && sh.timers[t.ID].tasks != nil
	sh.mu.Unlock()
	if w-was < 60*minute {
		return Bound{}, false
	}
	due, ok := p.Next(w)
	if !ok {
		return Bound{ID: t.ID, Version: t.Version, Finished: true}, !busy
	}
	if t.Schedule.Cron != "" && t.Schedule.TimeZone != "" && t.Schedule.TimeZone != "UTC" {
		due -= zoneMoves
	}
	return Bound{ID: t.ID, Version: t.Version, Due: due}, due-was >= 60*minute
}
