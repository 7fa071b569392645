package scheduler

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/plan"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// admit puts the timers of entries into memory, and their first due from an instant on into the wheel, in pages with a breath between them: loading must
// not make firing late.
func (m *migrator) admit(ctx context.Context, es []engine.Entry, from int64, read *resident.Read) error {
	for len(es) > 0 {
		n := min(page, len(es))
		failpoint.Hit("mid-load")
		busy, err := m.e.admit(ctx, es[:n], from, false, read)
		if err != nil && busy.len() == n {
			return err
		}
		m.e.admitLater(busy, from)
		if es = es[n:]; len(es) > 0 {
			time.Sleep(time.Millisecond)
		}
		m.e.awaitDecisions(ctx, int64(maxDecided))
	}
	return ctx.Err()
}

// busy are entries that cannot be admitted yet, by the change of their timer: they wait
// until it has ended. nil: what was read is out of date, or was not read.
type busy map[<-chan struct{}][]engine.Entry

func (b busy) len() (n int) {
	for _, es := range b {
		n += len(es)
	}
	return n
}

// admitLater admits timers when the changes that are being made of them are over, each
// when its own is: one may be in doubt for long. It keeps the watermark back until then.
func (e *Scheduler) admitLater(b busy, from int64) {
	for change, es := range b {
		h := e.memory.Pins.Pin(from - 1)
		e.process.Go(func(ctx context.Context) {
			if change != nil {
				select {
				case <-change:
				case <-ctx.Done():
				}
			}
			read := e.memory.Reads.Begin()
			still, err := e.admit(ctx, es, from, false, read)
			read.End()
			if ctx.Err() != nil {
				return // the pin stays: the next start finds what is due
			}
			if err != nil {
				e.log.Error("cannot admit timers that were being changed; trying again", "error", err)
				process.Sleep(ctx, time.Second)
			}
			e.admitLater(still, from)
			e.memory.Pins.Release(h)
		})
	}
}

// admit is one page. own tells that the caller is the one who changes these timers; still
// are those that are not admitted yet.
func (e *Scheduler) admit(ctx context.Context, es []engine.Entry, from int64, own bool, read *resident.Read) (still busy, err error) {
	defs := make([][]byte, len(es))
	var ids []engine.TimerID
	var places []int
	var away error
	still = busy{}
	for i, x := range es {
		if defs[i] = x.Definition; defs[i] == nil && !e.memory.Scheduled(x.ID) {
			ids, places = append(ids, x.ID), append(places, i)
		}
	}
	if len(ids) > 0 {
		var found [][]byte
		found, away = e.cfg.Cold.Load(ctx, ids)
		for j, i := range places {
			if away != nil {
				still[nil], defs[i] = append(still[nil], es[i]), missing
			} else {
				defs[i] = found[j]
			}
		}
	}
	for i, x := range es {
		if away != nil && defs[i] != nil && len(defs[i]) == 0 {
			continue
		}
		var t *engine.Timer
		if defs[i] != nil {
			if t, err = engine.DecodeTimer(defs[i]); err != nil && x.Definition != nil {
				still[nil] = append(still[nil], engine.Entry{ID: x.ID, Due: x.Due}) // the cold tier may have it whole
				continue
			} else if err != nil {
				e.leaveOut(x.ID, err)
				continue
			}
		}
		again, change, err := e.memory.Load(x.ID, t, from, own, read)
		if err != nil {
			e.leaveOut(x.ID, err)
			continue
		}
		if again {
			still[change] = append(still[change], engine.Entry{ID: x.ID, Due: x.Due}) // without its definition: it is read anew
		}
	}
	return still, away
}

