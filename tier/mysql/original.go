package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

// OriginalRow is a timer of the original XTimer, as its table timer has it.
type OriginalRow struct {
	ID              int64
	App, Name       string
	Status          int    // 1 disabled, 2 enabled
	Cron            string // with seconds
	NotifyHTTPParam string // JSON
	Deleted         bool
}

// ReadOriginal reads the timers of an original XTimer, in the order of ids; it
// writes nothing there.
func ReadOriginal(ctx context.Context, dsn string, yield func(OriginalRow) error) error {
	p, err := connect(dsn)
	if err != nil {
		return err
	}
	defer p.close()
	const piece = 1000
	s := New(Config{DSN: dsn})
	s.pools = p
	s.opened.Store(true)
	for last, n := int64(-1), piece; n == piece; {
		var page []OriginalRow
		err := s.read(ctx, "read the timers of the original XTimer", func(ctx context.Context) error {
			page = page[:0]
			q := fmt.Sprintf("SELECT id,app,name,status,cron,notify_http_param,deleted_at IS NOT NULL FROM timer WHERE id>%d ORDER BY id LIMIT %d", last, piece)
			return s.scan(ctx, q, func(rows *sql.Rows) error {
				var r OriginalRow
				var app, name, cron, param sql.NullString
				var status sql.NullInt64
				err := rows.Scan(&r.ID, &app, &name, &status, &cron, &param, &r.Deleted)
				r.App, r.Name, r.Cron, r.NotifyHTTPParam, r.Status = app.String, name.String, cron.String, param.String, int(status.Int64)
				page = append(page, r)
				return err
			})
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := yield(r); err != nil {
				return err
			}
			last = r.ID
		}
		n = len(page)
	}
	return nil
}
