package tiertest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"xtimer/engine"
)

// past makes n records of ten timers over three days, of all final statuses.
func (s *cold) past(n int) (ts []*engine.Task) {
	s.Helper()
	for i := range n {
		t := task(engine.TimerID(i*7%10+1), t0+int64(i)*3*day/int64(n), engine.Succeeded+engine.TaskStatus(i%7), 1+i%3)
		t.App = fmt.Sprint("app", i%3)
		t.Origin = engine.Origin(i % 4)
		t.Name = fmt.Sprint("name", i%4)
		if t.Status == engine.Skipped && i%2 == 0 {
			t.Reason = engine.ReasonMisfire
		}
		switch last := &t.Attempts[len(t.Attempts)-1]; i % 3 {
		case 0:
			last.Code, last.ErrorClass = 0, "timeout"
		case 1:
			last.ErrorClass, last.Response = "status", []byte("an X for out")
		}
		if t.Status.IsFailure() && i%5 < 2 {
			t.Dismissed, t.DismissedBy = t0, "somebody"
		}
		ts = append(ts, t)
	}
	for part := range slices.Chunk(ts, 100) {
		s.settleTasks(part...)
	}
	slices.SortFunc(ts, func(a, b *engine.Task) int {
		return cmp.Or(cmp.Compare(b.Key.Due, a.Key.Due), cmp.Compare(b.Key.Timer, a.Key.Timer))
	})
	return ts
}

func keysOf(ts []*engine.Task, f engine.TaskFilter) (ks []engine.Key) {
	for _, t := range ts {
		if f.Matches(t) {
			ks = append(ks, t.Key)
		}
	}
	return ks
}

func historyOrder(s *cold) {
	s.settleTasks(
		task(2, t0, engine.Succeeded, 1), task(1, t0, engine.Succeeded, 1), task(1, t0+hour, engine.Dead, 1),
		task(3, t0-hour, engine.Succeeded, 1), task(1<<62, t0, engine.Succeeded, 1),
	)
	want := []engine.Key{{Timer: 1, Due: t0 + hour}, {Timer: 1 << 62, Due: t0}, {Timer: 2, Due: t0}, {Timer: 1, Due: t0}, {Timer: 3, Due: t0 - hour}}
	for limit := 1; limit < 7; limit++ {
		s.same("history", s.history(engine.TaskFilter{}, limit), want)
	}
}

func historyFilters(s *cold) {
	ts := s.past(700)
	statuses := func(sts ...engine.TaskStatus) engine.TaskFilter { return engine.TaskFilter{Statuses: sts} }
	mixed := statuses(engine.Dead, engine.Missed)
	mixed.App, mixed.From, mixed.To = "app1", t0+hour, t0+2*day
	ofTimer := statuses(engine.Failed)
	ofTimer.Timer = 4
	for _, f := range []engine.TaskFilter{
		{},
		{App: "app1"},
		{Timer: 3},
		{Timer: 99},
		{From: t0 + day, To: t0 + 2*day},
		{From: t0 + day},
		{To: t0 + day},
		{Timer: 5, From: t0 + day + hour/2, To: t0 + day + 7*hour},
		{Timer: 5, From: ts[200].Key.Due, To: ts[100].Key.Due},
		{HasOrigin: true, Origin: engine.FromManual},
		{HasOrigin: true},
		statuses(engine.Succeeded),
		statuses(engine.Failed),
		statuses(engine.Failed, engine.Dead, engine.Unknown, engine.Missed),
		statuses(engine.Succeeded, engine.Dead),
		mixed, ofTimer,
		{Misfires: true},
		{Misfires: true, App: "app1", From: t0 + hour, To: t0 + 2*day},
		{Misfires: true, Timer: 4},
		{CodeFrom: 500, CodeTo: 599},
		{Class: "timeout"},
		{Search: "NAME1"},
		{Search: "Out"},
		{App: "app1", Search: "x"},
		{HasDismissed: true, Dismissed: true},
		{HasDismissed: true, Statuses: []engine.TaskStatus{engine.Dead}},
	} {
		for _, limit := range []int{2, 1000} {
			s.same(fmt.Sprintf("%+v by %d", f, limit), s.history(f, limit), keysOf(ts, f))
		}
	}
}

