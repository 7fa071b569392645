package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

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
// it locks and looks at again.
func (s *Store) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (more bool, err error) {
	s.heard(now)
	var ended sweepMark
	for _, step := range []func() (bool, error){
		func() (bool, error) { return s.archiveEnded(ctx, &ended) },
		func() (bool, error) { return s.removeFinished(ctx, finishedBefore) },
		func() (bool, error) { return s.forgetOnce(ctx, now) },
		func() (bool, error) { return s.forgetVersions(ctx, historyBefore) },
		func() (bool, error) { return s.forgetLeftOut(ctx, historyBefore) },
		func() (bool, error) { return s.forgetFeed(ctx, now-feedKept) },
		func() (bool, error) { return s.sweepHistory(ctx, now, historyBefore) },
	} {
		again := true
		for i := 0; again && i < sweepPieces; i++ {
			if again, err = step(); err != nil {
				return false, err
			}
		}
		more = more || again
	}
	return more, nil
}

// sweepMark is where a walk through an index stands.
type sweepMark struct {
	at int64
	id engine.TimerID
}

// ended finds timers by when they end, before the instant, after the mark.
func (s *Store) ended(ctx context.Context, st engine.Status, mark *sweepMark, before int64) (ids []engine.TimerID, err error) {
	was := *mark
	err = s.read(ctx, "look for what has ended", func(ctx context.Context) error {
		ids = nil
		q := fmt.Sprintf("SELECT id,ends FROM timers FORCE INDEX (by_end) WHERE %s AND ends<%d AND (ends>%[3]d OR ends=%[3]d AND id>%[4]d) ORDER BY status,ends,id LIMIT %[5]d",
			is("status", strconv.Itoa(int(st))), before, was.at, was.id, sweepPiece)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			err := rows.Scan(&mark.id, &mark.at)
			ids = append(ids, mark.id)
			return err
		})
	})
	return ids, err
}

// archiveEnded marks timers as finished whose last due is settled and that are
// not owed: one-shots, and recurring ones with an end.
func (s *Store) archiveEnded(ctx context.Context, mark *sweepMark) (more bool, err error) {
	shards, err := s.Shards(ctx)
	if err != nil {
		return false, err
	}
	highest := slices.MaxFunc(shards, func(a, b engine.Shard) int { return int(min(max(a.Watermark-b.Watermark, -1), 1)) }).Watermark
	if *mark == (sweepMark{}) {
		mark.id = 1<<63 - 1 // not what has no end
	}
	ids, err := s.ended(ctx, engine.Enabled, mark, highest+1)
	if len(ids) == 0 || err != nil {
		return false, err
	}
	slices.Sort(ids)
	bs := make([]engine.Bound, len(ids))
	for i, id := range ids {
		bs[i].ID = id
	}
	return len(ids) == sweepPiece, s.archive(ctx, bs)
}

// archive marks those timers as finished that are: enabled, their last due
// settled, nothing of them owed. One of another version than a bound names is
// left alone; of version 0, any that has an end. Their versions stay, for nobody
// changed them, and so do their definitions: only columns are written.
func (s *Store) archive(ctx context.Context, bs []engine.Bound) error {
	ids := make([]engine.TimerID, len(bs))
	versions := map[engine.TimerID]uint32{}
	for i, b := range bs {
		ids[i], versions[b.ID] = b.ID, b.Version
	}
	return s.transact(ctx, "archive what is finished", func(t *transaction) error {
		// The watermarks first: what was owed when they moved is seen below.
		shards := make([]engine.Shard, engine.Shards)
		if err := t.scan(selectShards, readShards(shards)); err != nil {
			return err
		}
		clock := s.clock.Load()
		ends := map[engine.TimerID]int64{}
		var over []engine.TimerID
		list := string(appendIDs(nil, ids))
		err := t.scan(selectRow+" WHERE status=0 AND id IN "+list+" ORDER BY id FOR UPDATE", func(rows *sql.Rows) error {
			r, err := scanRow(rows)
			if err != nil {
				return err
			}
			t, last := r.timer, lastDue(r.timer)
			want := versions[t.ID]
			if (want == 0 && last != 0 || want == t.Version && !t.Schedule.OneShot()) && last <= shards[t.ID.Shard()].Watermark && t.ValidFrom <= clock {
				over, ends[t.ID] = append(over, t.ID), max(last, t.UpdatedAt)
			}
			return nil
		})
		if err == nil {
			over, err = notOwed(t, over)
		}
		if err != nil {
			return err
		}
		if len(over) == 0 {
			return errNothing
		}
		for part := range slices.Chunk(over, keyedRows) {
			err := t.many("UPDATE timers t JOIN (SELECT NULL AS id,NULL AS ends UNION ALL SELECT ", " UNION ALL SELECT ",
				fmt.Sprintf(") k ON k.id=t.id SET t.status=%d,t.kind=%d,t.bound=0,t.ends=k.ends", engine.Finished, kindNone),
				len(part), func(b []byte, i int) []byte { return appendInts(b, int64(part[i]), ends[part[i]]) })
			if err != nil {
				return err
			}
		}
		n := int64(len(over))
		return count(t, s.slots, [3]int64{engine.Enabled: -n, engine.Finished: n})
	})
}

