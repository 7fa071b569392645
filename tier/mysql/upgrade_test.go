package mysql

import (
	"database/sql"
	"math/rand/v2"
	"slices"
	"testing"

	"xtimer/engine"
)

// schema7 writes as a program of schema 7 did, and knows what it wrote.
type schema7 struct {
	testing.TB
	*Store
	ids []engine.TimerID
}

// write makes n timers, with two owed rows each.
func (f *schema7) write(n int) {
	f.Helper()
	f.insert(n, 2)
}

func (f *schema7) insert(n, owed int) {
	f.Helper()
	tx, err := f.db.BeginTx(f.Context(), nil)
	if err != nil {
		f.Fatal(err)
	}
	t := &transaction{tx: tx, ctx: f.Context()}
	timers := make([]*engine.Timer, n)
	for i := range timers {
		timers[i] = benchTimer(len(f.ids))
		timers[i].ID = engine.TimerID(rand.Int64())
		f.ids = append(f.ids, timers[i].ID)
	}
	err = t.many("INSERT INTO timers (id,app,name,nameless,status,version,ends,kind,bound,definition) VALUES (", "),(", ")", n, func(b []byte, i int) []byte {
		x := timers[i]
		b = append(appendID(b, x.ID), ',')
		b = append(appendBytes(b, x.App), ',')
		b = append(appendBytes(b, x.Name), ',')
		b = append(appendInts(b, 0, int64(x.Status), int64(x.Version), x.LastDue, kindOneShot, x.LastDue), ',')
		return appendBytes(b, engine.AppendTimer(nil, x))
	})
	if err != nil {
		f.Fatal(err)
	}
	err = t.many("INSERT INTO owed (timer,due,`until`,not_before,lane,row_bytes) VALUES (", "),(", ")", owed*n, func(b []byte, i int) []byte {
		o := engine.Owed{Key: engine.Key{Timer: timers[i/owed].ID, Due: benchNow + int64(i%owed)}, NotBefore: benchNow}
		b = append(appendInts(b, int64(o.Key.Timer), o.Key.Due, 0, o.NotBefore, 0), ',')
		return appendBytes(b, engine.AppendOwed(nil, &o))
	})
	if err != nil {
		f.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		f.Fatal(err)
	}
}

// shards checks the column shard of each row: it is that of the timer, and unknownShard in
// the rows of the timers written last, so many as unfilled says.
func (f *schema7) shards(unfilled int) {
	f.Helper()
	for _, q := range []string{"SELECT id,shard FROM timers", "SELECT timer,shard FROM owed WHERE due=" + string(appendInt(nil, benchNow))} {
		found := map[engine.TimerID]int{}
		err := f.scan(f.Context(), q, func(rows *sql.Rows) error {
			var id engine.TimerID
			var shard int
			err := rows.Scan(&id, &shard)
			found[id] = shard
			return err
		})
		if err != nil || len(found) != len(f.ids) {
			f.Fatalf("%s: %d rows of %d, %v", q, len(found), len(f.ids), err)
		}
		for i, id := range f.ids {
			want := id.Shard()
			if i >= len(f.ids)-unfilled {
				want = unknownShard
			}
			if found[id] != want {
				f.Fatalf("%s: timer %d has the shard %d, want %d", q, id, found[id], want)
			}
		}
	}
}

// reads checks that Due and Owed find each timer of the shards.
func (f *schema7) reads(of engine.Set) {
	f.Helper()
	var want, due, owed []engine.TimerID
	for _, id := range f.ids {
		if of.Has(id.Shard()) {
			want = append(want, id)
		}
	}
	err := f.Due(f.Context(), of, benchNow, benchNow+dayMs, func(cs []engine.Candidate) error {
		for _, c := range cs {
			due = append(due, c.ID)
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	err = f.Owed(f.Context(), of, benchNow-1, benchNow, func(os []engine.Owed) error {
		for _, o := range os {
			if o.Key.Due == benchNow {
				owed = append(owed, o.Key.Timer)
			}
		}
		return nil
	})
	if err != nil {
		f.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(due)
	slices.Sort(owed)
	if !slices.Equal(due, want) || !slices.Equal(owed, want) {
		f.Fatalf("%d timers: %d are due, %d are owed", len(want), len(due), len(owed))
	}
}

// TestUpgradeToShards: a database of schema 7 is upgraded while a former program writes, by an
// upgrade that is cut short again and again, and each row is found by its shard.
func TestUpgradeToShards(t *testing.T) {
	f := &schema7{TB: t, Store: unhurried(t)}
	var err error
	if f.pools, err = connect(f.cfg.DSN); err != nil {
		t.Fatal(err)
	}
	const schema = 8
	ms := migrations()[:schema]
	if err := f.migrateTo(t.Context(), ms[:schema-1]); err != nil {
		t.Fatal(err)
	}
	f.write(2*pieceRows + 100)
	migrate := func(ms []migration) error {
		for {
			if err := f.migrateTo(t.Context(), ms); !again(err) { // a busy machine may lose a connection
				return err
			}
		}
	}
	for _, statements := range []int{1, 3, 3, 5, len(ms[schema-1].statements)} {
		short := slices.Clone(ms)
		short[schema-1].statements = append(slices.Clone(short[schema-1].statements[:statements]), "NONSENSE")
		if err := migrate(short); number(err) != 1064 {
			t.Fatalf("%d statements: %v", statements, err)
		}
		f.write(10)
	}
	if err := migrate(ms); err != nil {
		t.Fatal(err)
	}
	f.shards(0)
	f.write(2 * keyedRows) // before it knows that it is taken over
	f.shards(2 * keyedRows)
	if err := f.release(); err != nil {
		t.Fatal(err)
	}
	open(t, f.Store)
	f.reads(engine.AllShards)
	mustTake(t, f.Store)
	f.shards(0)
	f.reads(engine.AllShards)
	for shard := range 8 {
		f.reads(engine.SetOf(shard))
	}
}
