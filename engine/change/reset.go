package change

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// A clock that was ahead for some seconds leaves a watermark that is ahead for hours once
// the clock is right again:
//
//	now                                      W
//	 ┼── dues that were skipped, or called ──┼──►
//
// Timers that were there rest until W, for a clock that was set back by mistake must not
// have them call again. Which clock was wrong, a person has to say: ResetClock says that
// it was the former one.

// ResetClock makes the dues of all timers count again that are later than now and not
// later than the watermark, unless their keys were used. It is a bulk operation over the
// timers that have such dues.
func (e *Maker) ResetClock(ctx context.Context, dryRun bool, part Part) (Operation, error) {
	_, w := e.memory.Watermarks()
	op, err := e.StartBulk(ctx, Bulk{Action: ResetClock, DryRun: dryRun, Until: w, Part: part})
	if err == nil && !dryRun && op.Total == 0 {
		e.noteReset(w)
	}
	return op, err
}

// restingAtOnce is how many definitions are read at a time: each may have a body of 512 KiB.
const restingAtOnce = 32

// selectResting selects the timers that have dues later than now and not later than the
// watermark.
func (e *Maker) selectResting(ctx context.Context) ([]engine.Key, error) {
	var keys []engine.Key
	now := e.now()
	_, w := e.memory.Watermarks()
	if w <= now {
		return nil, nil
	}
	for after := ""; ; {
		ts, next, err := e.cfg.Cold.Timers(ctx, engine.TimerFilter{}, after, restingAtOnce)
		if err != nil {
			return nil, err
		}
		for _, t := range ts {
			p, err := plan.Of(t)
			if err != nil || t.Status == engine.Disabled {
				continue
			}
			if due, ok := p.Next(now); ok && due <= w {
				keys = append(keys, engine.Key{Timer: t.ID})
			}
		}
		if after = next; after == "" {
			return keys, nil
		}
	}
}

// resetOne does it for one timer; doing it again changes nothing.
func (e *Maker) resetOne(ctx context.Context, id engine.TimerID) error {
	t, err := e.cfg.Cold.Timer(ctx, id)
	switch {
	case err != nil:
		return err
	case t.Status == engine.Finished:
		return e.revive(ctx, id)
	}
	return e.recount(ctx, id)
}

// revive enables a timer that was finished by a clock that was ahead.
func (e *Maker) revive(ctx context.Context, id engine.TimerID) error {
	_, err := e.change(ctx, id, 0, func(t *engine.Timer, now int64) (*edit, error) {
		if t.Status != engine.Finished || t.LastDue <= now {
			return nil, nil
		}
		from, err := e.countFrom(ctx, t, now)
		if err != nil || from >= t.LastDue {
			return nil, err
		}
		n := nextVersion(ctx, t, now)
		n.Status, n.Reason, n.Generation = engine.Enabled, "", t.Generation+1
		n.ValidFrom = max(t.ValidFrom, from)
		return &edit{timer: &n, reason: engine.ReasonClockReset}, nil
	})
	return err
}

// recount owes the dues of a timer in (now, W] whose keys were not used: it commits the
// row, and takes it into memory. If the clock is set meanwhile, it is done again by the
// clock as it is then.
func (e *Maker) recount(ctx context.Context, id engine.TimerID) error {
	for {
		steps := e.memory.Steps.Load()
		stepped := func() bool { return e.memory.Steps.Load() != steps }
		if err := e.recountBy(ctx, id, stepped); err != nil || !stepped() {
			return err
		}
	}
}

