package scheduler

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
	"xtimer/engine/resident"
	"xtimer/engine/resume"
)

// resume takes rows of owed into memory: what is due is queued, what has to
// wait goes into the wheel, a range is left to refill, and what belongs to
// another generation or a missing timer is left to ended.
//
// What was read is current, or the notes that were made since read began tell otherwise;
// then it is read again. Rows of a timer that is being changed are taken in when that is
// over: it may be in doubt for as long as the cold tier cannot be written.
//
// byLane: refill has read them; else a row whose lane has no room stays in the cold tier until
// refill reads it.
func (e *Scheduler) resume(ctx context.Context, os []engine.Owed, read *resident.Read, byLane bool) error {
	for part := range slices.Chunk(os, page) {
		again, err := e.resumePage(ctx, part, read, byLane)
		if err != nil {
			return err
		}
		if len(again) > 0 {
			if err := e.resumeAnew(ctx, again, byLane); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// resumeAnew reads rows again, and resumes them.
func (e *Scheduler) resumeAnew(ctx context.Context, os []engine.Owed, byLane bool) error {
	read := e.memory.Reads.Begin()
	defer read.End()
	os, err := e.reread(ctx, os)
	if err != nil {
		return err
	}
	return e.resume(ctx, os, read, byLane)
}

// resumeAll resumes rows that are stored, however often it takes: who would make
// them anew does not know what became of those that have been called meanwhile.
func (e *Scheduler) resumeAll(ctx context.Context, os []engine.Owed, read *resident.Read, byLane bool) error {
	err := e.resume(ctx, os, read, byLane)
	for err != nil && ctx.Err() == nil {
		e.log.Error("cannot resume what is owed; trying again", "error", err)
		process.Sleep(ctx, time.Second)
		err = e.resumeAnew(ctx, os, byLane)
	}
	return ctx.Err()
}

// resumeBusy resumes the rows of tasks that are under way. The tasks that were called last come first, and
// keep their places at limits. A task that was last called before a limit was set has no place there. A call that began
// later than now was made before the clock was set back, and so before all other calls.
func (e *Scheduler) resumeBusy(ctx context.Context, os []engine.Owed, read *resident.Read) error {
	now := e.now()
	called := func(o *engine.Owed) int64 {
		if o.Begun || o.Task == nil || len(o.Task.Attempts) == 0 {
			return math.MaxInt64 // the call was under way at the end
		}
		at := o.Task.Attempts[len(o.Task.Attempts)-1].Started
		if at/1000 > now {
			at -= math.MaxInt64
		}
		return at
	}
	slices.SortStableFunc(os, func(a, b engine.Owed) int { return cmp.Compare(called(&b), called(&a)) })
	return e.resumeAll(ctx, os, read, false)
}

// resumeLater resumes rows when the change of their timer is over, those of several
// pages in order. Refill may have read them, and as many again while the change lasted:
// those whose lane has no room stay in the cold tier, and are read once more.
func (e *Scheduler) resumeLater(os []engine.Owed, change <-chan struct{}) {
	b := &e.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	x := b.later[change]
	if b.later[change] = (laterRows{append(x.rows, os...), append(x.come, e.expect(os), e.memory.SetAside(os))}); len(x.rows) > 0 {
		return
	}
	e.process.Go(func(ctx context.Context) {
		select {
		case <-change:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		x := b.later[change]
		delete(b.later, change)
		b.mu.Unlock()
		defer x.end()
		os := x.rows
		err := e.resumeAnew(ctx, os, false)
		for err != nil && ctx.Err() == nil {
			e.log.Error("cannot resume rows of a timer that was changed; trying again", "error", err)
			process.Sleep(ctx, time.Second)
			err = e.resumeAnew(ctx, os, false)
		}
	})
}

// reread brings rows up to date: without those that
// are in memory, or were and are over.
func (e *Scheduler) reread(ctx context.Context, os []engine.Owed) ([]engine.Owed, error) {
	rows := make(map[engine.Key]*engine.Owed, len(os))
	for i := range os {
		k := os[i].Key
		if !e.memory.Has(k) {
			rows[k] = nil
		}
	}
	var now []engine.Owed
	ends := map[engine.TimerID][2]int64{} // the dues of their rows
	for i := range os {
		k := os[i].Key
		if _, open := rows[k]; open {
			x, ok := ends[k.Timer]
			if !ok {
				x[0] = k.Due
			}
			ends[k.Timer] = [2]int64{min(x[0], k.Due), max(x[1], k.Due)}
		}
	}
	for id, x := range ends {
		err := e.EachRow(ctx, id, x[0]-1, func(o *engine.Owed) bool {
			if _, open := rows[o.Key]; open {
				rows[o.Key] = o
			}
			return o.Key.Due < x[1]
		})
		if err != nil {
			return nil, err
		}
	}
	for i := range os {
		switch row := rows[os[i].Key]; {
		case row == nil:
		case row.Damaged != nil:
			e.leaveOutRow(row)
		default:
			now = append(now, *row)
		}
	}
	return now, nil
}

// resumePage is one page of it; again are rows that are to be read again.
func (e *Scheduler) resumePage(ctx context.Context, os []engine.Owed, read *resident.Read, byLane bool) (again []engine.Owed, err error) {
	now := e.now()
	defs, spent, err := e.DefinitionsOf(ctx, os, now)
	if err != nil {
		return nil, err
	}
	var ready []*resident.Task
	var moved []engine.Owed // to the lane that their timer has now
	later := setAside{changing: map[<-chan struct{}][]engine.Owed{}, of: map[engine.TimerID]<-chan struct{}{}}
	recurring := map[engine.TimerID]*engine.Timer{} // only such a timer has many rows
	for _, o := range os {
		if o.Damaged != nil {
			e.leaveOutRow(&o)
			continue
		}
		def := recurring[o.Key.Timer]
		if b := defs[o.Key.Timer]; def == nil && b != nil {
			if def, err = engine.DecodeTimer(b); err != nil {
				e.leaveOut(o.Key.Timer, err) // its row stays; it must not keep the others from firing
				continue
			}
			if !def.Schedule.OneShot() {
				recurring[o.Key.Timer] = def
			}
		}
		row := resident.Row{Owed: o, Timer: def, Spent: spent[o.Key], Read: read, ByLane: byLane}
		if change, ok := later.of[o.Key.Timer]; ok && row.KeepsOrder() {
			later.add(o, change)
			continue
		}
		fate, t, change, err := e.memory.AddRow(&row, now)
		if err != nil {
			e.leaveOut(def.ID, err)
			continue
		}
		switch fate {
		case resident.RowChanging:
			later.add(o, change)
		case resident.RowOutdated:
			later.add(o, nil)
		case resident.RowEnded:
			e.memory.Former.End(o.Key.Timer, nil, def, now)
		case resident.RowWaits:
			if lane := def.LaneFor(&o); o.Lane != lane {
				o.Lane = lane
				moved = append(moved, o)
			}
		}
		if t != nil {
			ready = append(ready, t)
		}
	}
	e.memory.Enqueue(ready)
	for ch, os := range later.changing {
		e.resumeLater(os, ch)
	}
	if len(moved) == 0 {
		return later.again, nil
	}
	if err := e.changeLanes(ctx, moved); err != nil {
		return nil, err
	}
	// Refill may have read a lane to its end before its row was stored there.
	return later.again, e.resumeAnew(ctx, moved, false)
}

// setAside has the rows of a page that are resumed later, and their timers.
type setAside struct {
	changing map[<-chan struct{}][]engine.Owed // by what they wait for
	again    []engine.Owed                     // they are read again
	of       map[engine.TimerID]<-chan struct{}
}

// add sets a row aside until a change is over; nil: the row is read again.
func (x *setAside) add(o engine.Owed, change <-chan struct{}) {
	if x.of[o.Key.Timer] = change; change == nil {
		x.again = append(x.again, o)
	} else {
		x.changing[change] = append(x.changing[change], o)
	}
}

// changeLanes stores rows in other lanes. Their timers are claimed meanwhile: otherwise
// another reader could take a row into memory, the task could be called and its row be
// removed, and this commit would bring the row back.
func (e *Scheduler) changeLanes(ctx context.Context, os []engine.Owed) error {
	claims := map[engine.TimerID]func(){}
	defer func() {
		for _, release := range claims {
			release()
		}
	}()
	lanes := map[engine.Key]engine.Lane{}
	var mine []engine.Owed
	for _, o := range os {
		id := o.Key.Timer
		if claims[id] == nil {
			release, change := e.memory.TryClaimRows(id)
			if change != nil {
				e.resumeLater([]engine.Owed{o}, change)
				continue
			}
			claims[id] = release
		}
		mine, lanes[o.Key] = append(mine, o), o.Lane
	}
	return e.storeInLanes(ctx, mine, lanes)
}

// storeInLanes is changeLanes for rows of timers that the caller has claimed.
func (e *Scheduler) storeInLanes(ctx context.Context, os []engine.Owed, lanes map[engine.Key]engine.Lane) error {
	mine, err := e.reread(ctx, os)
	if err != nil || len(mine) == 0 {
		return err
	}
	for i := range mine {
		mine[i].Lane = lanes[mine[i].Key]
	}
	return e.cfg.Cold.Settle(ctx, &engine.Settlement{Owner: e.cfg.Node, Owe: mine})
}

// moveRows stores the rows of memory.Moving in the present lanes of their timers, a page of each timer in turns, until
// ctx ends. What is left by then is moved by refill, or, of a queue, by the next start.
func (e *Scheduler) moveRows(ctx context.Context) error {
	moving := &e.memory.Moving
	return inTurns(ctx, moving, func(x *resident.MovingTimer) (looked bool) {
		looked, more, err := e.movePage(ctx, x)
		switch {
		case err != nil && ctx.Err() == nil:
			e.log.Error("cannot move rows of a timer that was changed; trying again", "timer", x.ID, "error", err)
			process.Sleep(ctx, time.Second)
			moving.Add(x)
		case more:
			moving.Add(x)
		default:
			e.memory.Moved(x.ID)
		}
		return looked
	})
}

// movePage moves a page of the rows of a timer. looked is false while the timer is being changed.
func (e *Scheduler) movePage(ctx context.Context, x *resident.MovingTimer) (looked, more bool, err error) {
	if e.memory.Owns(x.ID) != nil {
		return true, false, nil // another node has recovered them
	}
	release, change := e.memory.TryClaimRows(x.ID)
	if change != nil {
		return false, true, nil
	}
	defer release()
	t, err := e.cfg.Cold.Timer(ctx, x.ID)
	if errors.Is(err, engine.ErrNotFound) {
		return true, false, nil
	} else if err != nil {
		return true, true, err
	}
	rows, err := e.cfg.Cold.OwedPage(ctx, x.ID, x.After, page)
	if err != nil {
		return true, true, err
	}
	var os []engine.Owed
	lanes, first := map[engine.Key]engine.Lane{}, map[engine.Lane]engine.Place{}
	for _, o := range rows {
		if lane := t.LaneFor(&o); isStray(t, &o) && (o.To == 0 || !e.memory.IsTurning(o.Key)) {
			os, lanes[o.Key] = append(os, o), lane
			if at, ok := first[lane]; !ok || o.Place().Compare(at) < 0 {
				first[lane] = o.Place()
			}
		}
	}
	if err := e.storeInLanes(ctx, os, lanes); err != nil {
		return true, true, err
	}
	for lane, at := range first {
		e.memory.Lanes.Of(lane).Waits(at)
	}
	if len(rows) > 0 {
		x.After = rows[len(rows)-1].Key.Due
	}
	return true, len(rows) == page, nil
}

// isStray reports whether a row is in a former lane of its timer.
func isStray(t *engine.Timer, o *engine.Owed) bool {
	return o.Damaged == nil && o.Generation == t.Generation && o.Lane != t.LaneFor(o)
}

// decider decides what becomes of what a pause held.
func (e *Scheduler) decider() *resume.Decider {
	return resume.New(resume.Config{
		Cold: e.cfg.Cold, Memory: e.memory, Reader: e.Reader, Tally: e.tally, Node: e.cfg.Node, Now: e.now, Log: e.log, LeaveOut: e.leaveOut,
		Resume: func(ctx context.Context, rows []engine.Owed, read *resident.Read) error {
			return e.resumeAll(ctx, rows, read, false)
		},
	})
}

// backlog has the rows, of any kind, that wait for the end of their timer's change.
type backlog struct {
	mu      sync.Mutex
	later   map[<-chan struct{}]laterRows
	damaged damagedRows
}

// laterRows are those that wait for the end of one change; come: see expect.
type laterRows struct {
	rows []engine.Owed
	come []func()
}

func (x *laterRows) end() {
	for _, f := range x.come {
		f()
	}
}

// expect notes that rows are on their way to memory, until come is called.
func (e *Scheduler) expect(os []engine.Owed) (come func()) {
	x := laterRows{}
	first := map[engine.Lane]*engine.Owed{}
	for i := range os {
		if f := first[os[i].Lane]; f == nil || os[i].NotBefore < f.NotBefore {
			first[os[i].Lane] = &os[i]
		}
	}
	for _, o := range first {
		x.come = append(x.come, e.memory.Expect(nil, o))
	}
	return x.end
}