func historyPages(s *cold) {
	ts := s.past(300)
	for _, f := range []engine.TaskFilter{{}, {Timer: 8}, {Statuses: []engine.TaskStatus{engine.Dead}}, {Misfires: true}} {
		want := keysOf(ts, f)
		// From any key on, whether there is a record of it or not.
		for _, before := range []engine.Key{want[3], {Timer: want[3].Timer, Due: want[3].Due + 1}, {Timer: 1 << 62, Due: want[3].Due}, {Due: want[3].Due}} {
			var rest []engine.Key
			for _, k := range want {
				if k.Due < before.Due || k.Due == before.Due && k.Timer < before.Timer {
					rest = append(rest, k)
				}
			}
			var got []engine.Key
			for next := before; ; {
				page, n, err := s.Tasks(s.ctx, f, next, 7)
				s.ok(err)
				for _, t := range page {
					got = append(got, t.Key)
				}
				if next = n; next == (engine.Key{}) {
					break
				}
			}
			s.same(fmt.Sprintf("%+v before %v", f, before), got, rest)
		}
	}
}

func lastTask(s *cold) {
	_, err := s.LastTask(s.ctx, 1)
	s.is(err, engine.ErrNotFound)
	s.settleTasks(task(1, t0, engine.Succeeded, 1), task(2, t0+hour, engine.Succeeded, 1), task(1, t0-day, engine.Succeeded, 1), task(3, t0-20*day, engine.Dead, 4))
	for id, due := range map[engine.TimerID]int64{1: t0, 2: t0 + hour, 3: t0 - 20*day} {
		got, err := s.LastTask(s.ctx, id)
		s.ok(err)
		s.same("last", got.Key, engine.Key{Timer: id, Due: due})
	}
	_, err = s.LastTask(s.ctx, 4)
	s.is(err, engine.ErrNotFound)
}

func ranks(s *cold) {
	tasks := []*engine.Task{task(1, t0, engine.Retrying, 1), task(2, t0, engine.Succeeded, 3), task(1, t0+1, engine.Skipped, 0), task(4, t0, engine.Dead, 2)}
	tasks[2].DueLast, tasks[2].Count = t0+hour, 61
	s.settleTasks(tasks...)
	var keys []engine.Key
	var want []engine.Rank
	for i := range 300 { // many, of which some have a record
		keys, want = append(keys, engine.Key{Timer: 3, Due: t0 + int64(i)}), append(want, engine.Rank{})
		if i%50 == 0 {
			t := tasks[i/50%len(tasks)]
			keys, want = append(keys, t.Key), append(want, engine.RankOf(t))
		}
	}
	got, err := s.Ranks(s.ctx, keys)
	s.ok(err)
	s.same("ranks", got, want)
	none, err := s.Ranks(s.ctx, nil)
	s.ok(err)
	s.same("none", len(none), 0)
}

func taken(s *cold) {
	ranged := func(id engine.TimerID, from, to int64) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: id, Due: from}, To: to, NotBefore: from}
	}
	var ranges, rows []engine.Owed
	var tasks []*engine.Task
	var want []bool
	for id := engine.TimerID(1); id <= 600; id++ { // many, each of another timer
		due, from, to := t0+day+int64(id), t0+day, t0+day+hour
		is := false
		switch id % 8 {
		case 0: // nothing
		case 1:
			tasks, is = append(tasks, task(id, due, engine.Succeeded, 1)), true
		case 2:
			tasks, from, to, is = append(tasks, task(id, due, engine.Missed, 0)), due, due, true
		case 3: // before and after
			tasks, from = append(tasks, task(id, due-1, engine.Succeeded, 1), task(id, to+1, engine.Succeeded, 1)), due
			rows = append(rows, owed(id, due-2, due), owed(id, to+2, due))
		case 4:
			rows, is = append(rows, owed(id, due, due)), true
		case 5:
			rows, from, to, is = append(rows, owed(id, due, due)), due, due, true
		case 6:
			rows = append(rows, ranged(id, from, to), ranged(id, due, due+1))
		case 7: // a row behind many ranges
			for i := range int64(40) {
				rows = append(rows, ranged(id, from+i, from+i))
			}
			rows, is = append(rows, owed(id, from+50, due)), true
		}
		ranges, want = append(ranges, ranged(id, from, to)), append(want, is)
	}
	s.settleTasks(tasks...)
	s.settle(&engine.Settlement{Owner: "n", Owe: rows})
	got, err := s.Taken(s.ctx, ranges)
	s.ok(err)
	s.same("taken", got, want)
	none, err := s.Taken(s.ctx, nil)
	s.ok(err)
	s.same("none", len(none), 0)
}

