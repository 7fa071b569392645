package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	minute = int64(60_000)
	// ahead is how many whole minutes beyond the current one lie in the wheel.
	ahead = 1
	// slice is how much of the window is read from the cold tier at a time.
	slice = 10 * minute
	// page is how many timers are admitted between two pauses.
	page = 512
)

// migrator loads what comes:
//
//	cold ──(fill: the next hour, slice by slice)──► warm
//	warm ──(load: the next minutes)──► roster and wheel
//
// Each horizon is raised before its scan begins, so that what is created
// meanwhile is admitted by its create: a timer may be met twice, never missed.
// loaded follows when a scan has ended; the watermark does not pass it.
type migrator struct {
	e *Engine
	// filled is up to where the warm tier was sealed (exclusive, Unix ms).
	// Written by run's goroutine only.
	filled atomic.Int64

	mu sync.Mutex
	// gaps are minutes to which an entry could not be added: they are read from
	// the cold tier. Guarded by mu.
	gaps map[int64]bool
}

// sealed is up to where the warm tier is whole; 0 before the first fill.
func (m *migrator) sealed() int64 { return m.filled.Load() }

// distrust notes that the warm tier does not have these entries.
func (m *migrator) distrust(es []Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range es {
		m.gaps[es[i].Due/minute] = true
	}
}

// trusted tells whether the warm tier can be asked for a minute.
func (m *migrator) trusted(at int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.gaps[at/minute] && at < m.filled.Load()
}

// passed forgets a minute that was loaded.
func (m *migrator) passed(at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gaps, at/minute)
}

// run keeps both horizons ahead until ctx ends.
func (m *migrator) run(ctx context.Context) error {
	for {
		err := m.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			m.e.log.Error("cannot load what is due next; trying again", "error", err)
		}
		now := m.e.now()
		m.e.metrics.migratorLag(max(0, now-m.e.loaded.Load()))
		wait := time.Duration(now/minute*minute+minute-now) * time.Millisecond
		if err != nil {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.e.wakeMigrator:
		case <-time.After(min(wait, 15*time.Second)):
		}
	}
}

// step brings the wheel to the end of the minutes ahead, then the warm tier to
// the end of the window; the wheel first, for it is the more urgent.
func (m *migrator) step(ctx context.Context) error {
	if err := m.loadTo(ctx, m.e.now()/minute*minute+(1+ahead)*minute); err != nil {
		return err
	}
	err := m.fillTo(ctx)
	m.e.warmUp.Store(err == nil)
	return err
}

// loadTo loads minute by minute up to the instant.
func (m *migrator) loadTo(ctx context.Context, to int64) error {
	e := m.e
	for at := e.loaded.Load(); at < to; at = e.loaded.Load() {
		next := at/minute*minute + minute
		raise(&e.horizon, next)
		if err := m.load(ctx, at, next); err != nil {
			return fmt.Errorf("cannot load the minute of %s: %w", milliTime(at).UTC().Format(time.RFC3339), err)
		}
		e.loaded.Store(next)
		m.passed(at)
	}
	return nil
}

// load admits the dues in [from, to), a minute or a part of one.
func (m *migrator) load(ctx context.Context, from, to int64) error {
	err := ErrGap
	if m.trusted(from) {
		err = m.e.cfg.Warm.Load(ctx, from/minute*minute, func(es []Entry) error {
			return m.admit(ctx, es, from, to)
		})
	}
	if m.e.warmUp.Store(err == nil || errors.Is(err, ErrGap)); err != nil {
		// Not whole, or away: the cold tier knows.
		err = m.e.cfg.Cold.Due(ctx, from-1, to-1, func(cs []Candidate) error {
			es := make([]Entry, len(cs))
			for i, c := range cs {
				es[i] = Entry{ID: c.ID, Due: max(c.Due, from), Definition: c.Definition}
			}
			return m.admit(ctx, es, from, to)
		})
	}
	if err != nil {
		return err
	}
	return m.e.cfg.Cold.Owed(ctx, from-1, to-1, func(os []Owed) error { return m.e.resume(ctx, os, false) })
}

