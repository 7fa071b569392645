package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/resident"
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
//	cold ──(fill: the next hour, slice by slice)──► warm      fill.go
//	warm ──(load: the next minutes)──► memory and wheel       admit.go
//	owed ──(resume: what may be tried then)──► memory
//
// Each horizon is raised before its scan begins, so that what is created
// meanwhile is admitted by its create: a timer may be met twice, never missed.
// memory.Loaded follows when a scan has ended; the watermark does not pass it.
//
// The wheel goes first: an hour of millions takes longer to fill than the wheel
// is ahead, so the next minutes are loaded between two pages of it.
//
// A node among several gains shards beside that, between two loads: see gain.go.
//
// Without the warm tier the minutes are read from the cold one. Without the cold
// tier loading goes on to the end of what is filled, where the warm tier keeps
// definitions; rows of owed wait.
type migrator struct {
	e    *Scheduler
	more chan struct{} // wakes run
	// warmed is to the warm tier what memory.Horizon is to the wheel (Unix ms).
	warmed atomic.Int64
	// filled is up to where the warm tier was sealed (exclusive, Unix ms).
	// Written by run's goroutine only.
	filled  atomic.Int64
	gaps    gaps
	minutes inspect.Minutes
	gains   gains

	// The rest is run's own.
	asked   time.Time     // when it was last asked whether it answers
	pause   time.Duration // before the next fill, as the last one failed; 0: it went well
	paused  time.Time     // since when
	dropped int64         // up to where the warm tier was told to forget
	resumed int64         // up to where rows of owed were read
	gaining *gaining      // nil: no gain is under way
	gained  time.Time     // since when gaps of gains wait that are mended slowly; zero: there are none
	trouble trouble

	warmTrouble trouble // with the warm tier
}

// sealed is up to where the warm tier is whole; 0 before the first fill.
func (m *migrator) sealed() int64 { return m.filled.Load() }

// trusted reports whether the warm tier can be asked for a minute.
func (m *migrator) trusted(at int64) bool {
	return m.e.tiers.WarmAnswers.Load() && at < m.filled.Load() && !m.gaps.has(at)
}

