package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
)

const (
	// replayTime is how long history is searched for what a reader missed, and
	// replayTasks how many tasks are found at most.
	replayTime  = time.Second
	replayTasks = 1 << 17
	// replayPage is how many records of history are in memory at a time: one may have a
	// hundred attempts.
	replayPage = 64
	minute     = 60_000
)

// readHistory finds what ended since w.since and is not in the log. History is in the
// order of dues, and a task may end long after its due. So history is searched from the
// newest due on for a bounded time, and a gap tells what that leaves out.
func (w *Subscription) readHistory(ctx context.Context) error {
	s := w.s
	select {
	case s.replays <- struct{}{}:
		defer func() { <-s.replays }()
	case <-ctx.Done():
		return ctx.Err()
	}
	now := s.history.Now()
	found := map[EventID]struct{}{}
	add := func(t *engine.Task) {
		if t.Status.Final() && t.Ended >= w.since && w.filter.Matches(t) {
			found[EventID{t.Ended, t.Key}] = struct{}{}
		}
	}
	s.history.EndedInMemory(add) // first: what is settled meanwhile is then in both
	unsearched, err := w.searchHistory(ctx, found, add)
	if err != nil {
		return err
	}
	if unsearched > 0 {
		w.gaps = append(w.gaps, Gap{From: w.since, To: now, DueBefore: unsearched})
	}
	if kept := s.history.KeptSince(); w.since < kept {
		w.gaps = append(w.gaps, Gap{From: w.since, To: kept})
	}
	out, err := s.history.LeftOut(ctx, w.since/minute*minute, now)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		w.gaps = append(w.gaps, Gap{From: out[0], To: out[len(out)-1] + minute})
	}
	s.subtract(found)
	w.replay = slices.SortedFunc(maps.Keys(found), EventID.compare)
	return nil
}

// searchHistory adds the records of history. Tasks due before unsearched were not looked
// at; 0: there are none.
func (w *Subscription) searchHistory(ctx context.Context, found map[EventID]struct{}, add func(*engine.Task)) (unsearched int64, err error) {
	started := time.Now()
	for before := (engine.Key{}); ; {
		ts, next, err := w.s.history.Stored(ctx, w.filter, before, replayPage)
		var damage *engine.Damage
		switch {
		case errors.As(err, &damage):
			return max(before.Due, 1), nil
		case err != nil:
			return 0, err
		}
		for _, t := range ts {
			add(t)
		}
		if next == (engine.Key{}) {
			return 0, nil
		}
		if before = next; len(found) >= replayTasks || time.Since(started) > replayTime {
			return before.Due + 1, nil
		}
	}
}

// subtract takes out what the log has.
func (s *Subscribers) subtract(found map[EventID]struct{}) {
	ids := make([]EventID, 0, chunkSize)
	for n := int64(0); ; {
		ids = ids[:0]
		s.mu.Lock()
		n = max(n, s.log.first)
		for ; n < s.log.next && len(ids) < chunkSize; n++ {
			ids = append(ids, s.log.at(n).EventID)
		}
		s.mu.Unlock()
		if len(ids) == 0 {
			return
		}
		for _, id := range ids {
			delete(found, id)
		}
	}
}
