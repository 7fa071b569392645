package mysql

import (
	"database/sql"
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
	s.db.SetMaxOpenConns(1) // what a session reads is counted by session
	read := func() (sum int) {
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
	for name, walk := range map[string]func() int{
		"due": func() (told int) {
			err := s.Due(t.Context(), benchNow, benchNow+dayMs, func(cs []engine.Candidate) error { told += len(cs); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return told
		},
		"owed": func() (told int) {
			err := s.Owed(t.Context(), 0, benchNow+dayMs, func(os []engine.Owed) error { told += len(os); return nil })
			if err != nil {
				t.Fatal(err)
			}
			return told
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
