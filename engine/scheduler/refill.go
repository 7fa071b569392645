package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/resident"
)

const (
	// refillTo is how many tasks of a spilled lane refill keeps in memory, and
	// refillPage how many rows it reads at a time. A lane with 1,000 calls in flight,
	// each of 100 ms, has 1 s of them.
	refillTo   = 10_000
	refillPage = 1_000
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
			sleep(ctx, refillEvery)
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
			sleep(ctx, time.Second)
		}
		return read
	}
	return read
}

// refillLane reads a page of a lane, and gives the lane another turn unless that was
// the end of it.
func (e *Scheduler) refillLane(ctx context.Context, l *resident.Lane) (read int, err error) {
	// Rows that may be tried before this instant are brought by refill alone: see
	// resumeTo, which raises it before it reads.
	upTo := e.resuming.Load()
	l.Mu.Lock()
	room := min(refillTo-l.Resident, l.Room(), refillPage)
	from := l.Next
	if l.Lowest.Compare(from) < 0 {
		from = l.Lowest
	}
	if room > 0 {
		l.Lowest = resident.LastPlace
	} else {
		l.Staying = false // what is to leave takes the room: it leaves first
	}
	staying := l.Staying
	l.Mu.Unlock()
	if room <= 0 {
		e.memory.Lanes.Turns.Add(l)
		return 0, nil
	}
	since := time.Now()
	rows, err := e.cfg.Cold.OwedIn(ctx, l.Id, from, upTo-1, room)
	if err == nil {
		read, err = e.bring(ctx, rows, room, since)
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	switch {
	case err != nil:
		if from.Compare(l.Lowest) < 0 {
			l.Lowest = from
		}
		return 0, err // the caller gives it another turn
	case len(rows) == room:
		l.Next, l.Staying = rows[len(rows)-1].Place(), false
	case staying && l.Lowest == resident.LastPlace && upTo == e.resuming.Load():
		if e.unspill(l) {
			return read + 1, nil
		}
	default:
		// The end, unless a row was stored since: looked at again when none is any more.
		if l.Staying = true; len(rows) > 0 {
			from = rows[len(rows)-1].Place()
		}
		l.Next = from
	}
	e.memory.Lanes.Turns.Add(l)
	return read, nil
}

// bring takes the rows of a page into memory, and the first dues of those that are
// ranges. taken is how many of the rows.
func (e *Scheduler) bring(ctx context.Context, rows []engine.Owed, room int, read time.Time) (taken int, err error) {
	var singles, ranges []engine.Owed
	for _, o := range rows {
		if o.To != 0 {
			ranges = append(ranges, o)
		} else {
			singles = append(singles, o)
		}
	}
	if err := e.resumeAll(ctx, singles, read, true); err != nil {
		return 0, err
	}
	unfolded, err := e.unfold(ctx, ranges, room-len(singles))
	return len(singles) + unfolded, err
}

// unspill queues what was to leave, in order, with all that comes due meanwhile, and
// lets the lane's dues wait in memory again, unless a row joins meanwhile. The caller
// holds the mu of the lane; unspill gives it back while it takes the shards' locks,
// which come first.
func (e *Scheduler) unspill(l *resident.Lane) bool {
	for len(l.Leaving) > 0 {
		ts := slices.SortedFunc(maps.Keys(l.Leaving), func(a, b *resident.Task) int { return a.Key.Compare(b.Key) })
		l.Mu.Unlock()
		ready := ts[:0]
		for _, t := range ts {
			sh := e.memory.ShardOf(t.Key.Timer)
			sh.Mu.Lock()
			if t.State == resident.Leaving { // else it was cancelled
				t.Lane.Left(t)
				t.Await(e.now())
				ready = append(ready, t)
			}
			sh.Mu.Unlock()
		}
		e.memory.Enqueue(ready)
		l.Mu.Lock()
	}
	if l.Lowest != resident.LastPlace {
		return false
	}
	l.Spilled, l.Staying = false, false
	return true
}
