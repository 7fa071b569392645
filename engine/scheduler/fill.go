package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/resident"
)

// lose notes that the warm tier failed. What it holds is not given up for that:
// when it answers again it says itself what it has lost (ErrGap).
func (m *migrator) lose(err error) {
	m.e.tiers.WarmLost()
	m.warmTrouble.tellAt(m.e.log, slog.LevelWarn, cannotUseWarm, err)
}

const cannotUseWarm = "cannot use the warm tier; what is due next is read from the cold tier"

// reach asks a warm tier that failed whether it answers, once a second at most.
func (m *migrator) reach(ctx context.Context) {
	if m.e.tiers.WarmAnswers.Load() || time.Since(m.asked) < time.Second {
		return
	}
	err := m.e.cfg.Warm.Open(ctx)
	m.asked = time.Now()
	if err != nil && ctx.Err() == nil {
		m.lose(err)
	}
	m.e.tiers.WarmAnswers.Store(err == nil)
}

// fillTo mends the gaps in the warm tier, and fills it to a window ahead of now.
// Its loss costs speed, never a fire: only the cold tier's errors are told.
func (m *migrator) fillTo(ctx context.Context) error {
	e := m.e
	resident.Raise(&m.filled, e.memory.Loaded.Load())
	if !e.tiers.WarmAnswers.Load() {
		return nil
	}
	// First, for it makes room in one that is full.
	if before := e.memory.Loaded.Load() - minute; before > m.dropped {
		m.dropped = before
		if err := e.cfg.Warm.Drop(ctx, before); err != nil {
			m.lose(err)
			return nil
		}
	}
	if time.Since(m.paused) < m.pause {
		return nil
	}
	for ctx.Err() == nil && time.Since(m.gained) >= afterGain {
		g, ok := m.gaps.next(e.memory.Loaded.Load(), m.filled.Load())
		if !ok {
			m.gained = time.Time{}
			break
		}
		whole, err := m.fill(ctx, g.of, g.from, g.to)
		if m.gaps.mended(whole); !whole {
			return err
		}
	}
	end := (e.now()+e.cfg.Window.Milliseconds())/minute*minute + minute
	for m.filled.Load() < end {
		from := max(m.filled.Load(), e.memory.Loaded.Load())
		to := min(from+slice, end)
		resident.Raise(&m.warmed, to)
		if whole, err := m.fill(ctx, engine.AllShards, from, to); !whole {
			return err
		}
		resident.Raise(&m.filled, to)
	}
	m.pause = 0
	if m.gained.IsZero() && e.tiers.WarmAnswers.Load() && e.tiers.WarmFilled() { // else gaps are left
		m.warmTrouble.tellAt(e.log, slog.LevelWarn, cannotUseWarm, nil)
		e.log.Info("the warm tier is filled")
	}
	return nil
}

// fill puts the dues of the shards of a set, as far as the process owns them, in [from, to) into
// their buckets, and declares the minutes whole for these shards.
// What was filled before stays: only these minutes are filled again if it fails.
// The error is not the warm tier's.
func (m *migrator) fill(ctx context.Context, of engine.Set, from, to int64) (whole bool, err error) {
	if err := m.keepAhead(ctx); err != nil {
		return false, err
	}
	of = m.e.memory.Owned().Both(of)
	m.minutes.Refill(of, from, to)
	in, began := newFilling(m.e, from, to), time.Now()
	err = m.e.cfg.Cold.Due(ctx, of, from-1, to-1, func(cs []engine.Candidate) error {
		if err := in.add(ctx, cs); err != nil {
			return err
		}
		if !m.gained.IsZero() {
			in.pages.Wait()
			m.rest(ctx, time.Since(began))
		}
		err := m.keepAhead(ctx)
		began = time.Now()
		return err
	})
	warm, cold := in.end()
	failpoint.Hit("warm-rebuild")
	if err = cmp.Or(err, cold); err == nil && warm == nil {
		if warm = m.e.cfg.Warm.Seal(ctx, of, from, to); warm == nil {
			m.minutes.Refilled(of, from, to)
			return true, nil
		}
	}
	switch {
	case ctx.Err() != nil:
		return false, nil
	case warm == nil:
		return false, fmt.Errorf("cannot fill the hour of %s: %w", time.UnixMilli(from).UTC().Format(time.RFC3339), err)
	}
	if !errors.Is(warm, engine.ErrGap) { // else it lost a part of it meanwhile
		m.lose(warm)
	}
	m.putOff()
	return false, nil
}

