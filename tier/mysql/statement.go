package mysql

import (
	"context"
	"database/sql"
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"

	"xtimer/engine"
)

// Statements are written out whole: a thousand rows are one pass over one
// buffer, without a value boxed for each column. Every text or blob goes
// through appendBytes; nothing else may come between quotes.

// What one statement holds at most: far below any server's max_allowed_packet.
const (
	statementRows  = 1000
	statementBytes = 1 << 20
)

func appendInt(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) }

func appendID(b []byte, id engine.TimerID) []byte { return strconv.AppendUint(b, uint64(id), 10) }

// appendInts writes integers with a comma before each but the first.
func appendInts(b []byte, vs ...int64) []byte {
	for i, v := range vs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, v)
	}
	return b
}

// appendBytes writes a literal of any bytes. The sql_mode that session sets
// leaves the backslash its meaning.
func appendBytes[T ~string | ~[]byte](b []byte, v T) []byte {
	b = append(b, "_binary'"...)
	from := 0
	for i := range len(v) {
		var c byte
		switch v[i] {
		case 0:
			c = '0'
		case '\n':
			c = 'n'
		case '\r':
			c = 'r'
		case 0x1a:
			c = 'Z'
		case '\'', '\\', '"':
			c = v[i]
		default:
			continue
		}
		b = append(b, v[from:i]...)
		b = append(b, '\\', c)
		from = i + 1
	}
	b = append(b, v[from:]...)
	return append(b, '\'')
}

// many builds statements of n items: head, the items with sep between them,
// tail; as many as the limits need. buf is what they are built in.
func many(buf *[]byte, head, sep, tail string, n int, item func(b []byte, i int) []byte, do func(query string) error) error {
	for i := 0; i < n; {
		b := append((*buf)[:0], head...)
		for first := i; i < n && i-first < statementRows && (i == first || len(b) < statementBytes); i++ {
			if i > first {
				b = append(b, sep...)
			}
			b = item(b, i)
		}
		b = append(b, tail...)
		*buf = b
		if err := do(string(b)); err != nil {
			return err
		}
	}
	return nil
}

// appendIDs writes a list of ids in brackets; there must be one.
func appendIDs(b []byte, ids []engine.TimerID) []byte {
	b = append(b, '(')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(b, id)
	}
	return append(b, ')')
}

// keyed builds statements on the rows of a table t that have one of n keys of
// several columns: head, the keys as a table k joined to t, tail.
//
// The obvious way would be (a=1 AND b=2) OR (a=…): of that the server takes the
// square. 1,000 keys of tasks took 2.1 s, joined 0.05 s.
func keyed(buf *[]byte, head string, columns []string, tail string, n int, key func(b []byte, i int) []byte, do func(query string) error) error {
	var names, on []string
	for _, c := range columns {
		names = append(names, "NULL AS "+c)
		on = append(on, "t."+c+"=k."+c)
	}
	head += " t JOIN (SELECT " + strings.Join(names, ",") + " UNION ALL SELECT "
	tail = ") k ON " + strings.Join(on, " AND ") + tail
	for i := 0; i < n; i += keyedRows {
		item := func(b []byte, j int) []byte { return key(b, i+j) }
		if err := many(buf, head, " UNION ALL SELECT ", tail, min(n-i, keyedRows), item, do); err != nil {
			return err
		}
	}
	return nil
}

// keyedRows is how many keys one statement joins.
const keyedRows = 250

// is is column=literal in a query that pages through an index by the columns
// after it. With a plain = MariaDB goes by that alone, and reads from its first
// entry to the page each time: of a million the last page read them all.
func is(column, literal string) string {
	return "(" + column + ">=" + literal + " AND " + column + "<=" + literal + ")"
}

// shardWalk is a walk through an index that begins with the shard: through one shard after
// the other, in pages.
type shardWalk struct {
	begun bool
	shard int   // that the last page ended in
	ahead []int // the shards behind it
}

// unknownShard is in rows that a former program has written since the column was made: see
// Store.fillShards. They are read with all shards.
const unknownShard = -1

func walkOf(of engine.Set) (w shardWalk) {
	if of == engine.AllShards {
		w.ahead = append(w.ahead, unknownShard)
	}
	w.ahead = slices.AppendSeq(w.ahead, of.All())
	return w
}

// enter notes the shard that a page ended in.
func (w *shardWalk) enter(shard int) {
	w.begun, w.shard = true, shard
	w.ahead = w.ahead[sort.SearchInts(w.ahead, shard+1):]
}

// where selects the rows of the next page: in the shard of the walk those behind the last
// row, in the others all.
func (w *shardWalk) where(behind, all string) string {
	var either []string
	if w.begun {
		either = append(either, inShards(w.shard)+" AND "+behind)
	}
	if len(w.ahead) > 0 {
		either = append(either, inShards(w.ahead...)+" AND "+all)
	}
	if either == nil {
		return "FALSE"
	}
	return "(" + strings.Join(either, " OR ") + ")"
}

// inShards is a condition on the column shard.
func inShards(shards ...int) string {
	if len(shards) == 1 {
		return is("shard", strconv.Itoa(shards[0]))
	}
	b := []byte("shard IN (")
	for i, shard := range shards {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, int64(shard))
	}
	return string(append(b, ')'))
}

// andIn narrows a query to the shards, where the index of the query does not begin with them.
func andIn(of engine.Set) string {
	switch of {
	case engine.AllShards:
		return ""
	case engine.Set{}:
		return " AND FALSE"
	}
	return " AND " + inShards(slices.Collect(of.All())...)
}

// keyColumns name an occurrence.
var keyColumns = []string{"timer", "due"}

func appendKey(b []byte, k engine.Key) []byte { return appendInts(b, int64(k.Timer), k.Due) }

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
