package local

import (
	"context"
	"errors"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// dropHistory drops the oldest day whose end is not later than before, or the
// oldest hour when history is larger than HistoryMaxBytes. A day, or an hour, with
// the due of an owed row stays, and the next is looked at.
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