// The gaps of a gain are mended slowly, and the calls that the shards owe come first: all nodes that gain
// shards of a dead node mend at the same time. When two nodes had gained 43 shards each, with 33 timers,
// and mended the gaps at once, both processors were busy for 100 ms, and the nodes' own calls of the first
// 250 ms were 6 to 9 ms late at p99. Now these calls are 2 to 7 ms late. Until a minute is mended, its dues
// are read from the cold tier.
const (
	afterGain = 5 * time.Second        // since the first gain that left gaps
	restMost  = 100 * time.Millisecond // after a page
)

// rest lets others have the processors, four times as long as a page has taken, restMost at most,
// or until something is to be done.
func (m *migrator) rest(ctx context.Context, worked time.Duration) {
	select {
	case <-ctx.Done():
	case <-m.more:
	case <-time.After(min(4*worked, restMost)):
	}
}

// pagesAtOnce are the pages of a fill under way: one is taken apart here while the
// warm tier works on the other, and a third is read.
const pagesAtOnce = 2

// filling is a fill of [from, to) under way.
type filling struct {
	e        *Scheduler
	from, to int64
	slots    chan struct{}
	pages    sync.WaitGroup

	mu         sync.Mutex
	warm, cold error // the first of each tier
}

func newFilling(e *Scheduler, from, to int64) *filling {
	return &filling{e: e, from: from, to: to, slots: make(chan struct{}, pagesAtOnce)}
}

// add puts a page into the warm tier, and does not wait for it. The error is of one
// before.
func (f *filling) add(ctx context.Context, cs []engine.Candidate) error {
	f.slots <- struct{}{}
	f.mu.Lock()
	err := errors.Join(f.warm, f.cold)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	cs = slices.Clone(cs) // the page is its reader's again
	f.pages.Go(func() {
		warm, cold := f.e.warm(ctx, cs, f.from, f.to)
		f.mu.Lock()
		f.warm, f.cold = cmp.Or(f.warm, warm), cmp.Or(f.cold, cold)
		f.mu.Unlock()
		<-f.slots
	})
	return nil
}

// end waits for all pages.
func (f *filling) end() (warm, cold error) {
	f.pages.Wait()
	return f.warm, f.cold
}

// putOff puts the next fill off: by a second after the first that failed, by
// twice as long after each that follows, by a minute at most. One that is full is
// not to be filled for ever.
func (m *migrator) putOff() {
	m.pause, m.paused = min(max(2*m.pause, time.Second), time.Minute), time.Now()
}

// warm puts candidates into the buckets of [from, to), one entry a minute. The
// first error is the warm tier's.
func (e *Scheduler) warm(ctx context.Context, cs []engine.Candidate, from, to int64) (error, error) {
	es := make([]engine.Entry, 0, len(cs))
	var raised []engine.Bound
	t := new(engine.Timer) // only the head of each
	for _, c := range cs {
		if c.Definition == nil {
			es = append(es, engine.Entry{ID: c.ID, Due: c.Due})
			continue
		}
		if err := engine.DecodeTimerHead(c.Definition, t); err != nil {
			e.leaveOut(c.ID, err)
			continue
		}
		if t.Status != engine.Enabled {
			continue
		}
		if t.Schedule.OneShot() {
			es = append(es, engine.Entry(c))
			continue
		}
		p, err := plan.Of(t)
		if err != nil {
			e.leaveOut(c.ID, err)
			continue
		}
		es = entries(es, c.ID, c.Definition, &p, from, to)
		if b, ok := e.bound(t, &p, c.Due); ok {
			raised = append(raised, b)
		}
	}
	e.migrator.minutes.Filled(es)
	if err := e.cfg.Warm.Add(ctx, es); err != nil {
		return err, nil
	}
	if len(raised) > 0 {
		return nil, e.cfg.Cold.Raise(ctx, raised)
	}
	return nil, nil
}

