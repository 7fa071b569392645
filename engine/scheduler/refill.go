package scheduler

import (
	"context"
	"math"
	"slices"
	"time"

	"xtimer/engine"
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
