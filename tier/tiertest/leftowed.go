package tiertest

import (
	"math"

	"xtimer/engine"
)

func owedPages(s *cold) {
	var rows []engine.Owed
	for i := range int64(25) {
		rows = append(rows, owed(7, t0+i*10, t0-i)) // in another order than they may be tried
	}
	s.settle(&engine.Settlement{Owner: "n", Owe: append(rows, owed(6, t0+5, t0), owed(8, t0+5, t0))})
	after, all := int64(-1), []engine.Owed(nil)
	for _, want := range []int{10, 10, 5, 0} {
		page, err := s.OwedPage(s.ctx, 7, after, 10)
		s.ok(err)
		s.same("rows", len(page), want)
		if all = append(all, page...); want > 0 {
			after = page[want-1].Key.Due
		}
	}
	s.same("all", all, rows)
	got, err := s.OwedPage(s.ctx, 7, t0+9, 1)
	s.ok(err)
	s.same("one", got, rows[1:2])
	got, err = s.OwedPage(s.ctx, 7, math.MaxInt64-1, 10)
	s.ok(err)
	s.same("after the last", len(got), 0)
}

// leftOwed: a change stops a timer, and leaves its rows to settlements after it. They
// are found again after a restart, by time and by timer; and of a timer that is gone
// its last version stays as long as one of them, though history ends before it.
func leftOwed(s *cold) {
	const rows, piece = 250, 100
	deleted, replaced := recurring(1, "deleted"), recurring(2, "replaced")
	s.create(deleted, replaced)
	for _, t := range []*engine.Timer{deleted, replaced} {
		st := &engine.Settlement{Owner: "n"}
		for i := range int64(rows) {
			st.Owe = append(st.Owe, owed(t.ID, t0+i*minute, t0+i))
		}
		s.settle(st)
	}
	s.delete(deleted)
	s.change(replaced, edited(replaced, func(t *engine.Timer) { t.Generation++ }))
	later := t0 + rows*minute + 90*day
	left := rows
	for left > 0 {
		s.sweep(later, later, later)
		s.ok(s.Close())
		s.ok(s.Open(s.ctx))
		s.same("by time", len(s.owedIn(-1, later)), 2*left)
		last, err := s.Versions(s.ctx, 1, 0, 1)
		s.ok(err)
		if len(last) != 1 || last[0].App != "app" || last[0].Name != "deleted" {
			s.Fatalf("with %d rows left the last version is %+v", left, last)
		}
		st := &engine.Settlement{Owner: "n"}
		for _, id := range []engine.TimerID{1, 2} {
			page, err := s.OwedPage(s.ctx, id, -1, piece)
			s.ok(err)
			for _, o := range page {
				t := task(id, o.Key.Due, engine.Cancelled, 0)
				t.Name, t.Reason = last[0].Name, engine.ReasonDeleted
				st.Pay, st.Tasks = append(st.Pay, o.Key), append(st.Tasks, record(t))
			}
		}
		s.settle(st)
		for _, r := range st.Tasks {
			_, err := s.Task(s.ctx, r.Key)
			s.ok(err)
		}
		left -= min(left, piece)
	}
	s.sweep(later, later, later)
	s.same("lives", s.lives(0, 10), "2: 2 deleted 0; ")
}
