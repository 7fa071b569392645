package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"math"

	"xtimer/engine"
)

// payOwed removes rows.
func payOwed(t *transaction, keys []engine.Key) error {
	return t.keyed("DELETE t FROM owed", keyColumns, "", len(keys), func(b []byte, i int) []byte { return appendKey(b, keys[i]) })
}

// putOwed puts rows, replacing those of the same keys.
func putOwed(t *transaction, rows []engine.Owed) error {
	return t.many("INSERT INTO owed (timer,due,`until`,not_before,lane,row_bytes) VALUES ", ",",
		" ON DUPLICATE KEY UPDATE `until`=VALUES(`until`),not_before=VALUES(not_before),lane=VALUES(lane),row_bytes=VALUES(row_bytes)",
		len(rows), func(b []byte, i int) []byte {
			o := &rows[i]
			b = append(b, '(')
			b = appendInts(b, int64(o.Key.Timer), o.Key.Due, o.To, o.NotBefore, int64(o.Lane))
			b = append(b, ',')
			b = appendBytes(b, engine.AppendOwed(nil, o))
			return append(b, ')')
		})
}

func scanOwed(rows *sql.Rows) (engine.Owed, error) {
	var b sql.RawBytes
	if err := rows.Scan(&b); err != nil {
		return engine.Owed{}, err
	}
	o, err := engine.DecodeOwed(bytes.Clone(b))
	if err != nil {
		return o, &rowError{damaged("owed", o.Key, err)}
	}
	return o, nil
}

// owedPage is how many rows are handed on at a time.
const owedPage = 1000

// Owed pages through the owed rows with NotBefore in (from, to].
func (s *Store) Owed(ctx context.Context, from, to int64, yield func([]engine.Owed) error) error {
	last := engine.Owed{NotBefore: from, Key: engine.Key{Timer: math.MaxInt64, Due: math.MaxInt64}}
	all := from < 0
	if all {
		last.Key.Timer = 0
	}
	query := func() string {
		if all { // nearly all rows, in the order in which they lie
			return fmt.Sprintf("SELECT row_bytes FROM owed FORCE INDEX (PRIMARY) WHERE timer>=%[1]d AND (timer>%[1]d OR due>%[2]d) AND not_before<=%[3]d ORDER BY timer,due LIMIT %[4]d",
				last.Key.Timer, last.Key.Due, to, owedPage)
		}
		return fmt.Sprintf("SELECT row_bytes FROM owed FORCE INDEX (by_time) WHERE not_before<=%[1]d AND (not_before>%[2]d "+
			"OR not_before=%[2]d AND (timer>%[3]d OR timer=%[3]d AND due>%[4]d)) ORDER BY not_before,timer,due LIMIT %[5]d",
			to, last.NotBefore, last.Key.Timer, last.Key.Due, owedPage)
	}
	for {
		var page []engine.Owed
		err := s.read(ctx, "read what is owed", func(ctx context.Context) error {
			page = page[:0]
			return s.scan(ctx, query(), func(rows *sql.Rows) error {
				o, err := scanOwed(rows)
				page = append(page, o)
				return err
			})
		})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		last = page[len(page)-1] // before the page is the caller's to change
		n := len(page)
		if err := yield(page); err != nil {
			return err
		}
		if n < owedPage {
			return nil
		}
	}
}

// OwedPage lists the owed rows of one timer that are due after an instant.
func (s *Store) OwedPage(ctx context.Context, id engine.TimerID, after int64, limit int) (out []engine.Owed, err error) {
	err = s.read(ctx, "read what is owed of a timer", func(ctx context.Context) error {
		out = nil
		q := fmt.Sprintf("SELECT row_bytes FROM owed FORCE INDEX (PRIMARY) WHERE %s AND due>%d ORDER BY timer,due LIMIT %d", is("timer", id.String()), after, limit)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			o, err := scanOwed(rows)
			out = append(out, o)
			return err
		})
	})
	return out, err
}

// Lanes lists the lanes that have a row with NotBefore ≤ to: a look at the first row of
// each in by_lane.
func (s *Store) Lanes(ctx context.Context, to int64) (lanes []engine.Lane, err error) {
	err = s.read(ctx, "read which lanes wait", func(ctx context.Context) error {
		lanes = nil
		return s.scan(ctx, fmt.Sprintf("SELECT lane FROM owed FORCE INDEX (by_lane) GROUP BY lane HAVING MIN(not_before)<=%d", to), func(rows *sql.Rows) error {
			var lane int64
			err := rows.Scan(&lane)
			lanes = append(lanes, engine.Lane(lane))
			return err
		})
	})
	return lanes, err
}

// OwedIn lists the rows of a lane after a place.
func (s *Store) OwedIn(ctx context.Context, lane engine.Lane, after engine.Place, to int64, limit int) (out []engine.Owed, err error) {
	err = s.read(ctx, "read what waits in a lane", func(ctx context.Context) error {
		out = nil
		return s.scan(ctx, fmt.Sprintf("SELECT row_bytes FROM owed FORCE INDEX (by_lane) WHERE lane=%[1]d AND not_before<=%[2]d "+
			"AND (not_before>%[3]d OR not_before=%[3]d AND (timer>%[4]d OR timer=%[4]d AND due>%[5]d)) ORDER BY not_before,timer,due LIMIT %[6]d",
			int64(lane), to, after.NotBefore, after.Key.Timer, after.Key.Due, limit), func(rows *sql.Rows) error {
			o, err := scanOwed(rows)
			out = append(out, o)
			return err
		})
	})
	return out, err
}
