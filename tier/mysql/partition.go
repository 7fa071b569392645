package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// History lies in a partition a day, made ahead of need and dropped whole:
//
//	… │ d20251119 │ d20251120 │ d20251121 │ d20251122 │ ahead
//
// A partition holds all below its end that no earlier one holds. So records of
// a day that has none, because it was dropped or nobody was there to make it,
// lie in the next; those are deleted row by row, and they are few. An import
// brings weeks of them, newest first: their days are made before.

const (
	dayMs = 24 * 3_600_000
	// daysAhead is how many days have their partition before they begin.
	daysAhead = 3
	// daysMade bounds the partitions made at once: after a long absence, for an import.
	daysMade = 32
)

// partitions knows the days that have a partition of their own, in order.
type partitions struct {
	mu   sync.Mutex  // guards days; who changes partitions has it
	days []int64     // nil: not read yet
	made atomic.Bool // some partitions stand: a replay does not wait for mu
}

// sweepHistory makes the partitions of the coming days, and drops the oldest day
// that ended before the instant and is not held by an owed row.
func (s *Store) sweepHistory(ctx context.Context, now, before int64) (more bool, err error) {
	s.days.mu.Lock()
	defer s.days.mu.Unlock()
	// Another node may have dropped partitions since this node swept last. Later records of those days lie in the next partition.
	if err := s.readPartitions(ctx); err != nil {
		s.days.days = nil
		return false, err
	}
	from := now / dayMs
	if len(s.days.days) == 0 { // what is there already has to be moved
		if day, ok, err := s.firstDay(ctx, -1<<62, from*dayMs); err != nil {
			return false, err
		} else if ok {
			from = day
		}
	}
	if err := s.makePartitions(ctx, from, now/dayMs); err != nil {
		return false, err
	}
	return s.dropDay(ctx, before)
}

// expectHistory makes the partitions of the days gone by in a database that has
// none yet. It does not know how far back what comes will go; those of days
// without a record are dropped by the next sweeps.
func (s *Store) expectHistory(ctx context.Context) error {
	if s.days.made.Load() {
		return nil
	}
	s.days.mu.Lock()
	defer s.days.mu.Unlock()
	if err := s.knowPartitions(ctx); err != nil {
		return err
	}
	today := s.clock.Load() / dayMs
	if len(s.days.days) > 0 || today == 0 {
		return nil
	}
	return s.makePartitions(ctx, today-daysMade, today)
}

// knowPartitions reads which days have one, where that is not known.
func (s *Store) knowPartitions(ctx context.Context) error {
	if s.days.days != nil {
		return nil
	}
	return s.readPartitions(ctx)
}

// readPartitions reads which days have one.
func (s *Store) readPartitions(ctx context.Context) error {
	return s.read(ctx, "read the partitions of history", func(ctx context.Context) error {
		s.days.days = []int64{}
		return s.scan(ctx, "SELECT PARTITION_DESCRIPTION FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME='tasks' "+
			"ORDER BY PARTITION_ORDINAL_POSITION", func(rows *sql.Rows) error {
			var end string
			err := rows.Scan(&end)
			if ms, e := strconv.ParseInt(end, 10, 64); e == nil { // else: MAXVALUE
				s.days.days = append(s.days.days, ms/dayMs-1)
				s.days.made.Store(true)
			}
			return err
		})
	})
}

func partitionOf(day int64) string { return time.UnixMilli(day * dayMs).UTC().Format("d20060102") }

// makePartitions splits ahead, which is empty except for what came before the first
// sweep or after a long absence: from a day on, to the coming ones.
func (s *Store) makePartitions(ctx context.Context, from, today int64) error {
	days, to := s.days.days, today+daysAhead
	if n := len(days); n > 0 {
		if days[n-1] >= to {
			return nil
		}
		from = days[n-1] + 1
	}
	from = max(from, to-daysMade)
	b := []byte("ALTER TABLE tasks REORGANIZE PARTITION ahead INTO (")
	for d := from; d <= to; d++ {
		b = fmt.Appendf(b, "PARTITION %s VALUES LESS THAN (%d),", partitionOf(d), (d+1)*dayMs)
	}
	b = append(b, "PARTITION ahead VALUES LESS THAN MAXVALUE)"...)
	return s.alter(ctx, "make the partitions of the coming days", string(b))
}

