package local

import (
	"bytes"
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// dropHistory drops the oldest day whose end is not later than before, or the
// oldest hour when history is larger than HistoryMaxBytes. A day, or an hour, with
// the due of an owed row stays, and the next is looked at; so does one with the record
// of a due of an owed range, for only the record tells that the due is over.
func (s *Store) dropHistory(ctx context.Context, now, before int64) (more bool, err error) {
	for at := int64(0); ; {
		ks, _, err := s.keys(appendTime([]byte{kindRecord}, at), []byte{kindRecord + 1}, 1)
		if err != nil || len(ks) == 0 {
			return false, err
		}
		oldest := readTime(ks[0][1:])
		from := oldest / day * day
		to := from + day
		aged := to <= before
		if !aged {
			if large, err := s.tooLarge(now); !large || err != nil {
				return false, err
			}
			from = oldest / hour * hour
			if to = from + hour; to > now {
				return false, nil // the hour that is being written
			}
		}
		if held, err := s.holds(ctx, from, to); err != nil {
			return false, err
		} else if held {
			at = to
			continue
		}
		dropped, err := s.dropRange(ctx, from, to, !aged)
		if err != nil || dropped && aged {
			return dropped, err
		}
		if dropped {
			s.sweep.capped = now
			return false, nil
		}
		at = to
	}
}

// capEvery is the pause between two looks at the size of history once some was
// dropped. Pebble frees the space later; until then history looks as large as
// before, and another hour would be dropped for nothing.
const capEvery = 60_000

// holds reports whether a record of [from, to) has a due of an owed range. A range that is
// moved meanwhile owes less. The look goes through all rows, 0.8 s for 1,000,000 with 100,000 ranges; what it has found stands
// until a range is stored or removed.
func (s *Store) holds(ctx context.Context, from, to int64) (held bool, err error) {
	var ranged bool
	var moves uint64
	err = s.do(ctx, 1, func(g *group) error {
		ranged, moves = g.st.stats.hasRanges(to), g.st.stats.moves
		return nil
	})
	if err != nil || !ranged {
		return false, err
	}
	if s.sweep.held == nil || s.sweep.moves != moves {
		s.sweep.held, s.sweep.moves = map[[2]int64]bool{}, moves
	}
	if s.sweep.held[[2]int64{from, to}] {
		return true, nil
	}
	defer func() { s.sweep.held[[2]int64{from, to}] = held }()
	w, err := s.views.acquire()
	if err != nil {
		return false, err
	}
	defer s.views.release(w)
	err = scan(w, []byte{kindOwed}, []byte{kindOwed + 1}, func(k, v []byte) (bool, error) {
		if len(k) != owedKeyLen {
			return false, damaged(k, errKey)
		}
		o := engine.ReadOwed(readOwedKey(k), bytes.Clone(v))
		if o.Damaged != nil {
			o.To = engine.MaxDue // it may be a range
		}
		if o.To < max(from, 1) || o.Key.Due >= to {
			return true, ctx.Err()
		}
		held, err = s.hasRecord(ctx, engine.TaskFilter{Timer: o.Key.Timer, From: max(from, o.Key.Due), To: min(to, o.To+1)})
		return !held, err
	})
	return held, err
}

// hasRecord reports whether history has a record of a filter.
func (s *Store) hasRecord(ctx context.Context, f engine.TaskFilter) (bool, error) {
	for before := (engine.Key{}); ; {
		ts, next, err := s.Tasks(ctx, f, before, 1)
		if err != nil || len(ts) > 0 || next == (engine.Key{}) {
			return len(ts) > 0, err
		}
		before = next
	}
}

// tooLarge reports whether history is larger than HistoryMaxBytes.
func (s *Store) tooLarge(now int64) (bool, error) {
	if s.cfg.HistoryMaxBytes < 0 || now < s.sweep.capped+capEvery && now >= s.sweep.capped {
		return false, nil
	}
	size, err := s.historyBytes()
	return size > s.cfg.HistoryMaxBytes, err
}

// dropRange deletes the history of [from, to), whole hours, unless an owed row has
// its due there. Minutes that go before their time are noted as left out.
func (s *Store) dropRange(ctx context.Context, from, to int64, early bool) (bool, error) {
	failpoint.Hit("retention-delete")
	dropped := false // the committer may still write to it after an error
	err := s.do(ctx, 1, func(g *group) error {
		if g.st.stats.holds(from, to) {
			return nil
		}
		dropped = true
		for _, kind := range []byte{kindRecord, kindFailure, kindMisfire} {
			g.ranges = append(g.ranges, span{appendTime([]byte{kind}, from), appendTime([]byte{kind}, to)})
		}
		for m := from; early && m < to; m += minute {
			g.put(leftOutKey(m), none)
		}
		lo, hi := byTimerKey(nil, engine.Key{Due: from}), byTimerKey(nil, engine.Key{Due: to})
		g.ranges = append(g.ranges, span{lo, hi})
		return nil
	})
	if err != nil {
		return false, err
	}
	return dropped, nil
}

// historyBytes is about how much of the disk history takes.
func (s *Store) historyBytes() (sum int64, err error) {
	w, err := s.views.acquire() // keeps the database open
	if err != nil {
		return 0, err
	}
	defer s.views.release(w)
	for _, kind := range []byte{kindRecord, kindByTimer, kindFailure, kindMisfire} {
		n, e := s.db.EstimateDiskUsage([]byte{kind}, []byte{kind + 1})
		sum += int64(n)
		err = errors.Join(err, e)
	}
	return sum, err
}
