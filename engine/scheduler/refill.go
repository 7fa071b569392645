package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
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
	turns := &e.lanes.turns
	for ctx.Err() == nil {
		list := turns.take()
		if len(list) == 0 {
			select {
			case <-ctx.Done():
			case <-turns.more:
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
func (e *Scheduler) refillRound(ctx context.Context, list []*laneMemory) (read int) {
	for i, l := range list {
		n, err := e.refillLane(ctx, l)
		read += n
		if err == nil {
			continue
		}
		for _, l := range list[i:] {
			e.lanes.turns.add(l)
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
func (e *Scheduler) refillLane(ctx context.Context, l *laneMemory) (read int, err error) {
	// Rows that may be tried before this instant are brought by refill alone: see
	// resumeTo, which raises it before it reads.
	upTo := e.resuming.Load()
	l.mu.Lock()
	room := min(refillTo-l.resident, l.room(), refillPage)
	from := l.next
	if l.lowest.Compare(from) < 0 {
		from = l.lowest
	}
	if room > 0 {
		l.lowest = lastPlace
	} else {
		l.staying = false // what is to leave takes the room: it leaves first
	}
	staying := l.staying
	l.mu.Unlock()
	if room <= 0 {
		e.lanes.turns.add(l)
		return 0, nil
	}
	since := time.Now()
	rows, err := e.cfg.Cold.OwedIn(ctx, l.id, from, upTo-1, room)
	if err == nil {
		read, err = e.bring(ctx, rows, room, since)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if from.Compare(l.lowest) < 0 {
			l.lowest = from
		}
		return 0, err // the caller gives it another turn
	case len(rows) == room:
		l.next, l.staying = rows[len(rows)-1].Place(), false
	case staying && l.lowest == lastPlace && upTo == e.resuming.Load():
		if e.unspill(l) {
			return read + 1, nil
		}
	default:
		// The end, unless a row was stored since: looked at again when none is any more.
		if l.staying = true; len(rows) > 0 {
			from = rows[len(rows)-1].Place()
		}
		l.next = from
	}
	e.lanes.turns.add(l)
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
func (e *Scheduler) unspill(l *laneMemory) bool {
	for len(l.leaving) > 0 {
		ts := slices.SortedFunc(maps.Keys(l.leaving), func(a, b *task) int { return a.Key.Compare(b.Key) })
		l.mu.Unlock()
		ready := ts[:0]
		for _, t := range ts {
			sh := e.shardOf(t.Key.Timer)
			sh.mu.Lock()
			if t.state == isLeaving { // else it was cancelled
				t.memory.left(t)
				t.await(e.now())
				ready = append(ready, t)
			}
			sh.mu.Unlock()
		}
		e.enqueue(ready)
		l.mu.Lock()
	}
	if l.lowest != lastPlace {
		return false
	}
	l.spilled, l.staying = false, false
	return true
}