// entries appends the first due of each minute in [from, to).
func entries(es []engine.Entry, id engine.TimerID, definition []byte, p *plan.Plan, from, to int64) []engine.Entry {
	for after := from - 1; ; {
		due, ok := p.Next(after)
		if !ok || due >= to {
			return es
		}
		es = append(es, engine.Entry{ID: id, Due: due, Definition: definition})
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
func (e *Scheduler) bound(t *engine.Timer, p *plan.Plan, was int64) (engine.Bound, bool) {
	w, _ := e.memory.Watermark(t.ID)
	if w-was < 60*minute || e.memory.Owns(t.ID) != nil {
		return engine.Bound{}, false
	}
	due, ok := p.Next(w)
	if !ok {
		return engine.Bound{ID: t.ID, Version: t.Version, Finished: true}, !e.memory.IsBusy(t.ID, e.now())
	}
	if t.Schedule.Cron != "" && t.Schedule.TimeZone != "" && t.Schedule.TimeZone != "UTC" {
		due -= zoneMoves
	}
	return engine.Bound{ID: t.ID, Version: t.Version, Due: due}, due-was >= 60*minute
}

// gaps are the minutes whose buckets cannot be trusted, each for some shards: an entry could
// not be added, what was read was not what had been written, or the shards were gained. The
// minutes are read from the cold tier until they are filled anew for these shards.
type gaps struct {
	mu      sync.Mutex
	lost    map[int64]engine.Set // by due / minute
	mending gap                  // what is lost of it meanwhile is in lost again
}

// gap is the minutes of [from, to), lost for some shards.
type gap struct {
	of       engine.Set
	from, to int64
}

// add notes a loss in each minute that begins in [from, to).
func (g *gaps) add(of engine.Set, from, to int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose(gap{of, from, to})
}

// lose is add; mu is held.
func (g *gaps) lose(x gap) {
	for m := x.from / minute; m*minute < x.to; m++ {
		g.lost[m] = g.lost[m].Union(x.of)
	}
}

func (g *gaps) has(at int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, lost := g.lost[at/minute]
	return lost || at >= g.mending.from && at < g.mending.to
}

// next begins to fill the first gap in [from, to), of minutes that are lost for the same
// shards. What is before is over.
func (g *gaps) next(from, to int64) (x gap, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	maps.DeleteFunc(g.lost, func(m int64, _ engine.Set) bool { return m < from/minute })
	for m := from / minute; m*minute < to; m++ {
		of, lost := g.lost[m]
		if lost && !ok {
			x, ok = gap{of: of, from: m * minute, to: m * minute}, true
		}
		if ok && (!lost || of != x.of || x.to-x.from == slice) {
			break
		}
		if ok {
			x.to += minute
			delete(g.lost, m)
		}
	}
	g.mending = x
	return x, ok
}

// mended ends what next began. If the gap is not whole, it is lost as before.
func (g *gaps) mended(whole bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !whole {
		g.lose(g.mending)
	}
	g.mending = gap{}
}

// distrust notes that the warm tier does not have an entry, and wakes who mends it.
func (m *migrator) distrust(x engine.Entry) {
	m.gaps.add(engine.SetOf(x.ID.Shard()), x.Due, x.Due+1)
	m.wake()
}
