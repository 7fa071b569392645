package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// sweep is how far the housekeeping has come. Calls of Sweep take turns.
type sweep struct {
	mu sync.Mutex
	// ended, finished and former are the keys of the indexes of last dues, of ends and
	// of former versions to go on after: what is owed stays at their front, and need
	// not be looked at in every call. nil: from the front.
	ended, finished, former []byte
	once                    []byte // likewise, of expired Idempotency-Keys: deleted ones lie at the front
	buckets                 []byte // likewise, of all buckets
	// capped is the now of the call that last dropped history for its size.
	capped int64
	// held are the days and hours of history that a range keeps, as long as stats.moves stands.
	held  map[[2]int64]bool
	moves uint64
}

// sweepPiece bounds what one commit of a sweep takes: the committer reads the
// definitions, and creates wait for it meanwhile.
const sweepPiece = 500

// sweepPieces bounds the pieces of each sort in one call.
const sweepPieces = 8

// Sweep does a bounded piece of housekeeping. A row that cannot be read stays, is told of,
// and keeps nothing else back.
func (s *Store) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (bool, error) {
	s.sweep.mu.Lock()
	defer s.sweep.mu.Unlock()
	err := s.do(ctx, 1, func(g *group) error {
		g.st.clock = max(g.st.clock, now)
		return nil
	})
	if err != nil {
		return false, err
	}
	more := false
	var damage error
	for _, step := range []func(context.Context) (bool, error){
		s.archiveEnded,
		func(ctx context.Context) (bool, error) { return s.removeFinished(ctx, finishedBefore) },
		func(ctx context.Context) (bool, error) { return s.forgetOnce(ctx, now) },
		func(ctx context.Context) (bool, error) { return s.forgetBuckets(ctx, now) },
		func(ctx context.Context) (bool, error) { return s.forgetVersions(ctx, historyBefore) },
		func(ctx context.Context) (bool, error) { return s.forgetLeftOut(ctx, historyBefore) },
		func(ctx context.Context) (bool, error) { return s.dropHistory(ctx, now, historyBefore) },
	} {
		again := true
		for i := 0; again && i < sweepPieces; i++ {
			var err error
			if again, err = step(ctx); errors.As(err, new(*engine.Damage)) {
				damage = errors.Join(damage, err)
			} else if err != nil {
				return false, err
			}
		}
		more = more || again
	}
	return more, damage
}

// keys collects up to n keys in [from, to); more reports whether there are others.
func (s *Store) keys(from, to []byte, n int) (ks [][]byte, more bool, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, false, err
	}
	defer s.views.release(w)
	err = scan(w, from, to, func(k, _ []byte) (bool, error) {
		if len(ks) == n {
			more = true
			return false, nil
		}
		ks = append(ks, append([]byte(nil), k...))
		return true, nil
	})
	return ks, more, err
}

// walk collects the next keys of an index by time, up to the instant, and moves
// the mark to where the next walk begins. Timers with owed tasks stay at the front
// of the index, and do not keep those behind them from their turn. more reports
// whether keys are left.
func (s *Store) walk(mark *[]byte, kind byte, to int64) (ks [][]byte, more bool, err error) {
	from := []byte{kind}
	if *mark != nil {
		from = append(*mark, 0)
	}
	if ks, more, err = s.keys(from, appendTime([]byte{kind}, to), sweepPiece); err != nil {
		return nil, false, err
	}
	if *mark = nil; more {
		*mark = ks[len(ks)-1]
	}
	return ks, more, nil
}

// archiveEnded marks a timer as finished when its last due is not later than the
// watermark of its shard and no task of it is owed. It looks at one-shots, and at
// recurring timers with an end.
func (s *Store) archiveEnded(ctx context.Context) (more bool, err error) {
	w, err := s.views.acquire()
	if err != nil {
		return false, err
	}
	highest := w.highest
	s.views.release(w)
	ks, more, err := s.walk(&s.sweep.ended, kindLast, highest+1)
	if err != nil || len(ks) == 0 {
		return false, err
	}
	failpoint.Hit("archive")
	_, damage, err := s.pieces(ctx, ks, func(g *group, k []byte) (size int, whole bool, err error) {
		return 0, true, g.archiveEntry(k)
	})
	return more, cmp.Or(err, damage)
}