// admit puts the timers of entries into the roster, and their first due in
// [from, to) into the wheel, in pages with a breath between them: loading must
// not make firing late.
func (m *migrator) admit(ctx context.Context, es []Entry, from, to int64) error {
	for len(es) > 0 {
		n := min(page, len(es))
		busy, _, err := m.e.admit(ctx, es[:n], from, false)
		if err != nil {
			return err
		}
		if len(busy) > 0 {
			m.e.admitLater(busy, from)
		}
		if es = es[n:]; len(es) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return ctx.Err()
}

// admitLater admits timers when the changes that are being made of them are
// over, and keeps the watermark back until then.
func (e *Engine) admitLater(es []Entry, from int64) {
	h := e.holds.take(from - 1)
	e.background.Go(func() {
		for len(es) > 0 {
			busy, wait, err := e.admit(e.life, es, from, false)
			if e.life.Err() != nil {
				return // the hold stays: the next start finds what is due
			}
			if err != nil {
				e.log.Error("cannot admit timers that were being changed; trying again", "error", err)
				sleep(e.life, time.Second)
				continue
			}
			if es = busy; wait != nil {
				select {
				case <-wait:
				case <-e.life.Done():
				}
			} else if len(es) > 0 {
				sleep(e.life, time.Millisecond)
			}
		}
		e.holds.give(h)
	})
}

// admit is one page. own tells that the caller is the one who changes these
// timers; busy are those that somebody else does, until wait is closed (nil: a
// change has just ended, and what was read is out of date).
func (e *Engine) admit(ctx context.Context, es []Entry, from int64, own bool) (busy []Entry, wait <-chan struct{}, err error) {
	defs := make([][]byte, len(es))
	var ids []TimerID
	var places []int
	for i, x := range es {
		if defs[i] = x.Definition; defs[i] == nil && !e.enrolled(x.ID) {
			ids, places = append(ids, x.ID), append(places, i)
		}
	}
	if len(ids) > 0 {
		found, err := e.cfg.Cold.Load(ctx, ids)
		if err != nil {
			return nil, nil, err
		}
		for j, i := range places {
			defs[i] = found[j]
		}
	}
	for i, x := range es {
		var t *Timer
		if defs[i] != nil {
			if t, err = DecodeTimer(defs[i]); err != nil {
				return nil, nil, fmt.Errorf("cannot admit timer %s: %w", x.ID, err)
			}
		}
		again, ch, err := e.admitOne(x.ID, t, from, own)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot admit timer %s: %w", x.ID, err)
		}
		if again {
			busy = append(busy, Entry{ID: x.ID, Due: x.Due}) // without its definition: it is read anew
			if ch != nil {
				wait = ch
			}
		}
	}
	return busy, wait, nil
}

// enrolled tells whether the timer has its next due in the wheel already.
func (e *Engine) enrolled(id TimerID) bool {
	sh := e.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	lv := sh.timers[id]
	return lv != nil && (lv.next != 0 || lv.late)
}

// admitOne enrols a timer read from a tier and schedules its first due ≥ from
// that is not finished; t is nil when the tier has none, or when it was enrolled
// already. again tells that the timer is being changed, or was since it was read.
func (e *Engine) admitOne(id TimerID, t *Timer, from int64, own bool) (again bool, wait <-chan struct{}, err error) {
	sh := e.shardOf(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if ch := sh.changing[id]; ch != nil && !own {
		return true, ch, nil
	}
	if t == nil || t.Status != Enabled {
		return false, nil, nil
	}
	if e.changes.newer(id, t.Version) {
		return true, nil, nil
	}
	lv, err := e.enroll(sh, t)
	if err != nil {
		return false, nil, err
	}
	if lv.next == 0 && !lv.held && !lv.late && !lv.deleted {
		e.schedule(lv, max(from-1, sh.watermark, sh.decided[id]))
	}
	sh.dismiss(lv)
	return false, nil, nil
}

// fillTo fills the warm tier to a window ahead of now, slice by slice.
func (m *migrator) fillTo(ctx context.Context) error {
	e := m.e
	end := (e.now()+e.cfg.Window.Milliseconds())/minute*minute + minute
	if m.filled.Load() == 0 {
		m.filled.Store(e.loaded.Load())
	}
	for m.filled.Load() < end {
		from := m.filled.Load()
		to := min(from+slice, end)
		raise(&e.warmed, to)
		err := e.cfg.Cold.Due(ctx, from-1, to-1, func(cs []Candidate) error { return e.warm(ctx, cs, from, to) })
		if err == nil {
			err = e.cfg.Warm.Seal(ctx, from, to)
		}
		if err != nil {
			return fmt.Errorf("cannot fill the warm tier: %w", err)
		}
		m.filled.Store(to)
	}
	return e.cfg.Warm.Drop(ctx, e.loaded.Load()-minute)
}

// warm puts candidates into the buckets of [from, to), one entry a minute.
func (e *Engine) warm(ctx context.Context, cs []Candidate, from, to int64) error {
	es := make([]Entry, 0, len(cs))
	var raised []Bound
	for _, c := range cs {
		if c.Definition == nil {
			es = append(es, Entry{ID: c.ID, Due: c.Due})
			continue
		}
		t, err := DecodeTimer(c.Definition)
		if err != nil {
			return fmt.Errorf("timer %s: %w", c.ID, err)
		}
		if t.Status != Enabled {
			continue
		}
		p, err := PlanOf(t)
		if err != nil {
			return fmt.Errorf("timer %s: %w", c.ID, err)
		}
		es = entries(es, c.ID, &p, from, to)
		if b, ok := e.bound(t, &p, c.Due); ok {
			raised = append(raised, b)
		}
	}
	e.minutes.add(es)
	if err := e.cfg.Warm.Add(ctx, es); err != nil {
		return err
	}
	if len(raised) > 0 {
		return e.cfg.Cold.Raise(ctx, raised)
	}
	return nil
}

// entries appends the first due of each minute in [from, to).
func entries(es []Entry, id TimerID, p *Plan, from, to int64) []Entry {
	for after := from - 1; ; {
		due, ok := p.Next(after)
		if !ok || due >= to {
			return es
		}
		es = append(es, Entry{ID: id, Due: due})
		after = due/minute*minute + minute - 1
	}
}

// bound is a better lower bound for the index of a recurring timer, when the
// one there is an hour old or more: the first due later than the watermark.
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
	return Bound{ID: t.ID, Version: t.Version, Due: due}, true
}