func (e *Maker) recountBy(ctx context.Context, id engine.TimerID, stepped func() bool) error {
	release, err := e.memory.Claim(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	if err := e.memory.AwaitDecision(ctx, id); err != nil {
		return err
	}
	if err := e.memory.AwaitParted(ctx, id); err != nil { // the new range may have the key of a shared row
		return err
	}
	defer e.memory.Thaw(id)
	// No due of its range may come, be called, settled and forgotten between the look at
	// what was called and the new range: the new range would call that due again.
	if err := e.memory.Freeze(ctx, id); err != nil {
		return err
	}
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil {
		return err
	}
	now, w := e.now(), e.memory.FinishedTo(id)
	p, err := plan.Of(t)
	if err != nil || t.Status != engine.Enabled || w <= now {
		return nil // see leaveOut
	}
	s, err := e.oweAgain(ctx, t, &p, now, w)
	if err != nil || len(s.Owe) == 0 || stepped() {
		return err
	}
	if err := e.settleRecount(s); err != nil {
		return err
	}
	return e.addAgain(t, s.Owe)
}

// oweAgain is the settlement that owes the dues of a timer in (now, w] that were not
// called, in place of a range that it may have: the records of these dues, and those
// that count some of them, give them up.
func (e *Maker) oweAgain(ctx context.Context, t *engine.Timer, p *plan.Plan, now, w int64) (*engine.Settlement, error) {
	s := &engine.Settlement{Owner: e.cfg.Node}
	rows, err := e.RowsOf(ctx, t.ID)
	if err != nil {
		return nil, err
	}
	after := now
	for i := range rows {
		o := &rows[i]
		if o.To == engine.Endless && o.Generation == t.Generation {
			return &engine.Settlement{}, nil // they count: the timer is behind
		}
		if o.To != 0 && o.Generation == t.Generation {
			after, w = min(after, o.Key.Due-1), max(w, o.To)
			s.Pay = append(s.Pay, o.Key)
		}
	}
	if to, err := e.provable(ctx, t, now, w); err != nil {
		return nil, err
	} else if w = to; w <= now {
		return &engine.Settlement{}, nil
	}
	if s.Tasks, err = e.uncalled(ctx, t, p, now, w); err != nil {
		return nil, err
	}
	if p.OneShot() {
		for i := range s.Tasks { // it has one: else it was called, or is under way
			s.Owe = append(s.Owe, policy.Row(t, s.Tasks[i].Key.Due))
		}
		return s, nil
	}
	s.Owe, err = policy.Ranges(t, p, after, w, func(k engine.Key) (bool, error) { return e.HadTask(ctx, k) })
	return s, err
}

// uncalled are the records of the standing generation of a timer that say that dues in
// (now, to] were not called, as they are without those: of a run that began earlier its
// head is left, of all others the first due, which another record replaces when it is called.
func (e *Maker) uncalled(ctx context.Context, t *engine.Timer, p *plan.Plan, now, to int64) (rs []engine.Record, err error) {
	is := func(r *engine.Task) bool {
		return r.Status.Final() && !policy.IsUsed(r) && r.Generation == t.Generation && r.Reason != engine.ReasonClockReset
	}
	add := func(r *engine.Task) {
		rs = append(rs, engine.Record{Key: r.Key, Status: r.Status, Encoded: engine.EncodeTask(r), Alone: p.OneShot()})
	}
	run, err := e.RunBefore(ctx, t.ID, now)
	if err != nil {
		return nil, err
	}
	if run != nil && is(run) {
		run.DueLast, _ = p.Prev(now)
		run.Count = p.Count(run.Key.Due-1, now)
		add(run)
	}
	f := engine.TaskFilter{Timer: t.ID, From: now + 1, To: to + 1}
	for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
		var ts []*engine.Task
		if ts, before, err = e.cfg.Cold.Tasks(ctx, f, before, 1000); err != nil {
			return nil, err
		}
		for _, r := range ts {
			if is(r) {
				r.DueLast, r.Count, r.Reason = r.Key.Due, 1, engine.ReasonClockReset
				add(r)
			}
		}
	}
	return rs, nil
}

// recordsAtOnce is how many records are stored in one transaction.
const recordsAtOnce = 20_000

// settleRecount commits a settlement, however often it takes: whether one that seemed to
// fail was made is not known, and made twice it is as made once.
func (e *Maker) settleRecount(s *engine.Settlement) error {
	rest := s.Tasks
	for {
		p := *s
		p.Tasks = rest[:min(recordsAtOnce, len(rest))]
		err := e.cfg.Cold.Settle(e.process.Context(), &p)
		switch {
		case err == nil:
			if rest = rest[len(p.Tasks):]; len(rest) == 0 {
				return nil
			}
		case !inDoubt(err) || e.process.Context().Err() != nil:
			return err
		default:
			process.Sleep(e.process.Context(), time.Second)
		}
	}
}

// addAgain takes the rows of a claimed timer into memory, in place of its former range.
func (e *Maker) addAgain(t *engine.Timer, os []engine.Owed) error {
	spent, err := e.SpentOf(e.process.Context(), t, os)
	for err != nil && e.process.Context().Err() == nil {
		e.log.Error("cannot read which dues were called; trying again", "timer", t.ID, "error", err)
		process.Sleep(e.process.Context(), time.Second)
		spent, err = e.SpentOf(e.process.Context(), t, os)
	}
	if err != nil {
		return err
	}
	e.memory.NoteChanged(t.ID)
	return e.memory.ReplaceRange(t, os, spent)
}

// resetFile, in Config.OperationsDir, has the watermark of the last ResetClock, so that a
// start does not warn of it again.
const resetFile = "clock-reset"

// noteReset remembers that dues up to a watermark count again.
func (e *Maker) noteReset(w int64) {
	resident.Raise(&e.memory.ClockReset, w)
	if e.cfg.OperationsDir == "" {
		return
	}
	err := os.MkdirAll(e.cfg.OperationsDir, 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(e.cfg.OperationsDir, resetFile), strconv.AppendInt(nil, w, 10), 0o600)
	}
	if err != nil {
		e.log.Warn("cannot note that the clock was reset; the next start warns again that it is behind", "error", err)
	}
}

// ReadReset reads what noteReset noted.
func (e *Maker) ReadReset() {
	if e.cfg.OperationsDir == "" {
		return
	}
	b, err := os.ReadFile(filepath.Join(e.cfg.OperationsDir, resetFile))
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	w, bad := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err = errors.Join(err, bad); err != nil {
		e.log.Warn("cannot read whether the clock was reset", "error", err)
		return
	}
	resident.Raise(&e.memory.ClockReset, w)
}
