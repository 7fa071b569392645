package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration brings the schema from the version before to its own. Every
// statement of it can be run twice: the server commits each by itself, so one
// that was cut short is begun anew.
type migration struct {
	version    int
	statements []string
}

// migrations are the files 0001_….sql, 0002_….sql …, in order.
func migrations() []migration {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	ms := make([]migration, 0, len(files))
	for i, f := range files {
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		version, _, _ := strings.Cut(f.Name(), "_")
		m := migration{}
		if m.version, _ = strconv.Atoi(version); err != nil || m.version != i+1 {
			panic("BUG: migrations are numbered from 0001 without a gap: " + f.Name())
		}
		for q := range strings.SplitSeq(string(text), ";\n") {
			if q = strings.TrimSpace(q); q != "" {
				m.statements = append(m.statements, q)
			}
		}
		ms = append(ms, m)
	}
	return ms
}

// migrateWait is how long a start waits for another's migration, in seconds.
const migrateWait = 30

// migrate brings the schema up to date, under a lock that its connection holds:
// of several nodes that start at once one does it.
func (s *Store) migrate(ctx context.Context) error {
	return s.migrateTo(ctx, migrations())
}

func (s *Store) migrateTo(ctx context.Context, ms []migration) error {
	if err := s.try(ctx, s.patience, "reach the database", s.db.PingContext); err != nil {
		return err
	}
	conn, err := s.slow.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	unlock, err := lockSchema(ctx, conn)
	if err != nil {
		return err
	}
	defer unlock()
	run := func(q string) error {
		_, err := conn.ExecContext(ctx, q)
		if n := number(err); n == errColumnStands || n == errKeyStands {
			return nil // a migration that was cut short made it
		}
		return err
	}
	if err := run("CREATE TABLE IF NOT EXISTS migrations (version INT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL) ENGINE=InnoDB"); err != nil {
		return err
	}
	stands := 0
	err = scan(ctx, conn, "SELECT version FROM migrations ORDER BY version", func(rows *sql.Rows) error { return rows.Scan(&stands) })
	if err != nil {
		return err
	}
	if newest := len(ms); stands > newest {
		return &rowError{fmt.Errorf("the database has schema version %d, this xtimer knows up to %d: it was used by a newer xtimer, run that one or a later one",
			stands, newest)}
	}
	for _, m := range ms[stands:] {
		for _, q := range m.statements {
			err := error(nil)
			if column, ok := piecesOf(q); ok {
				err = inPieces(ctx, conn, q, column)
			} else {
				err = run(q)
			}
			if err != nil {
				return fmt.Errorf("schema version %d: %w", m.version, err)
			}
		}
		if err := run(fmt.Sprintf("INSERT INTO migrations (version,applied_at) VALUES (%d,%d)", m.version, time.Now().UnixMilli())); err != nil {
			return err
		}
	}
	return run(insertShards())
}

// pieceRows is how many rows of a migration are changed, and locked, at a time.
const pieceRows = 5000

// piecesOf is the column by which an UPDATE of a migration is cut into pieces, as its comment
// says: the first of the table's key.
func piecesOf(query string) (column string, ok bool) {
	_, after, ok := strings.Cut(query, "-- in pieces of ")
	column, _, _ = strings.Cut(after, "\n")
	return column, ok
}

// inPieces runs an UPDATE of a migration on some rows at a time: a former program may be
// writing meanwhile, and a migration that is cut short has lost one piece.
func inPieces(ctx context.Context, conn *sql.Conn, query, column string) error {
	_, after, _ := strings.Cut(query, "UPDATE ")
	table, _, _ := strings.Cut(after, " ")
	for from, more := int64(0), true; more; {
		to := int64(math.MaxInt64)
		q := fmt.Sprintf("SELECT %[1]s FROM %[2]s WHERE %[1]s>%[3]d ORDER BY %[1]s LIMIT 1 OFFSET %[4]d", column, table, from, pieceRows-1)
		more = false
		err := scan(ctx, conn, q, func(rows *sql.Rows) error {
			more = true
			return rows.Scan(&to)
		})
		for try := 0; err == nil; try++ {
			_, err = conn.ExecContext(ctx, fmt.Sprintf("%[1]s AND %[2]s>%[3]d AND %[2]s<=%[4]d", query, column, from, to))
			if !again(err) || try == tries {
				break
			}
			err = pause(ctx, try+1)
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// fillShards writes the shard into the rows of a former program that was at work during the
// migration, or after it. That program writes no more. Any process may do it, and at any time.
func (s *Store) fillShards(ctx context.Context) error {
	for _, of := range []struct{ table, timer string }{{"timers", "id"}, {"owed", "timer"}} {
		for more := true; more; {
			err := s.transact(ctx, "fill the shards of rows", func(t *transaction) error {
				var ids []engine.TimerID
				q := fmt.Sprintf("SELECT DISTINCT %s FROM %s WHERE %s LIMIT %d", of.timer, of.table, inShards(unknownShard), keyedRows)
				err := t.scan(q, func(rows *sql.Rows) error {
					var id engine.TimerID
					err := rows.Scan(&id)
					ids = append(ids, id)
					return err
				})
				if more = len(ids) > 0; !more || err != nil {
					return cmp.Or(err, error(errNothing))
				}
				return t.many("UPDATE "+of.table+" t JOIN (SELECT NULL AS timer,NULL AS shard UNION ALL SELECT ", " UNION ALL SELECT ",
					") k ON k.timer=t."+of.timer+" SET t.shard=k.shard WHERE t.shard="+strconv.Itoa(unknownShard),
					len(ids), func(b []byte, i int) []byte { return appendInts(b, int64(ids[i]), int64(ids[i].Shard())) })
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// lockSchema takes the lock of this database's schema.
func lockSchema(ctx context.Context, conn *sql.Conn) (unlock func(), err error) {
	// The name of a lock is the server's, of all databases; 64 bytes at most. MySQL
	// 9.6 has no MD5 any more.
	const name = "CONCAT('xtimer.',SHA2(DATABASE(),224))"
	var got sql.NullInt64
	err = scan(ctx, conn, fmt.Sprintf("SELECT GET_LOCK(%s,%d)", name, migrateWait), func(rows *sql.Rows) error { return rows.Scan(&got) })
	if err == nil && got.Int64 != 1 {
		err = fmt.Errorf("another xtimer has been migrating the schema for %d s", migrateWait)
	}
	return func() {
		// Closing the connection would release it as well.
		_ = scan(context.WithoutCancel(ctx), conn, "SELECT RELEASE_LOCK("+name+")", func(*sql.Rows) error { return nil })
	}, err
}

// insertShards makes the row of every shard that has none.
func insertShards() string {
	b := []byte("INSERT IGNORE INTO shards (shard,fence,owner,watermark,horizon) VALUES ")
	for i := range engine.Shards {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, "(%d,0,'',0,0)", i)
	}
	return string(b)
}
