package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"xtimer/engine"
)

// duePage is how many candidates are read, and handed on, at a time. What goes to
// Redis is cut by shard, of which there are 256: with 2,000 a page an occurrence
// took 13.7 µs there, with 10,000 8.8.
const duePage = 10_000

// firstPage tells how large a definition is, and each page for the next: 10,000 of
// 512 KiB would neither be read in time nor fit into memory.
const firstPage = 100

var errEnough = errors.New("that is enough for a page")

// Due pages through every enabled timer that may have a due in (from, to]: of one shard
// after the other.
func (s *Store) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	if err := s.due(ctx, of, kindOneShot, from, to, yield); err != nil {
		return err
	}
	return s.due(ctx, of, kindRecurring, math.MinInt64, to, yield)
}

func (s *Store) due(ctx context.Context, of engine.Set, kind int, from, to int64, yield func([]engine.Candidate) error) error {
	var page []engine.Candidate
	var last engine.Candidate
	shard, walk := 0, walkOf(of)
	within := fmt.Sprintf("%s AND bound<=%d AND ", is("kind", strconv.Itoa(kind)), to)
	query := func(n int) string {
		return "SELECT shard,id,bound,definition FROM timers FORCE INDEX (by_due) WHERE " + walk.where(
			fmt.Sprintf("%s(bound>%[2]d OR bound=%[2]d AND id>%[3]d)", within, last.Due, last.ID),
			fmt.Sprintf("%sbound>%d", within, from),
		) + fmt.Sprintf(" ORDER BY shard,kind,bound,id LIMIT %d", n)
	}
	size, whole := 0, false
	for n := firstPage; ; n = min(max(s.pageBytes*len(page)/max(size, 1), 10), duePage) {
		err := s.read(ctx, "read what is due", func(ctx context.Context) error {
			page, size, whole = page[:0], 0, true
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			var all []byte // the definitions of the page
			err := s.scan(ctx, query(n), func(rows *sql.Rows) error {
				if size > 4*s.pageBytes { // larger than those before: the rest is not waited for
					whole = false
					stop()
					return errEnough
				}
				var c engine.Candidate
				var b sql.RawBytes
				if err := rows.Scan(&shard, &c.ID, &c.Due, &b); err != nil {
					return err
				}
				if cap(all)-len(all) < min(len(b), engine.MaxCarried) {
					all = make([]byte, 0, 64*1024)
				}
				at := len(all)
				all = engine.AppendCarried(all, b)
				c.Definition = all[at:len(all):len(all)]
				page = append(page, c)
				size += len(b)
				return nil
			})
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		last = page[len(page)-1] // before the page is the caller's to change
		walk.enter(shard)
		if err := yield(page); err != nil {
			return err
		}
		if whole && len(page) < n {
			return nil
		}
	}
}

// Raise stores new lower bounds, each for one version of its timer. A bound says that all dues
// before it are over, or owed. In a database that went back that is not so, and this life may be
// about to end for it; so shards are looked at as by a mark. Timers in shards that this life does
// not hold any more are left to the next owner.
func (s *Store) Raise(ctx context.Context, bounds []engine.Bound) error {
	bounds = slices.Clone(bounds)
	slices.SortStableFunc(bounds, func(a, b engine.Bound) int { return compareKeys(engine.Key{Timer: a.ID}, engine.Key{Timer: b.ID}) })
	var finished []engine.Bound
	raised := bounds[:0:0]
	for _, b := range bounds {
		if b.Finished {
			finished = append(finished, b)
		} else {
			raised = append(raised, b)
		}
	}
	for part := range slices.Chunk(raised, keyedRows) {
		err := s.write(ctx, "raise the bounds of what is due", slotRaise, func(t *transaction) error {
			held, err := s.ofHeld(t, part)
			if err != nil || len(held) == 0 {
				return cmp.Or(err, error(errNothing))
			}
			return raise(t, held)
		})
		if err != nil {
			return err
		}
	}
	for part := range slices.Chunk(finished, sweepPiece) {
		if err := s.archive(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// ofHeld are the bounds of timers in shards that this life holds. It returns an error if the
// database has lost what this life has stored of one of the shards.
func (s *Store) ofHeld(t *transaction, bs []engine.Bound) (held []engine.Bound, err error) {
	mine := s.life.Load()
	if mine == nil || len(bs) == 0 {
		return bs, nil
	}
	var of engine.Set
	for i := range bs {
		of = of.Union(engine.SetOf(bs[i].ID.Shard()))
	}
	here, lost := engine.Set{}, false
	q := fmt.Sprintf("SELECT shard,watermark FROM shards WHERE %s AND holder=%d", inShards(slices.Collect(of.All())...), mine.id)
	err = t.scan(q, func(rows *sql.Rows) error {
		var i int
		var w int64
		if err := rows.Scan(&i, &w); err != nil {
			return err
		}
		if i < 0 || i >= engine.Shards {
			return &rowError{damaged("shards", i, errNoShard)}
		}
		here, lost = here.Union(engine.SetOf(i)), lost || w < s.marked[i].Load()
		return nil
	})
	if err == nil && lost {
		err = errWentBack
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(bs), func(b engine.Bound) bool { return !here.Has(b.ID.Shard()) }), nil
}

func raise(t *transaction, bs []engine.Bound) error {
	return t.many("UPDATE timers t JOIN (SELECT NULL AS id,NULL AS version,NULL AS bound UNION ALL SELECT ", " UNION ALL SELECT ",
		") k ON k.id=t.id SET t.bound=k.bound WHERE t.version=k.version AND t.kind=2 AND t.bound<k.bound",
		len(bs), func(b []byte, i int) []byte { return appendInts(b, int64(bs[i].ID), int64(bs[i].Version), bs[i].Due) })
}
