package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"xtimer/engine"
)

// payOwed removes rows.
func payOwed(t *transaction, keys []engine.Key) error {
	return t.keyed("DELETE t FROM owed", keyColumns, "", len(keys), func(b []byte, i int) []byte { return appendKey(b, keys[i]) })
}

// putOwed puts rows, replacing those of the same keys.
func putOwed(t *transaction, rows []engine.Owed) error {
	return t.many("INSERT INTO owed (shard,timer,due,`until`,not_before,lane,row_bytes) VALUES ", ",",
		" ON DUPLICATE KEY UPDATE shard=VALUES(shard),`until`=VALUES(`until`),not_before=VALUES(not_before),lane=VALUES(lane),row_bytes=VALUES(row_bytes)",
		len(rows), func(b []byte, i int) []byte {
			o := &rows[i]
			b = append(b, '(')
			b = appendInts(b, int64(o.Key.Timer.Shard()), int64(o.Key.Timer), o.Key.Due, o.To, o.NotBefore, int64(o.Lane))
			b = append(b, ',')
			b = appendBytes(b, engine.AppendOwed(nil, o))
			return append(b, ')')
		})
}

// owedColumns are what scanOwed reads.
const owedColumns = "t.timer,t.due,t.not_before,t.lane,t.row_bytes"

// scanOwed reads a row whose last columns are owedColumns; before are the others.
func scanOwed(rows *sql.Rows, before ...any) (engine.Owed, error) {
	var k engine.Key
	var notBefore, lane int64
	var b sql.RawBytes
	if err := rows.Scan(append(before, &k.Timer, &k.Due, &notBefore, &lane, &b)...); err != nil {
		return engine.Owed{}, err
	}
	o := engine.ReadOwed(k, bytes.Clone(b))
	if o.Damaged != nil {
		o.NotBefore, o.Lane = notBefore, engine.Lane(lane)
	}
	return o, nil
}

// owedPage is how many rows are handed on at a time.
const owedPage = 1000

// Owed pages through the owed rows of the shards with NotBefore in (from, to].
func (s *Store) Owed(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	var last engine.Owed
	walk := walkOf(of)
	query := func() string {
		if from < 0 && of == engine.AllShards { // nearly all rows, in the order in which they lie
			return fmt.Sprintf("SELECT t.shard,"+owedColumns+" FROM owed t FORCE INDEX (PRIMARY) WHERE timer>=%[1]d AND (timer>%[1]d OR due>%[2]d) AND not_before<=%[3]d ORDER BY timer,due LIMIT %[4]d",
				last.Key.Timer, last.Key.Due, to, owedPage)
		}
		return "SELECT t.shard," + owedColumns + " FROM owed t FORCE INDEX (by_time) WHERE " + walk.where(
			fmt.Sprintf("not_before<=%[1]d AND (not_before>%[2]d OR not_before=%[2]d AND (timer>%[3]d OR timer=%[3]d AND due>%[4]d))",
				to, last.NotBefore, last.Key.Timer, last.Key.Due),
			fmt.Sprintf("not_before<=%d AND not_before>%d", to, from),
		) + fmt.Sprintf(" ORDER BY shard,not_before,timer,due LIMIT %d", owedPage)
	}
	for {
		var page []engine.Owed
		shard := 0
		err := s.read(ctx, "read what is owed", func(ctx context.Context) error {
			page = page[:0]
			return s.scan(ctx, query(), func(rows *sql.Rows) error {
				o, err := scanOwed(rows, &shard)
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
		walk.enter(shard)
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
		q := fmt.Sprintf("SELECT "+owedColumns+" FROM owed t FORCE INDEX (PRIMARY) WHERE %s AND due>%d ORDER BY timer,due LIMIT %d", is("timer", id.String()), after, limit)
		return s.scan(ctx, q, func(rows *sql.Rows) error {
			o, err := scanOwed(rows)
			out = append(out, o)
			return err
		})
	})
	return out, err
}

// Lanes lists the lanes that have a row of the shards with NotBefore ≤ to. Of all shards it is
// a look at the first row of each lane in by_lane; of fewer it reads what waits in by_lane.
func (s *Store) Lanes(ctx context.Context, of engine.Set, to int64) (lanes []engine.Lane, err error) {
	query := fmt.Sprintf("SELECT lane FROM owed FORCE INDEX (by_lane) GROUP BY lane HAVING MIN(not_before)<=%d", to)
	if of != engine.AllShards {
		query = fmt.Sprintf("SELECT DISTINCT lane FROM owed FORCE INDEX (by_lane) WHERE not_before<=%d", to) + andIn(of)
	}
	err = s.read(ctx, "read which lanes wait", func(ctx context.Context) error {
		lanes = nil
		return s.scan(ctx, query, func(rows *sql.Rows) error {
			var lane int64
			err := rows.Scan(&lane)
			lanes = append(lanes, engine.Lane(lane))
			return err
		})
	})
	return lanes, err
}

// OwedIn lists the rows of the shards in a lane after a place. In a database that went back there are rows again
// of tasks that are over: it returns an error if the database has lost a commit of this life.
func (s *Store) OwedIn(ctx context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) (out []engine.Owed, err error) {
	mine, before := s.life.Load(), [slotsMade]int64{}
	if mine != nil {
		before = mine.commits()
	}
	err = s.read(ctx, "read what waits in a lane", func(ctx context.Context) error {
		out = nil
		err := s.scan(ctx, fmt.Sprintf("SELECT "+owedColumns+" FROM owed t FORCE INDEX (by_lane) WHERE lane=%[1]d AND not_before<=%[2]d "+
			"AND (not_before>%[3]d OR not_before=%[3]d AND (timer>%[4]d OR timer=%[4]d AND due>%[5]d))%[6]s ORDER BY not_before,timer,due LIMIT %[7]d",
			int64(lane), to, after.NotBefore, after.Key.Timer, after.Key.Due, andIn(of), limit), func(rows *sql.Rows) error {
			o, err := scanOwed(rows)
			out = append(out, o)
			return err
		})
		if err != nil || mine == nil || len(out) == 0 {
			return err
		}
		return mine.has(ctx, s.db, before)
	})
	return out, err
}