// alter changes the partitions. Another node may be doing the same: then it
// fails, and what stands is read again and will do, now or in the next sweep.
func (s *Store) alter(ctx context.Context, what, query string) error {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := s.slow.ExecContext(limited, query)
	if e := s.readPartitions(ctx); err != nil && e == nil {
		const sameName, notRising, noSuch = 1517, 1493, 1507
		if n := number(err); n == sameName || n == notRising || n == noSuch {
			return nil
		}
	}
	if err != nil {
		s.days.days = nil
	}
	return s.fault(ctx, what, err)
}

// dropDay drops the history of a day that is over and not held: a partition, if
// one has no other days, else rows.
func (s *Store) dropDay(ctx context.Context, before int64) (more bool, err error) {
	first := int64(0)
	for _, day := range s.days.days {
		if (day+1)*dayMs > before {
			break
		}
		held, err := s.holds(ctx, first, day)
		if err != nil {
			return false, err
		}
		if !held {
			return true, s.alter(ctx, "drop a day of history", "ALTER TABLE tasks DROP PARTITION "+partitionOf(day))
		}
		first = day + 1
	}
	for from := int64(-1 << 62); ; {
		day, ok, err := s.firstDay(ctx, from, before)
		if !ok || err != nil {
			return false, err
		}
		held, err := s.holds(ctx, day, day)
		if err != nil {
			return false, err
		}
		if !held {
			return true, s.deleteDay(ctx, day)
		}
		from = (day + 1) * dayMs
	}
}

// firstDay is the first day with a record from the instant on, if it is over
// before the other.
func (s *Store) firstDay(ctx context.Context, from, before int64) (day int64, ok bool, err error) {
	err = s.read(ctx, "look for old history", func(ctx context.Context) error {
		ok = false
		q := fmt.Sprintf("SELECT due FROM tasks WHERE due>=%d AND due<%d ORDER BY due LIMIT 1", from, before)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			var due int64
			err := rows.Scan(&due)
			day = due / dayMs
			ok = (day+1)*dayMs <= before
			return err
		})
	})
	return day, ok, err
}

// holds reports whether an owed row keeps the history of the days: a due of one, or a range with the due of a
// record on one, for only the record tells that the due is over. The join looks into the records of each range,
// whatever the server knows of the sizes of both. A record that is stored between this look and the drop goes with its
// day: at worst, a call of a timer that is behind by the whole retention is repeated after a kill, marked.
func (s *Store) holds(ctx context.Context, first, last int64) (held bool, err error) {
	from, to := first*dayMs, (last+1)*dayMs
	err = s.readWithin(ctx, time.Minute, "look at what is owed", func(ctx context.Context) error {
		held = false
		for _, q := range []string{
			fmt.Sprintf("SELECT 1 FROM owed WHERE `until`=0 AND due>=%d AND due<%d LIMIT 1", from, to),
			fmt.Sprintf("SELECT 1 FROM owed o STRAIGHT_JOIN tasks t FORCE INDEX (by_timer) ON t.timer=o.timer AND t.due>=o.due AND t.due<=o.`until` "+
				"WHERE o.`until`>=%d AND o.due<%d AND t.due>=%d AND t.due<%d LIMIT 1", max(from, 1), to, from, to),
		} {
			// Over the slow connection: any other connection ends a statement after readTimeout.
			if err := scan(ctx, s.slow, q, func(*sql.Rows) error { held = true; return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	return held, err
}

// deleteDay deletes some rows of a day.
func (s *Store) deleteDay(ctx context.Context, day int64) error {
	var keys []engine.Key
	err := s.read(ctx, "look for old history", func(ctx context.Context) error {
		keys = nil
		q := fmt.Sprintf("SELECT due,timer FROM tasks WHERE due>=%d AND due<%d ORDER BY due,timer LIMIT %d", day*dayMs, (day+1)*dayMs, sweepPiece)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			var k engine.Key
			err := rows.Scan(&k.Due, &k.Timer)
			keys = append(keys, k)
			return err
		})
	})
	if err != nil {
		return err
	}
	return s.write(ctx, "delete old history", slotSweep, func(t *transaction) error {
		return t.keyed("DELETE t FROM tasks", keyColumns, "", len(keys), func(b []byte, i int) []byte { return appendKey(b, keys[i]) })
	})
}
