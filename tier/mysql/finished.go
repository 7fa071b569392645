package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"xtimer/engine"
)

// walks are where the walks through what has ended stand. Sweep calls take turns.
type walks struct {
	mu sync.Mutex
	// What is owed stays at the front of the index: these are where the next call
	// goes on, so that what lies behind it has its turn.
	enabled, finished sweepMark
	former            versionMark
}

// sweepMark is where a walk through an index stands.
type sweepMark struct {
	at int64
	id engine.TimerID
}

// versionMark is where a walk through the former versions stands.
type versionMark struct {
	until   int64
	timer   engine.TimerID
	version uint32
}

// ended finds timers by when they end, before the instant, after the mark, and
// tells where the walk goes on. The zero mark is the beginning and the end of one.
func (s *Store) ended(ctx context.Context, st engine.Status, from sweepMark, before int64) (ids []engine.TimerID, next sweepMark, err error) {
	switch {
	case from != sweepMark{}:
	case st == engine.Enabled:
		from.id = 1<<63 - 1 // not what has no end
	default:
		from.at = -1 << 62
	}
	err = s.read(ctx, "look for what has ended", func(ctx context.Context) error {
		ids, next = nil, from
		q := fmt.Sprintf("SELECT id,ends FROM timers FORCE INDEX (by_end) WHERE %s AND ends<%d AND (ends>%[3]d OR ends=%[3]d AND id>%[4]d) ORDER BY status,ends,id LIMIT %[5]d",
			is("status", strconv.Itoa(int(st))), before, from.at, from.id, sweepPiece)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			err := rows.Scan(&next.id, &next.at)
			ids = append(ids, next.id)
			return err
		})
	})
	if len(ids) < sweepPiece {
		next = sweepMark{}
	}
	return ids, next, err
}

// archiveEnded marks timers as finished whose last due is settled and that are
// not owed: one-shots, and recurring ones with an end.
func (s *Store) archiveEnded(ctx context.Context) (more bool, err error) {
	shards, err := s.Shards(ctx)
	if err != nil {
		return false, err
	}
	highest := slices.MaxFunc(shards, func(a, b engine.Shard) int { return int(min(max(a.Watermark-b.Watermark, -1), 1)) }).Watermark
	ids, next, err := s.ended(ctx, engine.Enabled, s.walks.enabled, highest+1)
	if err != nil {
		return false, err
	}
	s.walks.enabled = next // also past a row that cannot be read
	// Many may wait for their retries for hours: they are not locked for that.
	if ids, err = s.notOwed(ctx, ids); err != nil {
		return false, err
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		bs := make([]engine.Bound, len(ids))
		for i, id := range ids {
			bs[i].ID = id
		}
		if err := s.archive(ctx, bs); err != nil {
			return false, err
		}
	}
	return next != sweepMark{}, nil
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
	return s.eachPiece(ctx, ids, func(ids []engine.TimerID) error { return s.archivePiece(ctx, ids, versions) })
}

// eachPiece cuts a list of timers into pieces whose definitions have no more bytes than a
// page should, or that are one timer: a transaction that reads them has seconds for it.
func (s *Store) eachPiece(ctx context.Context, ids []engine.TimerID, do func(ids []engine.TimerID) error) error {
	sizes := map[engine.TimerID]int{}
	err := s.read(ctx, "look how large timers are", func(ctx context.Context) error {
		return s.scan(ctx, "SELECT id,LENGTH(definition) FROM timers WHERE id IN "+string(appendIDs(nil, ids)), func(rows *sql.Rows) error {
			var id engine.TimerID
			var size int
			err := rows.Scan(&id, &size)
			sizes[id] = size
			return err
		})
	})
	var damage error // of one piece, and the others are done
	for err == nil && len(ids) > 0 {
		n, size := 1, sizes[ids[0]]
		for ; n < len(ids) && size+sizes[ids[n]] <= s.pageBytes; n++ {
			size += sizes[ids[n]]
		}
		if err, ids = do(ids[:n]), ids[n:]; errors.As(err, new(*engine.Damage)) {
			damage, err = errors.Join(damage, err), nil
		}
	}
	return cmp.Or(err, damage)
}

// readable reads a row that selectRow selects; one that is damaged is nil, and noted.
func readable(rows *sql.Rows, damage *error) (*row, error) {
	r, err := scanRow(rows)
	if errors.As(err, new(*engine.Damage)) {
		*damage = errors.Join(*damage, err)
		return nil, nil
	}
	return r, err
}

