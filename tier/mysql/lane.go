package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

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