func (m *migrator) wake() {
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// run keeps all horizons ahead until ctx ends.
func (m *migrator) run(ctx context.Context) error {
	m.resumed = m.e.memory.Loaded.Load()
	for {
		err := m.step(ctx)
		if ctx.Err() != nil {
			return nil
		}
		m.trouble.tell(m.e.log, "cannot load what is due next; trying again", err)
		now := m.e.now()
		wait := time.Duration(now/minute*minute+minute-now) * time.Millisecond
		if err != nil || m.e.tiers.WarmAway() || m.pause > 0 || !m.gained.IsZero() {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.more:
		case <-time.After(min(wait, 15*time.Second)):
		}
	}
}

// step brings the wheel to the end of the minutes ahead, then the warm tier to
// the end of the window.
func (m *migrator) step(ctx context.Context) error {
	if err := m.keepAhead(ctx); err != nil {
		return err
	}
	return m.fillTo(ctx)
}

// keepAhead brings the wheel to the end of the minutes ahead.
func (m *migrator) keepAhead(ctx context.Context) error {
	if m.e.backpressure.isFull.Load() {
		return ErrBacklog // what was loaded would wait in memory
	}
	gained := m.gain(ctx) // shards that cannot be gained keep nobody waiting
	m.reach(ctx)          // first: without the cold tier what it holds is all there is
	return errors.Join(gained, m.loadAhead(ctx))
}

// loadAhead loads what is due in the minutes ahead, and resumes what may be tried in them.
func (m *migrator) loadAhead(ctx context.Context) error {
	if err := m.loadTo(ctx, m.e.now()/minute*minute+(1+ahead)*minute); err != nil {
		return err
	}
	return m.resumeTo(ctx, m.e.memory.Loaded.Load())
}

// loadTo loads minute by minute up to the instant. Minutes that are past, after a
// forward step of the clock, a stall or an outage, are loaded together with the current
// one, in one pass over the cold tier: each timer is met once, however long it took.
// While the cold tier is away the warm one may know the next minute.
func (m *migrator) loadTo(ctx context.Context, to int64) error {
	e := m.e
	for at := e.memory.Loaded.Load(); at < to; at = e.memory.Loaded.Load() {
		next := at/minute*minute + minute
		if current := e.now() / minute * minute; current > next {
			resident.Raise(&e.memory.Horizon, current+minute)
			err := m.load(ctx, at, current+minute)
			if err == nil {
				e.memory.Loaded.Store(current + minute)
				e.memory.TellLoaded()
				continue
			}
			if !m.trusted(at) {
				return fmt.Errorf("cannot load what was due since %s: %w", time.UnixMilli(at).UTC().Format(time.RFC3339), err)
			}
		}
		resident.Raise(&e.memory.Horizon, next)
		if err := m.load(ctx, at, next); err != nil {
			return fmt.Errorf("cannot load the minute of %s: %w", time.UnixMilli(at).UTC().Format(time.RFC3339), err)
		}
		e.memory.Loaded.Store(next)
		e.memory.TellLoaded()
	}
	return nil
}

// load admits the dues in [from, to): a minute or a part of one, or more than a minute
// from the cold tier.
func (m *migrator) load(ctx context.Context, from, to int64) error {
	read := m.e.memory.Reads.Begin()
	defer read.End()
	if to-from <= minute && m.trusted(from) {
		var admitting error
		elsewhere := m.e.cedes.wereElsewhere()
		err := m.e.cfg.Warm.Load(ctx, m.e.memory.Owned(), from/minute*minute, func(es []engine.Entry) error {
			distrust(es, elsewhere)
			admitting = m.admit(ctx, es, from, read)
			return admitting
		})
		switch {
		case err == nil || ctx.Err() != nil || admitting != nil:
			return err
		case errors.Is(err, engine.ErrGap):
			m.e.log.Warn("the warm tier has lost what it held; it is filled anew", "minute", time.UnixMilli(from).UTC())
			m.gaps.add(engine.AllShards, from, m.filled.Load())
		default:
			m.lose(err)
		}
	}
	// Not whole, or away: the cold tier knows.
	return m.loadCold(ctx, m.e.memory.Owned(), from, to, read)
}

// distrust drops the definitions of timers that other nodes may have changed: the warm tier was
// not told of that.
func distrust(es []engine.Entry, of engine.Set) {
	if of == (engine.Set{}) {
		return
	}
	for i := range es {
		if of.Has(es[i].ID.Shard()) {
			es[i].Definition = nil
		}
	}
}

// loadCold admits the dues of shards in [from, to), as the cold tier has them.
func (m *migrator) loadCold(ctx context.Context, of engine.Set, from, to int64, read *resident.Read) error {
	return m.e.cfg.Cold.Due(ctx, of, from-1, to-1, func(cs []engine.Candidate) error {
		es := make([]engine.Entry, len(cs))
		for i, c := range cs {
			es[i] = engine.Entry{ID: c.ID, Due: max(c.Due, from), Definition: c.Definition}
		}
		return m.admit(ctx, es, from, read)
	})
}

// resumeTo takes rows of owed into memory that may be tried before the instant.
func (m *migrator) resumeTo(ctx context.Context, to int64) error {
	for m.resumed < to {
		next := min(max(m.resumed, m.e.now())/minute*minute+minute, to)
		resident.Raise(&m.e.memory.Resuming, next) // first: refill reads what this leaves to it
		if err := m.resumeOf(ctx, m.e.memory.Owned(), m.resumed-1, next-1); err != nil {
			return err
		}
		m.resumed = next
	}
	return nil
}

// resumeOf takes the rows of shards into memory that may be tried in (from, to].
func (m *migrator) resumeOf(ctx context.Context, of engine.Set, from, to int64) error {
	read := m.e.memory.Reads.Begin()
	err := m.e.cfg.Cold.Owed(ctx, of, from, to, func(os []engine.Owed) error { return m.e.resume(ctx, os, read, false) })
	read.End()
	if m.e.tiers.Read(err); err != nil {
		return fmt.Errorf("cannot read what is owed: %w", err)
	}
	return nil
}

// trouble logs a failure that is tried again and again: at first, every half
// minute while it lasts, and its end.
type trouble struct {
	mu          sync.Mutex
	since, told time.Time
}

func (t *trouble) tell(log *slog.Logger, what string, err error) {
	t.tellAt(log, slog.LevelError, what, err)
}

func (t *trouble) tellAt(log *slog.Logger, level slog.Level, what string, err error) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err == nil && !t.since.IsZero():
		log.Info("over: "+what, "after", now.Sub(t.since).Round(time.Millisecond))
		t.since, t.told = time.Time{}, time.Time{}
	case err != nil && now.Sub(t.told) > 30*time.Second:
		if t.told = now; t.since.IsZero() {
			t.since = now
		}
		log.Log(context.Background(), level, what, "error", err)
	}
}