// addWarm puts entries of new or changed timers into the warm tier. Its loss
// costs speed only: a minute that cannot be trusted is built from the cold tier.
// own: the caller is who creates or changes these timers.
func (e *Scheduler) addWarm(ctx context.Context, es []engine.Entry, own bool) {
	if len(es) == 0 {
		return
	}
	e.migrator.minutes.Add(es)
	lost := !e.tiers.WarmAnswers.Load() // nobody who creates a timer waits for it then
	if !lost {
		if err := e.cfg.Warm.Add(ctx, es); err != nil {
			e.log.Warn("cannot add to the warm tier; the minutes concerned are filled anew", "error", err)
			if lost = true; ctx.Err() == nil { // else it was the caller who left
				e.migrator.lose(err)
			}
		}
	}
	if lost {
		for i := range es {
			e.migrator.distrust(es[i])
		}
	}
	// The migrator may have loaded a minute since its horizon was looked at:
	// it raises the horizon before it reads the bucket, so looking again after
	// the entry is in finds every one that it may have missed.
	horizon := e.memory.Horizon.Load()
	for _, x := range es {
		if x.Due < horizon {
			read := e.memory.Reads.Begin()
			still, err := e.admit(ctx, []engine.Entry{x}, x.Due, own, read)
			read.End()
			e.admitLater(still, x.Due)
			if err != nil {
				e.log.Error("cannot admit a timer; the next start will", "timer", x.ID, "error", err)
			}
		}
	}
}

// entriesOf are what the warm tier is to have of a timer that is new or changed, and due
// next at an instant: its entries from another instant on.
func (m *migrator) entriesOf(t *engine.Timer, p *plan.Plan, next, from int64) []engine.Entry {
	if warmed := m.warmed.Load(); next < warmed {
		return entries(nil, t.ID, engine.Carried(t), p, from, warmed)
	}
	return nil
}

// missing stands for a definition that could not be read.
var missing = []byte{}

const (
	// deferredEvery is how often what is deferred is looked at.
	deferredEvery = 20 * time.Millisecond
	// idleTurns is for how many times as long as a turn took nothing more is taken of a lane
	// that has enough in memory. A million became rows in 10 s that took 1.4 of 2 cores, in
	// which a neighbour's calls were 6.4 ms late at p99; now in minutes of 0.2 cores, 1.0 ms
	// (0.4 without them).
	idleTurns = 7
	// idlePage is how many are taken in such a turn: it is over in 2 ms.
	idlePage = 64
	// mostIdle bounds the rest, and half of it the wait for decisions: the tier may be slow, or a
	// change in doubt, and a lane that may call soon waits for its turn behind.
	mostIdle = 400 * time.Millisecond
)

// admitDeferred brings one-shots into memory, or into rows, that wait for room in lanes that
// are held, until ctx ends: see resident.Deferred. A lane with room does not wait while the turns of other lanes rest.
func (e *Scheduler) admitDeferred(ctx context.Context) error {
	turns := resident.NewDeferredTurns(e.memory)
	var rested time.Time // until then nothing becomes a row
	for ctx.Err() == nil {
		if turns.IsEmpty() {
			select {
			case <-ctx.Done():
			case <-e.memory.Deferred.More():
			}
			continue
		}
		began, now := time.Now(), e.now()
		rows, rest := idlePage, rested.Sub(began)
		if rest > 0 {
			rows = 0
		}
		es := turns.Take(now, page, rows)
		if len(es) == 0 {
			if rest <= 0 {
				rest = deferredEvery
			}
			process.Sleep(ctx, min(rest, deferredEvery))
			continue
		}
		if e.admitHeld(ctx, es); ctx.Err() == nil {
			turns.Done()
		}
		switch {
		case turns.IsHurried():
			process.Sleep(ctx, time.Since(began)) // half of a core
		case rows == 0: // the lane had room, for a few
			process.Sleep(ctx, min(idleTurns*time.Since(began), deferredEvery))
		default:
			limited, cancel := context.WithTimeout(ctx, mostIdle/2)
			e.awaitDecisions(limited, 1)
			cancel()
			rested = time.Now().Add(min(idleTurns*time.Since(began), mostIdle))
		}
	}
	return nil
}

// admitHeld brings one-shots into memory, or into rows. It tries again until that succeeds or ctx ends.
func (e *Scheduler) admitHeld(ctx context.Context, es []engine.Entry) {
	for ctx.Err() == nil {
		read := e.memory.Reads.Begin()
		err := e.migrator.admit(ctx, es, es[0].Due, read)
		read.End()
		if err == nil || ctx.Err() != nil {
			return
		}
		e.log.Error("cannot read one-shots that are held; trying again", "error", err)
		process.Sleep(ctx, time.Second)
	}
}
