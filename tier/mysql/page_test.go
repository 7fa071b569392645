package mysql

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"

	"xtimer/engine"
)

// TestPagesReadOnce: a walk of many pages reads each row about once. Where the
// server does not go by the whole key, each page costs all that came before it.
func TestPagesReadOnce(t *testing.T) {
	s := opened(t)
	const n, limit = 6000, 200
	var cs []*engine.Change
	st := &engine.Settlement{Owner: "n"}
	for i := range n {
		x := benchTimer(i)
		x.Labels = []engine.Label{{Key: "k", Value: "v"}}
		switch i % 3 {
		case 1:
			x.Schedule, x.At, x.LastDue = engine.Schedule{Cron: "* * * * *"}, 0, 0
		case 2:
			x.Status = engine.Finished
		}
		cs = append(cs, create(x))
		dead := &engine.Task{Key: engine.Key{Timer: 1, Due: benchNow + int64(i)}, Status: engine.Dead}
		st.Tasks = append(st.Tasks, engine.Record{Key: dead.Key, Status: dead.Status, Encoded: engine.AppendTask(nil, dead)})
		st.Owe = append(st.Owe, engine.Owed{Key: dead.Key, NotBefore: benchNow + int64(i/100)})
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if _, err := s.db.Exec("ANALYZE TABLE timers, labels, tasks, owed"); err != nil {
		t.Fatal(err)
	}
	read := countReads(t, s)
	list := func(f engine.TimerFilter) func() int {
		return func() (told int) {
			for cursor := ""; ; {
				ts, next, err := s.Timers(t.Context(), f, cursor, limit)
				if err != nil {
					t.Fatal(err)
				}
				told += len(ts)
				if cursor = next; next == "" {
					return told
				}
			}
		}
	}
	history := func(f engine.TaskFilter) func() int {
		return func() (told int) {
			for before := (engine.Key{}); ; {
				ts, next, err := s.Tasks(t.Context(), f, before, limit)
				if err != nil {
					t.Fatal(err)
				}
				told += len(ts)
				if before = next; next == (engine.Key{}) {
					return told
				}
			}
		}
	}
	label := []engine.LabelMatch{{Key: "k", Value: "v"}}
	due := func(of engine.Set) func() int {
		return func() (told int) {
			err := s.Due(t.Context(), of, benchNow, benchNow+dayMs, func(cs []engine.Candidate) error { told += len(cs); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return told
		}
	}
	owed := func(of engine.Set) func() int {
		return func() (told int) {
			err := s.Owed(t.Context(), of, 0, benchNow+dayMs, func(os []engine.Owed) error { told += len(os); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return told
		}
	}
	one := engine.TimerID(1).Shard()
	var most engine.Set
	for i := range most {
		most[i] = 0x7777_7777_7777_7777
	}
	for name, walk := range map[string]func() int{
		"due":                  due(engine.AllShards),
		"due of most":          due(most),
		"owed":                 owed(engine.AllShards),
		"owed of one shard":    owed(engine.SetOf(one)),
		"owed of three shards": owed(engine.SetOf(one-1, one, one+1)),
		"owed of one timer": func() (told int) {
			for after := int64(-1); ; {
				page, err := s.OwedPage(t.Context(), 1, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				told += len(page)
				if len(page) < limit {
					return told
				}
				after = page[limit-1].Key.Due
			}
		},
		"owed in a lane": func() (told int) {
			for after := (engine.Place{}); ; {
				page, err := s.OwedIn(t.Context(), engine.AllShards, 0, after, benchNow+dayMs, limit)
				if err != nil {
					t.Fatal(err)
				}
				told += len(page)
				if len(page) < limit {
					return told
				}
				after = page[limit-1].Place()
			}
		},
		"what ended": func() (told int) {
			for mark := (sweepMark{id: 1}); ; {
				ids, next, err := s.ended(t.Context(), engine.Finished, mark, benchNow+dayMs)
				if err != nil {
					t.Fatal(err)
				}
				told += len(ids)
				if mark = next; mark == (sweepMark{}) {
					return told
				}
			}
		},
		"list":                list(engine.TimerFilter{}),
		"list by app":         list(engine.TimerFilter{App: "billing"}),
		"list by prefix":      list(engine.TimerFilter{App: "billing", NamePrefix: "order-"}),
		"list by status":      list(engine.TimerFilter{HasStatus: true}),
		"list by app, status": list(engine.TimerFilter{App: "billing", HasStatus: true}),
		"list of finished":    list(engine.TimerFilter{HasStatus: true, Status: engine.Finished}),
		"list by label":       list(engine.TimerFilter{Labels: label}),
		"history":             history(engine.TaskFilter{}),
		"history of a timer":  history(engine.TaskFilter{Timer: 1}),
		"history of failures": history(engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Dead}}),
	} {
		before := read()
		told := walk()
		cost := read() - before
		if told < n/3 || cost > 4*told {
			t.Errorf("%s: %d rows read for %d told", name, cost, told)
		}
	}
}

// TestObjectsInPages: a walk of all objects reads each about once, a thousand at a time; of large
// objects so many as fit into a page.
func TestObjectsInPages(t *testing.T) {
	s := opened(t)
	const n, large, size = 3000, 150, 32 << 10
	var puts []engine.ObjectPut
	for i := range n + large {
		o := &engine.Object{ObjectKey: engine.ObjectKey{Kind: "flow", App: fmt.Sprint("app-", i%3), Name: fmt.Sprintf("%05d", i)}, Version: 1, Body: []byte("{}")}
		if i >= n {
			o.Kind, o.Body = "channel", bytes.Repeat([]byte("x"), size)
		}
		puts = append(puts, engine.ObjectPut{Object: o})
	}
	for len(puts) > 0 {
		m := min(250, len(puts))
		if err := s.PutObjects(t.Context(), puts[:m]...); err != nil {
			t.Fatal(err)
		}
		puts = puts[m:]
	}
	if _, err := s.db.Exec("ANALYZE TABLE objects"); err != nil {
		t.Fatal(err)
	}
	read := countReads(t, s)
	s.pageBytes = 4 * size
	told, pages, most := 0, 0, 0 // most: large ones in a page, after the first
	before := read()
	err := s.Objects(t.Context(), func(page []engine.Object) error {
		if told > 0 && page[0].Kind == "channel" {
			most = max(most, len(page))
		}
		told, pages = told+len(page), pages+1
		return nil
	})
	cost := read() - before
	if err != nil || told != n+large || cost > 4*told || pages > 10 || most != 10 {
		t.Errorf("%d objects of %d in %d pages, %d large ones at most, %d rows read, %v", told, n+large, pages, most, cost, err)
	}
}

// countReads counts the rows that the server has read for the only session of a store.
func countReads(t *testing.T, s *Store) func() int {
	s.db.SetMaxOpenConns(1) // what a session reads is counted by session
	return func() (sum int) {
		t.Helper()
		q := "SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name='Handler_icp_attempts'"
		err := s.scan(t.Context(), q, func(rows *sql.Rows) error {
			var name string
			var n int
			err := rows.Scan(&name, &n)
			sum += n
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
}

// TestOneOfManyIsRead: what asks for one row of each lane, or of each timer, does not read
// the others.
func TestOneOfManyIsRead(t *testing.T) {
	s := opened(t)
	const n = 6000
	st := &engine.Settlement{Owner: "n"}
	for i := range n {
		st.Owe = append(st.Owe, engine.Owed{Key: engine.Key{Timer: engine.TimerID(1 + i%2), Due: benchNow + int64(i)}, NotBefore: benchNow + int64(i), Lane: engine.Lane(i % 3)})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	for id := engine.TimerID(1); id <= 3; id++ {
		var b []byte
		for v := range 500 {
			b = fmt.Appendf(b, "(%d,%d,%d,0,''),", id, v+1, benchNow)
		}
		if _, err := s.db.Exec("INSERT INTO versions (timer,version,`until`,deleted,definition) VALUES " + string(b[:len(b)-1])); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec("ANALYZE TABLE owed, versions"); err != nil {
		t.Fatal(err)
	}
	read := countReads(t, s)
	for name, ask := range map[string]func() (int, error){
		"lanes": func() (int, error) {
			lanes, err := s.Lanes(t.Context(), engine.AllShards, benchNow)
			return len(lanes), err
		},
		"which are not owed": func() (int, error) {
			ids, err := s.notOwed(t.Context(), []engine.TimerID{1, 2, 3, 4})
			return len(ids) - 1, err
		},
		"which have lived": func() (int, error) {
			tx, err := s.db.BeginTx(t.Context(), nil)
			if err != nil {
				return 0, err
			}
			defer func() { _ = tx.Rollback() }()
			ids, err := lifeIDs(t.Context(), tx, 0, 2)
			return len(ids) - 1, err
		},
	} {
		before := read()
		found, err := ask()
		if cost := read() - before; found != 1 || err != nil || cost > 100 {
			t.Errorf("%s: %d found, %d rows read, %v", name, found, cost, err)
		}
	}
}

// TestDuePagesByBytes: where definitions are large, or are after many that were not, Due
// has as many of them at a time as fit into memory, and all of each shard in their order.
func TestDuePagesByBytes(t *testing.T) {
	s := opened(t)
	s.pageBytes = 64 << 10
	const n, large = 800, 4 << 10
	var cs []*engine.Change
	for i := range n {
		x := shot(engine.TimerID(i+1), fmt.Sprint("n", i))
		x.At = benchNow + 1 + int64(i)
		x.LastDue, x.Schedule.At = x.At, x.At
		if i >= 600 {
			x.Callback.Body = bytes.Repeat([]byte{'x'}, large)
		}
		cs = append(cs, create(x))
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	dues := map[int]int64{}
	told, pages := 0, 0
	err := s.Due(t.Context(), engine.AllShards, benchNow-1, benchNow+n, func(page []engine.Candidate) error {
		size := 0
		for _, c := range page {
			size += len(c.Definition)
			if shard := c.ID.Shard(); c.Due > dues[shard] {
				dues[shard] = c.Due
				told++
			}
		}
		if size > 4*s.pageBytes+2*large {
			t.Errorf("%d have %d bytes", len(page), size)
		}
		pages++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if told != n || pages < 8 {
		t.Errorf("%d of %d are told in the order of their shards, in %d pages", told, n, pages)
	}
}

// TestListPagesByBytes: a page of large timers fits into memory, whatever its limit.
func TestListPagesByBytes(t *testing.T) {
	s := opened(t)
	const n = 48
	for i := range n {
		x := shot(engine.TimerID(i+1), fmt.Sprint("n", i))
		x.Callback.Body = bytes.Repeat([]byte{'x'}, 500<<10)
		mustApply(t, s, create(x))
	}
	told := 0
	for next := ""; told == 0 || next != ""; {
		ts, cursor, err := s.Timers(t.Context(), engine.TimerFilter{}, next, 1000)
		if err != nil || len(ts) == 0 {
			t.Fatal(len(ts), err)
		}
		size := 0
		for _, x := range ts {
			size += len(x.Callback.Body)
		}
		if size > 17<<20 {
			t.Errorf("%d timers of %d bytes", len(ts), size)
		}
		told, next = told+len(ts), cursor
	}
	if told != n {
		t.Errorf("%d of %d", told, n)
	}
}