// A due is taken at every instant while the record of its end replaces its row.
func takenMeanwhile(s *cold) {
	const n = 500
	var rows, ranges []engine.Owed
	for i := range int64(n) {
		rows = append(rows, owed(engine.TimerID(i+1), t0+i, t0))
		ranges = append(ranges, engine.Owed{Key: engine.Key{Timer: engine.TimerID(i + 1), Due: t0 + i - 1}, To: t0 + i})
	}
	s.settle(&engine.Settlement{Owner: "n", Owe: rows})
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for _, o := range rows {
			_ = s.Settle(s.ctx, &engine.Settlement{Owner: "n", Pay: []engine.Key{o.Key}, Tasks: []engine.Record{record(task(o.Key.Timer, o.Key.Due, engine.Succeeded, 1))}})
		}
	})
	looks, not := 0, 0
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		for from := 0; from < n; from += 250 {
			taken, err := s.Taken(s.ctx, ranges[from:from+250])
			s.ok(err)
			for _, is := range taken {
				if !is {
					not++
				}
			}
			looks++
		}
	}
	wg.Wait()
	if not > 0 {
		s.Errorf("%d times of %d looks a due that has a row, and then a record, is not taken", not, looks)
	}
}

func recordReplaces(s *cold) {
	full := task(1, t0, engine.Dead, 3)
	full.Name, full.Reason, full.Lateness, full.Ended = "näme", engine.ReasonAttempts, 412_000, t0+99
	full.DueLast, full.Count, full.NotBefore = t0+hour, 61, t0+1
	full.Attempts[1].ErrorClass, full.Attempts[1].Response = "timeout", []byte{0, 1, 255}
	s.settleTasks(task(1, t0, engine.Retrying, 1))
	s.settleTasks(full)
	got, err := s.Task(s.ctx, full.Key)
	s.ok(err)
	s.same("record", got, full)
	dead := engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Dead}}
	s.same("dead", s.history(dead, 10), []engine.Key{full.Key})
	s.same("retrying", s.history(engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Retrying}}, 10), []engine.Key(nil))
	s.settleTasks(task(1, t0, engine.Succeeded, 4)) // a redrive
	s.same("no more dead", s.history(dead, 10), []engine.Key(nil))
	s.same("all", s.history(engine.TaskFilter{}, 10), []engine.Key{full.Key})
	s.same("of the timer", s.history(engine.TaskFilter{Timer: 1}, 10), []engine.Key{full.Key})
	_, err = s.Task(s.ctx, engine.Key{Timer: 1, Due: t0 + 1})
	s.is(err, engine.ErrNotFound)
}

// historyOfOneShots: such a record need not be in an index by timer.
func historyOfOneShots(s *cold) {
	a := shot(1, "a", t0+hour)
	s.create(a, shot(2, "b", t0+hour))
	alone := func(due int64) { s.settleAlone(task(1, due, engine.Succeeded, 1)) }
	of := func(what, want string) {
		s.Helper()
		s.same(what, fmt.Sprint(s.history(engine.TaskFilter{Timer: 1}, 1), s.history(engine.TaskFilter{Timer: 1}, 10)), want)
	}
	of("none", "[] []")
	alone(t0 + hour)
	s.settleTasks(task(1, t0+hour+5, engine.Succeeded, 1), task(2, t0+hour, engine.Succeeded, 1)) // by hand; another's
	first, hand, second := engine.Key{Timer: 1, Due: t0 + hour}, engine.Key{Timer: 1, Due: t0 + hour + 5}, engine.Key{Timer: 1, Due: t0 + 3*hour}
	want := fmt.Sprint([]engine.Key{hand, first})
	of("one", want+" "+want)
	next := s.rearm(a, t0+2*hour, t0+3*hour)
	of("changed, not finished", want+" "+want)
	alone(t0 + 3*hour)
	want = fmt.Sprint([]engine.Key{second, hand, first})
	of("changed", want+" "+want)
	s.delete(next)
	of("deleted", want+" "+want)

	// One that retention removes: its records stay as long as history does.
	b := task(2, t0+hour, engine.Succeeded, 1)
	s.settleAlone(b)
	s.watermark(t0 + 5*hour)
	s.sweep(t0+day, t0+12*hour, 0)
	if _, err := s.Timer(s.ctx, 2); !errors.Is(err, engine.ErrNotFound) {
		s.Fatalf("the finished timer: %v", err)
	}
	s.same("removed", s.history(engine.TaskFilter{Timer: 2}, 10), []engine.Key{b.Key})
}

