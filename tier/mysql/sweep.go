package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"xtimer/engine"
)

const (
	// sweepPiece bounds the rows that one transaction of a sweep takes.
	sweepPiece = 500
	// sweepPieces bounds the pieces of each sort in one call.
	sweepPieces = 8
	// feedKept is how long the feed of changes is kept, in ms.
	feedKept = 3_600_000
)

// Sweep does a bounded piece of housekeeping. Several nodes may: what one finds
// it locks and looks at again. A row that cannot be read keeps back what is of its sort,
// and nothing else: history is dropped as before.
func (s *Store) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (more bool, err error) {
	s.heard(now)
	s.walks.mu.Lock()
	defer s.walks.mu.Unlock()
	var damage error
	for _, step := range []func() (bool, error){
		func() (bool, error) { return s.archiveEnded(ctx) },
		func() (bool, error) { return s.removeFinished(ctx, finishedBefore) },
		func() (bool, error) { return s.forgetOnce(ctx, now) },
		func() (bool, error) { return s.forgetBuckets(ctx, now) },
		func() (bool, error) { return s.forgetVersions(ctx, historyBefore) },
		func() (bool, error) { return s.forgetLeftOut(ctx, historyBefore) },
		func() (bool, error) { return s.forgetFeed(ctx, now-feedKept) },
		func() (bool, error) { return s.sweepHistory(ctx, now, historyBefore) },
	} {
		again := true
		for i := 0; again && i < sweepPieces; i++ {
			if again, err = step(); errors.As(err, new(*engine.Damage)) {
				damage = errors.Join(damage, err)
				break
			} else if err != nil {
				return false, err
			}
		}
		more = more || again
	}
	return more, damage
}

// forgetOnce removes expired Idempotency-Keys.
func (s *Store) forgetOnce(ctx context.Context, now int64) (more bool, err error) {
	var keys []pair
	err = s.read(ctx, "look for expired keys", func(ctx context.Context) error {
		keys = nil
		return s.scan(ctx, fmt.Sprintf("SELECT app,word FROM once WHERE expires<=%d LIMIT %d", now, sweepPiece), func(rows *sql.Rows) error {
			var k pair
			err := rows.Scan(&k.app, &k.key)
			keys = append(keys, k)
			return err
		})
	})
	if err != nil || len(keys) == 0 {
		return false, err
	}
	slices.SortFunc(keys, comparePairs)
	err = s.write(ctx, "remove expired keys", slotSweep, func(t *transaction) error {
		only := fmt.Sprintf(" AND t.expires<=%d", now) // one may have been used again
		return t.keyed("DELETE t FROM once", []string{"app", "word"}, only, len(keys), func(b []byte, i int) []byte {
			return appendPair(b, keys[i])
		})
	})
	return len(keys) == sweepPiece, err
}

// forgetVersions removes former versions that were replaced before the instant, of
// timers that are not owed: what is owed of a deleted one gets its app and name from
// them.
func (s *Store) forgetVersions(ctx context.Context, before int64) (more bool, err error) {
	from, next := s.walks.former, versionMark{}
	var found []versionMark
	var ids []engine.TimerID
	isCut := false // there are more
	err = s.read(ctx, "look for old versions", func(ctx context.Context) error {
		found, ids, isCut = nil, nil, false
		size := 0
		q := fmt.Sprintf("SELECT `until`,timer,version,LENGTH(definition) FROM versions FORCE INDEX (by_end) WHERE `until`<%d AND (`until`>%[2]d OR `until`=%[2]d AND "+
			"(timer>%[3]d OR timer=%[3]d AND version>%[4]d)) ORDER BY `until`,timer,version LIMIT %[5]d", before, from.until, from.timer, from.version, sweepPiece)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			var v versionMark
			var n int
			if err := rows.Scan(&v.until, &v.timer, &v.version, &n); err != nil {
				return err
			}
			if isCut = isCut || len(found) > 0 && size+n > s.pageBytes; !isCut {
				found, ids, size = append(found, v), append(ids, v.timer), size+n
			}
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	if isCut || len(found) == sweepPiece {
		next = found[len(found)-1]
	}
	if ids, err = s.notOwed(ctx, ids); err != nil {
		return false, err
	}
	found = slices.DeleteFunc(found, func(v versionMark) bool { return !slices.Contains(ids, v.timer) })
	if len(found) > 0 {
		err = s.deleteVersions(ctx, found)
	}
	if err == nil {
		s.walks.former = next
	}
	return next != versionMark{}, err
}

// forgetFeed removes the oldest of the feed, up to the first that is younger. One that
// the clock was ahead at goes when one that was written after it is old: by its own time
// it would stay, and all behind it, for as long as the clock was ahead.
func (s *Store) forgetFeed(ctx context.Context, before int64) (more bool, err error) {
	const piece = 5000
	first, last, n := int64(0), int64(0), 0
	front, end := int64(0), int64(0) // the time of the first of the piece, the number of its last
	err = s.read(ctx, "look at the feed of changes", func(ctx context.Context) error {
		first, last, n, front, end = 0, 0, 0, 0, 0
		young := false
		return s.scan(ctx, fmt.Sprintf("SELECT seq,at FROM changes ORDER BY seq LIMIT %d", piece), func(rows *sql.Rows) error {
			var seq, at int64
			if err := rows.Scan(&seq, &at); err != nil {
				return err
			}
			if first == 0 {
				first, front = seq, at
			}
			end = seq
			if young = young || at >= before; !young {
				n++
				last = seq
			}
			return nil
		})
	})
	if err == nil && front > before+2*feedKept {
		if last, err = s.lastOfFeed(ctx, before); last > 0 {
			n, last = piece, min(last, end)
		}
	}
	if err != nil || n == 0 {
		return false, err
	}
	err = s.write(ctx, "shorten the feed of changes", slotSweep, func(t *transaction) error {
		return t.run(fmt.Sprintf("DELETE FROM changes WHERE seq BETWEEN %d AND %d", first, last))
	})
	return n == piece, err
}

// lastOfFeed is the number of the last in the feed from before an instant; 0: none is. It
// reads all that are younger.
func (s *Store) lastOfFeed(ctx context.Context, before int64) (last int64, err error) {
	err = s.read(ctx, "look at the feed of changes", func(ctx context.Context) error {
		last = 0
		return s.scan(ctx, fmt.Sprintf("SELECT seq FROM changes WHERE at<%d ORDER BY seq DESC LIMIT 1", before), func(rows *sql.Rows) error {
			return rows.Scan(&last)
		})
	})
	return last, err
}
