package scheduler

import (
	"context"
	"math"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

const (
	// refillEvery is how long refill waits after a round that read nothing: the lanes
	// have no room, or their rows are still to be stored.
	refillEvery = 20 * time.Millisecond
)

// refill brings the rows of spilled lanes back into memory, a page of each lane in
// turns, until ctx ends. What stood at the start comes this way as well.
func (e *Scheduler) refill(ctx context.Context) error {
	turns := &e.memory.Lanes.Turns
	for ctx.Err() == nil {
		list := turns.Take()
		if len(list) == 0 {
			select {
			case <-ctx.Done():
			case <-turns.More:
			}
			continue
		}
		if read := e.refillRound(ctx, list); read == 0 {
			process.Sleep(ctx, refillEvery)
		}
	}
	return nil
}

// refillRound gives each lane a turn.
func (e *Scheduler) refillRound(ctx context.Context, list []*resident.Lane) (read int) {
	for i, l := range list {
		n, err := e.refillLane(ctx, l)
		read += n
		if err == nil {
			continue
		}
		for _, l := range list[i:] {
			e.memory.Lanes.Turns.Add(l)
		}
		if ctx.Err() == nil {
			e.log.Error("cannot read what waits; trying again", "error", err)
			process.Sleep(ctx, time.Second)
		}
		return read
	}
	return read
}

// refillLane reads a page of a lane, and gives the lane another turn unless that was
// the end of it.
func (e *Scheduler) refillLane(ctx context.Context, l *resident.Lane) (read int, err error) {
	turn := e.memory.BeginTurn(l)
	if turn.Room <= 0 {
		e.memory.Lanes.Turns.Add(l)
		return 0, nil
	}
	begun := e.memory.Reads.Begin()
	defer begun.End()
	rows, err := e.cfg.Cold.OwedIn(ctx, e.memory.Owned(), l.ID, turn.From, max(turn.UpTo, turn.Ahead)-1, turn.Rows)
	turn.Next = math.MaxInt64
	if i := slices.IndexFunc(rows, func(o engine.Owed) bool { return o.NotBefore >= turn.UpTo }); i >= 0 {
		rows, turn.Next = rows[:i], rows[i].NotBefore
	}
	made := 0
	if err == nil {
		read, made, err = e.bring(ctx, rows, turn.Room, begun)
	}
	if err != nil {
		l.Fail(turn)
		return 0, err // the caller gives it another turn
	}
	if e.memory.EndTurn(l, turn, rows, read, made) {
		return read + 1, nil
	}
	e.memory.Lanes.Turns.Add(l)
	return read, nil
}

// bring takes the rows of a page into memory, and the first dues of those that are
// ranges. taken is how many of the rows, and made how many tasks.
func (e *Scheduler) bring(ctx context.Context, rows []engine.Owed, room int, read *resident.Read) (taken, made int, err error) {
	var singles, ranges []engine.Owed
	for _, o := range rows {
		if o.To != 0 {
			ranges = append(ranges, o)
		} else {
			singles = append(singles, o)
		}
	}
	if err := e.resumeAll(ctx, singles, read, true); err != nil {
		return 0, 0, err
	}
	unfolded, made, err := e.unfold(ctx, ranges, room-len(singles))
	return len(singles) + unfolded, len(singles) + made, err
}

// unfold brings the first dues of ranges into memory that the lane has room for. done is
// how many of the ranges have had their turn, and made how many tasks came of them.
func (e *Scheduler) unfold(ctx context.Context, ranges []engine.Owed, room int) (done, made int, err error) {
	read := len(ranges)
	ranges = slices.DeleteFunc(ranges, func(o engine.Owed) bool { return e.memory.IsTurning(o.Key) }) // they need no turn
	n := min(len(ranges), max(room/unfoldTurn, 1), unfoldRanges)
	if n == 0 {
		return read, 0, nil
	}
	e.standAgain(ranges[n:])
	done, made, err = e.unfoldPart(ctx, ranges[:n], max(room/n, unfoldTurn))
	return read - len(ranges) + done, made, err
}

// standAgain has refill come back to ranges.
func (e *Scheduler) standAgain(os []engine.Owed) {
	for i := range os {
		e.memory.Lanes.Of(os[i].Lane).Waits(os[i].Place())
	}
}

// timerRange is a range with its timer. The clock and the watermark are read when mayUnfold admits the range: before
// memory and the cold tier are asked for its dues.
type timerRange struct {
	engine.Owed
	timer             *engine.Timer
	plan              plan.Plan
	now               int64
	settled, settling int64 // see resident.Memory.Watermark
}

// claim claims the timers of ranges. It returns those that may unfold now.
func (u *unfolding) claim(ctx context.Context, os []engine.Owed) (found []timerRange, err error) {
	var mine []engine.Owed
	var ids []engine.TimerID
	for _, o := range os {
		f, change := u.e.memory.TryClaimRows(o.Key.Timer) // a change would not know the new rows
		if change != nil {
			u.e.resumeLater([]engine.Owed{o}, change)
			continue
		}
		mine, ids, u.claims = append(mine, o), append(ids, o.Key.Timer), append(u.claims, f)
	}
	defs, err := u.e.cfg.Cold.Load(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, o := range mine {
		r, ok := u.read(defs[i], o)
		if ok {
			if ok, err = u.mayUnfold(ctx, &r); err != nil {
				return nil, err
			}
		}
		if ok {
			found = append(found, r)
		}
	}
	return found, nil
}

// read reads the timer of a range.
func (u *unfolding) read(definition []byte, o engine.Owed) (r timerRange, ok bool) {
	var t *engine.Timer
	if definition != nil {
		var err error
		if t, err = engine.DecodeTimer(definition); err != nil {
			u.e.leaveOut(o.Key.Timer, err)
			return r, false // its row stays
		}
		u.e.memory.Lanes.Identify(t)
	}
	if t == nil || t.Generation != o.Generation {
		u.e.memory.Former.End(o.Key.Timer, nil, t, u.e.now())
		return r, false
	}
	p, err := plan.Of(t)
	if err != nil {
		u.e.leaveOut(t.ID, err)
		return r, false // its row stays
	}
	return timerRange{Owed: o, timer: t, plan: p}, true
}

// mayUnfold reports whether a range may unfold now.
func (u *unfolding) mayUnfold(ctx context.Context, r *timerRange) (bool, error) {
	o, t, memory := r.Owed, r.timer, u.e.memory
	if memory.IsTurning(o.Key) {
		return false, nil // the wheel goes through it already
	}
	if memory.IsDeciding(t.ID) || memory.FollowsRange(o.Key) {
		u.waits = append(u.waits, o) // it may be of the decision, which will be stored once more: see Decisions.Stored
		return false, nil
	}
	if held := &memory.Backlogs; held.IsOpen(t, &o, u.e.now()) {
		held.Add(t.ID) // see package resume
		return false, nil
	}
	if t.Overlap == engine.OverlapQueue {
		// What is left of an earlier range has a place behind this one, and where shards were
		// just gained, refill may read the range first.
		later, err := u.isLater(ctx, o)
		if err != nil {
			return false, err
		}
		if later {
			u.waits = append(u.waits, o)
			return false, nil
		}
	}
	r.now = u.e.now()
	if o.To == engine.Endless {
		u.pins = append(u.pins, memory.Pins.Pin(r.now)) // until the timer's dues come through the wheel
	}
	if !memory.IsJudged(t.ID) {
		u.waits = append(u.waits, o)
		return false, nil
	}
	r.settled, r.settling = memory.Watermark(t.ID)
	return true, nil
}

// isLater reports whether the timer of a range has an earlier range, or an earlier row that is
// not in memory.
func (u *unfolding) isLater(ctx context.Context, o engine.Owed) (later bool, err error) {
	inMemory := u.e.memory.TaskDues(o.Key.Timer, -1, o.Key.Due-1) // first: what ends meanwhile has no row
	inMemory = inMemory.Ordered()
	err = u.e.EachRow(ctx, o.Key.Timer, -1, func(x *engine.Owed) bool {
		if x.Key.Due >= o.Key.Due {
			return false
		}
		later = x.To != 0 || x.Generation == o.Generation && !inMemory.Has(x.Key.Due) && x.Place().Compare(o.Place()) < 0
		return !later
	})
	return later, err
}