// settleAlone settles the record of the last due of a one-shot.
func (s *cold) settleAlone(t *engine.Task) {
	s.Helper()
	r := record(t)
	r.Alone = true
	s.settle(&engine.Settlement{Owner: "n", Tasks: []engine.Record{r}})
}

// rearm gives a one-shot another due.
func (s *cold) rearm(t *engine.Timer, from, due int64) *engine.Timer {
	s.Helper()
	next := edited(t, func(t *engine.Timer) {
		t.Schedule.At, t.At, t.LastDue, t.ValidFrom = due, due, due, from
		t.Generation++
	})
	s.change(t, next)
	return next
}

// historyOfFormerOneShots: records stay as long as history does, though the
// versions that they are of are removed with their timer, or forgotten.
func historyOfFormerOneShots(s *cold) {
	first, second := task(1, t0+hour, engine.Succeeded, 1), task(1, t0+3*hour, engine.Succeeded, 1)
	again := shot(1, "again", t0+hour)
	s.create(again)
	s.settleAlone(first)
	s.rearm(again, t0+2*hour, t0+3*hour)
	s.settleAlone(second)
	gone, edit := shot(2, "gone", t0+hour), shot(3, "edited", t0+hour)
	s.create(gone, edit)
	of2, of3 := task(2, t0+hour, engine.Dead, 1), task(3, t0+hour, engine.Succeeded, 1)
	s.settleAlone(of2)
	s.settleAlone(of3)
	s.delete(gone)
	s.rearm(edit, t0+2*hour, t0+30*day)
	look := func(what string) {
		s.Helper()
		for id, want := range map[engine.TimerID][]engine.Key{1: {second.Key, first.Key}, 2: {of2.Key}, 3: {of3.Key}} {
			s.same(fmt.Sprintf("%s, timer %d", what, id), s.history(engine.TaskFilter{Timer: id}, 10), want)
		}
	}
	look("before")
	s.watermark(t0 + 5*hour)
	s.sweep(t0+day, t0+12*hour, 0)
	if _, err := s.Timer(s.ctx, 1); !errors.Is(err, engine.ErrNotFound) {
		s.Fatalf("the finished timer: %v", err)
	}
	look("removed")
	s.sweep(t0+day, t0+12*hour, t0+6*hour) // of the same day
	for id := range engine.TimerID(4) {
		if vs, err := s.Versions(s.ctx, id, 0, 10); len(vs) > 0 || err != nil {
			s.Fatalf("versions of timer %d that are kept: %v %v", id, vs, err)
		}
	}
	look("forgotten")
}

// historyIsDense: settled together, in pieces, and once more.
func historyIsDense(s *cold) {
	var all []*engine.Task
	for i := range 900 {
		all = append(all, task(7, t0+hour-2000+int64(i)*10, engine.Succeeded, 1), task(8, t0+hour-2000+int64(i)*10, engine.Succeeded, 1))
	}
	s.settleTasks(all[:600]...)
	s.settleTasks(all[500:]...)
	s.settleTasks(all[300], all[302], all[310])
	got := s.history(engine.TaskFilter{Timer: 7}, 77)
	if len(got) != 900 {
		s.Fatalf("%d records, want 900", len(got))
	}
	for i, k := range got {
		if k != all[2*(899-i)].Key {
			s.Fatalf("record %d is %v", i, k)
		}
	}
	some := s.history(engine.TaskFilter{Timer: 8, From: t0 + hour - 50, To: t0 + hour + 20}, 3)
	s.same("a window", len(some), 7)
	last, err := s.LastTask(s.ctx, 7)
	s.ok(err)
	s.same("the newest", last.Key, all[1798].Key)
}
