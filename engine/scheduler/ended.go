package scheduler

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// endedRows is how many rows this stage takes at a time, at most; a variable for tests.
var endedRows = 5000

// cancelFormer cancels the rows of memory.Former until ctx ends.
//
// A change that ends a generation commits at once, however many rows of it wait: what
// it cannot take along in one commit is left to this stage, which cancels it in pieces.
//
//	commit   the definition, calls in flight, tasks without a row, the first rows
//	memory   tasks with a row have ended: the next settles store that
//	here     the other rows, a page of each timer in turns: record and removal in one
//
// After the commit nothing of the former generation is called: a row tells its
// generation, so whoever finds one that has ended leaves it to this stage (resumePage,
// unfold, a start). To a reader its task is cancelled by then.
//
// A row that has ended is not later than its generation, and a later generation only
// makes rows with such a key by a change, a run or a retry by hand: each of them claims
// the timer, as this stage does for each page.
func (e *Scheduler) cancelFormer(ctx context.Context) error {
	former := &e.memory.Former
	return inTurns(ctx, &former.Inbox, func(x *resident.FormerTimer) (looked bool) {
		looked, more, err := e.endPage(ctx, x)
		if err != nil && ctx.Err() == nil {
			e.log.Error("cannot cancel what waited for a timer that was changed; trying again", "timer", x.ID, "error", err)
			process.Sleep(ctx, time.Second)
		}
		former.Seen(x, more || err != nil)
		return looked
	})
}

// inTurns gives each timer of an inbox its turns until ctx ends. look takes a page of a timer, and adds the timer to the
// inbox again if that was not all; look reports false while the timer is being changed.
func inTurns[T any](ctx context.Context, in *resident.Inbox[T], look func(T) (looked bool)) error {
	for ctx.Err() == nil {
		list := in.Take()
		if len(list) == 0 {
			select {
			case <-ctx.Done():
			case <-in.More:
			}
			continue
		}
		did := false
		for _, x := range list {
			did = look(x) || did
		}
		if !did {
			process.Sleep(ctx, 10*time.Millisecond) // they are being changed
		}
	}
	return nil
}

// endPage cancels a page of a timer's rows that have ended; those of tasks in memory
// are history's. looked is false while the timer is being changed.
func (e *Scheduler) endPage(ctx context.Context, x *resident.FormerTimer) (looked, more bool, err error) {
	if e.memory.Owns(x.ID) != nil {
		return true, false, nil // another node finds them
	}
	release, change := e.memory.TryClaimRows(x.ID)
	if change != nil {
		return false, true, nil
	}
	defer release()
	l, err := e.VersionHistory(ctx, x.ID)
	if err != nil {
		return true, true, err
	}
	limit := e.pieces.of(endedRows)
	read := e.memory.Reads.Begin()
	defer read.End()
	rows, err := e.cfg.Cold.OwedPage(ctx, x.ID, x.After, limit)
	if err != nil {
		return true, true, err
	}
	var pay []engine.Key
	var recs []*engine.Task
	for i := range rows {
		if rows[i].Damaged != nil && l.Deleted == 0 {
			e.leaveOutRow(&rows[i]) // it may be of the generation that stands
			continue
		}
		end, over := policy.EndingOf(l, rows[i].Generation)
		if !over || rows[i].To == 0 && e.memory.Had(rows[i].Key, read) || e.memory.IsShared(rows[i].Key) {
			continue
		}
		rs, err := e.EndOf(ctx, &end, &rows[i])
		if err != nil {
			return true, true, err
		}
		pay, recs = append(pay, rows[i].Key), append(recs, rs...)
	}
	if len(pay) > 0 {
		failpoint.Hit("ended-before-settle")
		settle := func() error {
			return e.settlePieces(ctx, &engine.Settlement{Owner: e.cfg.Node, Tasks: e.endedNow(recs), Pay: pay})
		}
		for err := settle(); err != nil; err = settle() {
			// The commit may have been made, and its tasks must be counted and told once.
			e.log.Error("cannot store that dues of a timer that was changed are cancelled; trying again", "timer", x.ID, "error", err)
			if process.Sleep(ctx, time.Second); ctx.Err() != nil {
				return true, true, ctx.Err()
			}
		}
		e.tally.Decided(recs)
	}
	if len(rows) > 0 {
		x.After = rows[len(rows)-1].Key.Due
	}
	return true, len(rows) == limit, nil
}