func (s *Store) archivePiece(ctx context.Context, ids []engine.TimerID, versions map[engine.TimerID]uint32) error {
	var damage error
	err := s.write(ctx, "archive what is finished", slotSweep, func(t *transaction) error {
		damage = nil
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
			r, err := readable(rows, &damage)
			if r == nil {
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
			over, err = notOwed(t.scan, over)
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
	return cmp.Or(err, damage)
}

// notOwed leaves those timers of which nothing is owed.
func notOwed(scan func(query string, each func(*sql.Rows) error) error, ids []engine.TimerID) ([]engine.TimerID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	owes := map[engine.TimerID]bool{}
	err := scan("SELECT DISTINCT timer FROM owed WHERE timer IN "+string(appendIDs(nil, ids)), func(rows *sql.Rows) error {
		var id engine.TimerID
		err := rows.Scan(&id)
		owes[id] = true
		return err
	})
	return slices.DeleteFunc(slices.Clone(ids), func(id engine.TimerID) bool { return owes[id] }), err
}

func (s *Store) notOwed(ctx context.Context, ids []engine.TimerID) (free []engine.TimerID, err error) {
	err = s.read(ctx, "look at what is owed", func(ctx context.Context) error {
		free, err = notOwed(func(query string, each func(*sql.Rows) error) error { return s.scan(ctx, query, each) }, ids)
		return err
	})
	return free, err
}

// removeFinished removes timers that ended before the instant, with their
// names, labels and versions.
func (s *Store) removeFinished(ctx context.Context, before int64) (more bool, err error) {
	found, next, err := s.ended(ctx, engine.Finished, s.walks.finished, before)
	if err != nil {
		return false, err
	}
	s.walks.finished = next // also past a row that cannot be read

	if found, err = s.notOwed(ctx, found); err != nil { // a redrive may be
		return false, err
	}
	if len(found) > 0 {
		if err := s.removeVersions(ctx, found, before); err != nil {
			return false, err
		}
		if err := s.eachPiece(ctx, found, func(ids []engine.TimerID) error { return s.remove(ctx, ids, before) }); err != nil {
			return false, err
		}
	}
	return next != sweepMark{}, nil
}

// removeVersions removes the former versions of timers that ended before the instant, in
// pieces: a timer may have any number of them.
func (s *Store) removeVersions(ctx context.Context, ids []engine.TimerID, before int64) error {
	for after := (versionMark{}); ; {
		var found []versionMark
		size, whole := 0, false
		q := fmt.Sprintf("SELECT v.timer,v.version,LENGTH(v.definition) FROM versions v JOIN timers t ON t.id=v.timer WHERE t.status=%d AND t.ends<%d AND v.timer IN %s "+
			"AND (v.timer>%[4]d OR v.timer=%[4]d AND v.version>%[5]d) ORDER BY v.timer,v.version LIMIT %[6]d",
			engine.Finished, before, appendIDs(nil, ids), after.timer, after.version, sweepPiece)
		err := s.read(ctx, "look for the versions of finished timers", func(ctx context.Context) error {
			found, size, whole = nil, 0, true
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				var v versionMark
				var n int
				if err := rows.Scan(&v.timer, &v.version, &n); err != nil {
					return err
				}
				if whole = whole && (len(found) == 0 || size+n <= s.pageBytes); whole {
					found, size = append(found, v), size+n
				}
				return nil
			})
		})
		if err != nil || len(found) == 0 {
			return err
		}
		if err := s.deleteVersions(ctx, found); err != nil {
			return err
		}
		after = found[len(found)-1]
	}
}

// deleteVersions deletes former versions in one transaction.
func (s *Store) deleteVersions(ctx context.Context, vs []versionMark) error {
	return s.write(ctx, "remove old versions", slotSweep, func(t *transaction) error {
		return t.keyed("DELETE t FROM versions", []string{"timer", "version"}, "", len(vs), func(b []byte, i int) []byte {
			return appendInts(b, int64(vs[i].timer), int64(vs[i].version))
		})
	})
}

// remove removes those timers that ended before the instant. One that cannot be read
// stays.
func (s *Store) remove(ctx context.Context, found []engine.TimerID, before int64) error {
	var damage error
	err := s.write(ctx, "remove finished timers", slotSweep, func(t *transaction) error {
		damage = nil
		var ids []engine.TimerID
		var labels []label
		q := fmt.Sprintf("%s WHERE status=%d AND ends<%d AND id IN %s ORDER BY id FOR UPDATE", selectRow, engine.Finished, before, appendIDs(nil, found))
		labelled := map[engine.TimerID][]label{}
		err := t.scan(q, func(rows *sql.Rows) error {
			r, err := readable(rows, &damage)
			if r == nil {
				return err
			}
			ids, labelled[r.timer.ID] = append(ids, r.timer.ID), labelsOf(r)
			return nil
		})
		if err == nil {
			ids, err = notOwed(t.scan, ids) // since it was looked at
		}
		if err == nil && len(ids) == 0 {
			err = errNothing
		}
		if err != nil {
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
		if err := count(t, s.slots, [3]int64{engine.Finished: -int64(len(ids))}); err != nil {
			return err
		}
		return note(t, &s.newest.noted, s.slots, slices.Max(ids))
	})
	return cmp.Or(err, damage)
}