// removeFinished removes timers that ended before the instant, with all their
// keys.
func (s *Store) removeFinished(ctx context.Context, before int64) (more bool, err error) {
	from := s.sweep.finished
	ks, more, err := s.walk(&s.sweep.finished, kindEnded, before)
	if err != nil || len(ks) == 0 {
		return false, err
	}
	removed, damage, err := s.pieces(ctx, ks, func(g *group, k []byte) (size int, whole bool, err error) {
		t, err := g.timer(readID(k[7:]))
		if err != nil {
			return 0, false, err
		}
		if t == nil || t.Status != engine.Finished || endedAt(t) >= before {
			return 0, true, nil // changed since it was listed
		}
		if owes, err := g.owes(t.ID); owes || err != nil {
			return 0, true, err // a redrive
		}
		if size, whole, err = g.removeVersions(t.ID); err != nil || !whole {
			return size, whole, err
		}
		if err := g.indexShot(t); err != nil {
			return 0, false, err
		}
		g.store(t, nil, nil, bound{})
		return size + t.Payload(), true, nil
	})
	if err == nil && removed < len(ks) {
		if more = true; removed > 0 {
			from = ks[removed-1]
		}
		s.sweep.finished = from
	}
	return more, cmp.Or(err, damage)
}

// sweepBytes is how much of definitions a commit of a sweep reads before it leaves the
// rest to the next one: there may be many of 512 KiB.
const sweepBytes = 8 << 20

// pieces handles keys in one commit until they have cost sweepBytes, and tells how many.
// One that is not whole is not handled yet; one that leads to damage is passed over.
func (s *Store) pieces(ctx context.Context, ks [][]byte, handle func(g *group, k []byte) (size int, whole bool, err error)) (handled int, damage, err error) {
	n := 0
	var damages []error
	err = s.do(ctx, len(ks), func(g *group) error {
		for size := 0; n < len(ks) && size < sweepBytes; n++ {
			more, whole, err := handle(g, ks[n])
			if errors.As(err, new(*engine.Damage)) {
				damages = append(damages, err)
				continue
			}
			if err != nil || !whole {
				return err
			}
			size += more
		}
		return nil
	})
	if err != nil { // the commit may be under way yet
		return 0, nil, err
	}
	return n, errors.Join(damages...), nil
}

// removeVersions removes former versions of a timer, the newest first, until they had
// sweepBytes. whole tells that none is left.
func (g *group) removeVersions(id engine.TimerID) (size int, whole bool, err error) {
	whole = true
	err = eachVersion(g.s.db, id, allVersions(id), func(v []byte) (bool, error) {
		if whole = size < sweepBytes; !whole {
			return false, nil
		}
		size += len(v)
		var t engine.Timer
		if err := engine.DecodeTimerHead(v, &t); err != nil {
			return false, err
		}
		g.delete(versionKey(nil, t.ID, t.Version))
		return true, g.indexShot(&t)
	})
	return size, whole, err
}

// forgetOnce removes expired Idempotency-Keys.
func (s *Store) forgetOnce(ctx context.Context, now int64) (more bool, err error) {
	ks, more, err := s.walk(&s.sweep.once, kindOnceAt, now+1)
	if err != nil || len(ks) == 0 {
		return false, err
	}
	_, damage, err := s.pieces(ctx, ks, func(g *group, k []byte) (size int, whole bool, err error) {
		app, rest, ok1 := readText(k[7:])
		key, _, ok2 := readText(rest)
		if !ok1 || !ok2 {
			return 0, false, damaged(k, errKey)
		}
		u, err := g.Used(app, key)
		if err != nil {
			return 0, false, err
		}
		if u != nil && u.Expires <= now {
			main := onceKey(nil, app, key)
			g.delete(main)
			g.once[string(main)] = nil
		}
		g.delete(k)
		return 0, true, nil
	})
	return more, cmp.Or(err, damage)
}

// forgetVersions removes former versions that were replaced before the instant, of
// timers that are not owed.
func (s *Store) forgetVersions(ctx context.Context, before int64) (more bool, err error) {
	from := s.sweep.former
	ks, more, err := s.walk(&s.sweep.former, kindFormer, before)
	if err != nil || len(ks) == 0 {
		return false, err
	}
	forgotten, damage, err := s.pieces(ctx, ks, func(g *group, k []byte) (size int, whole bool, err error) {
		if len(k) != 19 {
			return 0, false, damaged(k, errKey)
		}
		if owes, err := g.owes(readID(k[7:])); owes || err != nil {
			return 0, true, err // its records need the app and the name
		}
		version := append([]byte{kindVersion}, k[7:]...)
		v, err := g.get(version)
		if err != nil {
			return 0, false, err
		}
		if v != nil { // or it went with its timer
			var t engine.Timer
			if err := engine.DecodeTimerHead(v, &t); err != nil {
				return 0, false, damaged(version, err)
			}
			if err := g.indexShot(&t); err != nil {
				return 0, false, err
			}
		}
		g.delete(version)
		g.delete(k)
		// Versions go in the order of their ends.
		return len(v), true, g.forgetDelete(readID(k[7:]), binary.BigEndian.Uint32(k[15:]))
	})
	if err == nil && forgotten < len(ks) {
		if more = true; forgotten > 0 {
			from = ks[forgotten-1]
		}
		s.sweep.former = from
	}
	return more, cmp.Or(err, damage)
}