// notOwed leaves those timers of which nothing is owed.
func notOwed(t *transaction, ids []engine.TimerID) ([]engine.TimerID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	owes := map[engine.TimerID]bool{}
	err := t.scan("SELECT DISTINCT timer FROM owed WHERE timer IN "+string(appendIDs(nil, ids)), func(rows *sql.Rows) error {
		var id engine.TimerID
		err := rows.Scan(&id)
		owes[id] = true
		return err
	})
	return slices.DeleteFunc(ids, func(id engine.TimerID) bool { return owes[id] }), err
}

// removeFinished removes timers that ended before the instant, with their
// names, labels and versions.
func (s *Store) removeFinished(ctx context.Context, before int64) (more bool, err error) {
	found, err := s.ended(ctx, engine.Finished, &sweepMark{at: -1 << 62}, before)
	if err != nil || len(found) == 0 {
		return false, err
	}
	removed := 0
	err = s.transact(ctx, "remove finished timers", func(t *transaction) error {
		var ids []engine.TimerID
		var labels []label
		q := fmt.Sprintf("%s WHERE status=%d AND ends<%d AND id IN %s ORDER BY id FOR UPDATE", selectRow, engine.Finished, before, appendIDs(nil, found))
		labelled := map[engine.TimerID][]label{}
		err := t.scan(q, func(rows *sql.Rows) error {
			r, err := scanRow(rows)
			if err != nil {
				return err
			}
			ids, labelled[r.timer.ID] = append(ids, r.timer.ID), labelsOf(r)
			return nil
		})
		if err == nil {
			ids, err = notOwed(t, ids) // a redrive may be
		}
		if removed = len(ids); err != nil || removed == 0 {
			if err == nil {
				err = errNothing
			}
			return err
		}
		for _, id := range ids {
			labels = append(labels, labelled[id]...)
		}
		if err := deleteByID(t, "timers", "id", ids); err != nil {
			return err
		}
		if err := deleteByID(t, "versions", "timer", ids); err != nil {
			return err
		}
		if err := unlabel(t, labels); err != nil {
			return err
		}
		return count(t, s.slots, [3]int64{engine.Finished: -int64(removed)})
	})
	return len(found) == sweepPiece && removed > 0, err
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
	err = s.transact(ctx, "remove expired keys", func(t *transaction) error {
		return deleteOnce(t, keys, fmt.Sprintf(" AND t.expires<=%d", now)) // one may have been used again
	})
	return len(keys) == sweepPiece, err
}

// forgetVersions removes former versions that were replaced before the instant.
func (s *Store) forgetVersions(ctx context.Context, before int64) (more bool, err error) {
	type version struct {
		timer engine.TimerID
		n     uint32
	}
	var vs []version
	err = s.read(ctx, "look for old versions", func(ctx context.Context) error {
		vs = nil
		return s.scan(ctx, fmt.Sprintf("SELECT timer,version FROM versions WHERE `until`<%d ORDER BY `until` LIMIT %d", before, sweepPiece), func(rows *sql.Rows) error {
			var v version
			err := rows.Scan(&v.timer, &v.n)
			vs = append(vs, v)
			return err
		})
	})
	if err != nil || len(vs) == 0 {
		return false, err
	}
	err = s.transact(ctx, "remove old versions", func(t *transaction) error {
		return t.keyed("DELETE t FROM versions", []string{"timer", "version"}, "", len(vs), func(b []byte, i int) []byte {
			return appendInts(b, int64(vs[i].timer), int64(vs[i].n))
		})
	})
	return len(vs) == sweepPiece, err
}

// forgetFeed removes the oldest of the feed, up to the first that is younger.
func (s *Store) forgetFeed(ctx context.Context, before int64) (more bool, err error) {
	const piece = 5000
	first, last, n := int64(0), int64(0), 0
	err = s.read(ctx, "look at the feed of changes", func(ctx context.Context) error {
		first, last, n = 0, 0, 0
		young := false
		return s.scan(ctx, fmt.Sprintf("SELECT seq,at FROM changes ORDER BY seq LIMIT %d", piece), func(rows *sql.Rows) error {
			var seq, at int64
			if err := rows.Scan(&seq, &at); err != nil {
				return err
			}
			if young = young || at >= before; !young {
				if n++; n == 1 {
					first = seq
				}
				last = seq
			}
			return nil
		})
	})
	if err != nil || n == 0 {
		return false, err
	}
	err = s.transact(ctx, "shorten the feed of changes", func(t *transaction) error {
		return t.run(fmt.Sprintf("DELETE FROM changes WHERE seq BETWEEN %d AND %d", first, last))
	})
	return n == piece, err
}
