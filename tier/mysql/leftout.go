package mysql

import (
	"context"
	"database/sql"
	"fmt"
)

const minute = 60_000 // ms

// LeftOut lists the minutes of [from, to) whose history is incomplete.
func (s *Store) LeftOut(ctx context.Context, from, to int64) (minutes []int64, err error) {
	err = s.read(ctx, "read what was left out", func(ctx context.Context) error {
		minutes = nil
		q := fmt.Sprintf("SELECT minute FROM left_out WHERE minute>%d AND minute<%d ORDER BY minute", from-minute, to)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			var m int64
			err := rows.Scan(&m)
			minutes = append(minutes, m)
			return err
		})
	})
	return minutes, err
}

// leaveOut notes minutes; most are noted already.
func leaveOut(t *transaction, minutes []int64) error {
	if len(minutes) == 0 {
		return nil
	}
	return t.many("INSERT IGNORE INTO left_out (minute) VALUES ", ",", "", len(minutes), func(b []byte, i int) []byte {
		return append(appendInts(append(b, '('), minutes[i]), ')')
	})
}

// forgetLeftOut removes the minutes of before history begins.
func (s *Store) forgetLeftOut(ctx context.Context, before int64) (more bool, err error) {
	minutes, err := s.LeftOut(ctx, 0, before-minute+1)
	if len(minutes) == 0 || err != nil {
		return false, err
	}
	return false, s.transact(ctx, "forget what was left out", func(t *transaction) error {
		return t.run(fmt.Sprintf("DELETE FROM left_out WHERE minute<=%d", before-minute))
	})
}
