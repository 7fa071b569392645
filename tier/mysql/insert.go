package mysql

import (
	"context"
	"database/sql"
	"math/bits"
	"strings"
)

// insert is an INSERT that the server has parsed beforehand, for 1, 2, 4 … 128
// rows: as text, more than half of what a row of timers costs it is the reading
// of that text.
type insert struct {
	head, tail string
	columns    int          // the last is []byte, and the only one that may be long
	rows       [8]*sql.Stmt // of 1<<i rows
}

// inserts are those of the tables that grow with each create and each call.
type inserts struct{ timers, tasks insert }

func newInserts() *inserts {
	return &inserts{
		timers: insert{head: "INSERT INTO timers (shard,id,app,name,nameless,status,version,ends,kind,bound,definition) VALUES ", columns: 11},
		tasks: insert{
			head: "INSERT INTO tasks (due,timer,status,failure,record) VALUES ", columns: 5,
			tail: " ON DUPLICATE KEY UPDATE status=VALUES(status),failure=VALUES(failure),record=VALUES(record)",
		},
	}
}

// prepare is done once; database/sql repeats it on each connection it is used on.
func (s *inserts) prepare(ctx context.Context, db *sql.DB) (err error) {
	for _, in := range []*insert{&s.timers, &s.tasks} {
		row := ",(?" + strings.Repeat(",?", in.columns-1) + ")"
		for i := range in.rows {
			if in.rows[i], err = db.PrepareContext(ctx, in.head+strings.Repeat(row, 1<<i)[1:]+in.tail); err != nil {
				return err
			}
		}
	}
	return nil
}

// insert inserts n rows; put appends the values of one.
func (t *transaction) insert(in *insert, n int, put func(args []any, i int) []any) error {
	for i := 0; i < n; {
		args, long := t.args[:0], 0
		for i < n && len(args) < in.columns<<(len(in.rows)-1) && long < statementBytes {
			args = put(args, i)
			long += len(args[len(args)-1].([]byte))
			i++
		}
		t.args = args
		for len(args) > 0 {
			k := bits.Len(uint(len(args)/in.columns)) - 1
			part := args[:in.columns<<k]
			if _, err := t.tx.StmtContext(t.ctx, in.rows[k]).ExecContext(t.ctx, part...); err != nil {
				return err
			}
			args = args[len(part):]
		}
	}
	return nil
}
