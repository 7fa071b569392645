package tiertest

import (
	"cmp"
	"fmt"
	"slices"

	"xtimer/engine"
)

// past makes n records of ten timers over three days, of all final statuses.
func (s *cold) past(n int) (ts []*engine.Task) {
	s.Helper()
	for i := range n {
		t := task(engine.TimerID(i*7%10+1), t0+int64(i)*3*day/int64(n), engine.Succeeded+engine.TaskStatus(i%7), 1+i%3)
		t.App = fmt.Sprint("app", i%3)
		t.Origin = engine.Origin(i % 4)
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
	} {
		for _, limit := range []int{2, 1000} {
			s.same(fmt.Sprintf("%+v by %d", f, limit), s.history(f, limit), keysOf(ts, f))
		}
	}
}

func historyPages(s *cold) {
	ts := s.past(300)
	for _, f := range []engine.TaskFilter{{}, {Timer: 8}, {Statuses: []engine.TaskStatus{engine.Dead}}} {
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
