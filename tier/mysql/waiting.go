package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

// Waiting counts the rows of each lane with NotBefore ≤ to, by the index alone.
func (s *Store) Waiting(ctx context.Context, to int64) (lanes []engine.LaneRows, err error) {
	err = s.read(ctx, "count what waits", func(ctx context.Context) error {
		lanes = nil
		return s.scan(ctx, fmt.Sprintf("SELECT lane,COUNT(*),MIN(not_before) FROM owed FORCE INDEX (by_lane) WHERE not_before<=%d GROUP BY lane", to), func(rows *sql.Rows) error {
			var lane int64
			var l engine.LaneRows
			err := rows.Scan(&lane, &l.Rows, &l.Oldest)
			l.Lane = engine.Lane(lane)
			lanes = append(lanes, l)
			return err
		})
	})
	return lanes, err
}
