package tiertest

import (
	"context"
	"errors"
	"fmt"

	"xtimer/engine"
)

func sweepArchives(s *cold) {
	ts := make([]*engine.Timer, 0, 1300)
	for i := range 1300 {
		ts = append(ts, shot(engine.TimerID(i+1), fmt.Sprint(i), t0+int64(i+1)))
	}
	ends := recurring(5000, "ends")
	ends.LastDue = t0 + 500
	off := shot(5001, "off", t0+5)
	off.Status = engine.Disabled
	s.create(append(ts, ends, off, recurring(5002, "endless"))...)
	s.watermark(t0 + 1000)
	s.sweep(t0+1000, 0, 0)
	s.same("counts", s.counts(), engine.Counts{Enabled: 301, Disabled: 1, Finished: 1001})
	for _, id := range []engine.TimerID{1, 1000, 1001, 5000, 5001, 5002} {
		want := engine.Enabled
		switch id {
		case 1, 1000, 5000:
			want = engine.Finished
		case 5001:
			want = engine.Disabled
		}
		s.same(fmt.Sprint("timer ", id), s.get(id).Status, want)
	}
	s.same("version", s.get(1).Version, 1)
	s.same("listed", len(s.list(engine.TimerFilter{HasStatus: true, Status: engine.Finished}, 100)), 1001)
	s.same("still due", len(s.due(t0+1000, t0+2000)), 301)

	// A finished timer can be armed again.
	again := edited(s.get(1), func(t *engine.Timer) {
		t.Status, t.ValidFrom, t.At, t.LastDue, t.Schedule.At = engine.Enabled, t0+1000, t0+hour, t0+hour, t0+hour
	})
	s.change(s.get(1), again)
	s.same("due again", s.dueIDs(t0+hour-1, t0+hour), []engine.TimerID{1, 5002})
	s.sweep(t0+8*day, t0+7*day, 0)
	s.sameTimer(s.get(1), again)
	s.same("left", s.counts(), engine.Counts{Enabled: 302, Disabled: 1})
}

func sweepKeepsOwed(s *cold) {
	s.create(shot(1, "a", t0+1), shot(2, "b", t0+1))
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(1, t0+1, t0+hour)}, Marks: marks(t0 + 10)})
	s.sweep(t0+10*day, t0+9*day, 0)
	s.same("owed", s.get(1).Status, engine.Enabled)
	_, err := s.Timer(s.ctx, 2)
	s.is(err, engine.ErrNotFound)
	s.settle(&engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 1, Due: t0 + 1}}})
	s.sweep(t0+10*day, 0, 0)
	s.same("paid", s.get(1).Status, engine.Finished)
}

// sweepGoesOn: timers that are owed for long do not keep those behind them from being
// archived or removed, and are not walked through without an end.
func sweepGoesOn(s *cold) {
	const n = 4000 // as many as one call of any tier walks through
	var ts []*engine.Timer
	st := &engine.Settlement{Owner: "n", Marks: marks(t0 + n)}
	paid := &engine.Settlement{Owner: "n"}
	for i := range int64(n + 1) {
		t := shot(engine.TimerID(i+1), "", t0+i)
		ts = append(ts, t)
		if i < n {
			st.Owe = append(st.Owe, owed(t.ID, t.At, t.At+day))
			paid.Pay = append(paid.Pay, engine.Key{Timer: t.ID, Due: t.At})
		}
	}
	// rests sweeps until there is no more to do, in few calls.
	rests := func(finishedBefore int64, want engine.Counts) {
		s.Helper()
		for range 5 {
			more, err := s.Sweep(s.ctx, t0+n, finishedBefore, 0)
			s.ok(err)
			if !more {
				s.same("counts", s.counts(), want)
				return
			}
		}
		s.Fatal("it finds no rest")
	}
	s.create(ts...)
	s.settle(st)
	rests(0, engine.Counts{Enabled: n, Finished: 1})
	s.settle(paid)
	rests(0, engine.Counts{Finished: n + 1})
	s.settle(&engine.Settlement{Owner: "n", Owe: st.Owe}) // each is a redrive
	rests(t0+2*n, engine.Counts{Finished: n})
}

func sweepRemoves(s *cold) {
	old, young := shot(1, "old", t0+1), shot(2, "young", t0+day)
	old.Labels = []engine.Label{{Key: "k", Value: "v"}}
	s.create(old, young)
	s.watermark(t0 + day)
	s.sweep(t0+day, t0, 0)
	s.same("both", s.counts(), engine.Counts{Finished: 2})
	s.sweep(t0+2*day, t0+day, 0)
	_, err := s.Timer(s.ctx, 1)
	s.is(err, engine.ErrNotFound)
	_, err = s.TimerByName(s.ctx, "app", "old")
	s.is(err, engine.ErrNotFound)
	s.same("young", s.get(2).Status, engine.Finished)
	s.same("by label", s.list(engine.TimerFilter{Labels: []engine.LabelMatch{{Key: "k", Value: "v"}}}, 10), []engine.TimerID(nil))
	s.same("all", s.list(engine.TimerFilter{}, 10), []engine.TimerID{2})
	s.create(shot(3, "old", t0+2*day))
}

func sweepDropsDays(s *cold) {
	first := t0 / day * day
	var ts []*engine.Task
	for d := range int64(5) {
		for i := range int64(20) {
			t := task(engine.TimerID(i+1), first+d*day+i*hour, engine.TaskStatus(int64(engine.Succeeded)+i%4), 1)
			if t.Status == engine.Skipped {
				t.Reason = engine.ReasonMisfire
			}
			ts = append(ts, t)
		}
	}
	s.settleTasks(ts...)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(3, first+day+hour, t0+30*day)}})
	s.sweep(t0+8*day, 0, first+3*day+hour) // days 0, 1 and 2 are over
	for _, f := range []engine.TaskFilter{{}, {Timer: 3}, {Statuses: []engine.TaskStatus{engine.Failed, engine.Dead}}, {Misfires: true}} {
		for _, k := range s.history(f, 50) {
			if d := (k.Due - first) / day; d == 0 {
				s.Fatalf("%v of a day that is over is still told by %+v", k, f)
			}
		}
	}
	kept := engine.TaskFilter{From: first + 3*day}
	s.same("kept", len(s.history(kept, 50)), 40)
	s.same("kept by timer", len(s.history(engine.TaskFilter{Timer: 3, From: first + 3*day}, 50)), 2)
	_, err := s.Task(s.ctx, engine.Key{Timer: 3, Due: first + day + 2*hour})
	s.ok(err) // an owed row keeps its day
	s.settle(&engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 3, Due: first + day + hour}}})
	s.sweep(t0+8*day, 0, first+3*day+hour)
	s.same("left", len(s.history(engine.TaskFilter{}, 50)), 40)
	s.settleTasks(ts[0])
	s.same("comes late", len(s.history(engine.TaskFilter{}, 50)), 41)
}

// sweepKeepsRecords: only a record tells that a due of a range is over. A range without records keeps no history,
// though it begins before all others, as that of a timer does which was paused for months.
func sweepKeepsRecords(s *cold) {
	first := t0 / day * day
	s.create(recurring(1, "paused"), recurring(2, "b"), recurring(3, "set back"))
	ranged := func(id engine.TimerID, from, to int64) engine.Owed {
		o := owed(id, from, from)
		o.To = to
		return o
	}
	var ts []*engine.Task
	for d := range int64(6) {
		ts = append(ts, task(2, first+d*day+hour, engine.Succeeded, 1))
	}
	ts = append(ts, task(1, first+hour-1, engine.Succeeded, 1), task(3, first+2*day+hour-1, engine.Succeeded, 1), task(3, first+2*day+3*hour, engine.Skipped, 0),
		task(3, first+3*day+4*hour, engine.Succeeded, 1))
	s.settleTasks(ts...)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{
		ranged(1, first+hour, engine.Endless), ranged(3, first+2*day+hour, first+3*day+3*hour),
	}})
	days := func(want ...int64) {
		s.Helper()
		var got []int64
		for _, k := range s.history(engine.TaskFilter{Timer: 2}, 50) {
			got = append(got, (k.Due-first)/day)
		}
		s.same("the days", got, want)
	}
	sweep := func() { s.sweep(t0+8*day, 0, first+5*day+hour) }
	sweep()
	days(5, 2)
	sweep()
	days(5, 2)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{ranged(3, first+2*day+3*hour+1, first+3*day+3*hour)}, Pay: []engine.Key{{Timer: 3, Due: first + 2*day + hour}}})
	sweep()
	days(5)
}

func sweepOnce(s *cold) {
	once := engine.Once{App: "a", Key: "k\x00", Body: [32]byte{1}, Expires: t0 + hour}
	_, err := s.Apply(s.ctx, &engine.Change{Timer: shot(1, "a", t0+hour), ID: 1, Once: &once})
	s.ok(err)
	s.sweep(t0+hour-1, 0, 0)
	a, err := s.Apply(s.ctx, &engine.Change{Timer: shot(2, "b", t0+hour), ID: 2, Once: &once})
	s.ok(err)
	s.same("kept", a.Replayed, true)
	s.sweep(t0+hour, 0, 0)
	a, err = s.Apply(s.ctx, &engine.Change{Timer: shot(2, "b", t0+hour), ID: 2, Once: &once})
	s.ok(err)
	s.same("free", a.Replayed, false)
}

func survivesRestart(s *cold) {
	ts := s.zoo(60)
	v2 := edited(ts[0], func(t *engine.Timer) { t.Callback.URL += "x" })
	s.change(ts[0], v2)
	s.delete(ts[1])
	s.settle(&engine.Settlement{
		Owner: "n", Tasks: []engine.Record{record(task(1, t0, engine.Dead, 2))},
		Owe: []engine.Owed{owed(1, t0, t0+5)}, Marks: marks(t0 + 9),
	})
	look := func() string {
		shards, err := s.Shards(s.ctx)
		s.ok(err)
		vs, err := s.Versions(s.ctx, ts[0].ID, 0, 10)
		s.ok(err)
		out := fmt.Sprintf("%+v %+v %v %v %v", s.counts(), shards, len(vs), s.history(engine.TaskFilter{}, 10), s.owedIn(0, t0+day))
		for _, f := range filters() {
			out += fmt.Sprint(s.list(f, 7))
		}
		return out + fmt.Sprint(s.due(t0, t0+day))
	}
	before := look()
	for range 2 {
		s.ok(s.Close())
		s.ok(s.Open(s.ctx))
		s.same("after a restart", look(), before)
	}
	s.sameTimer(s.get(ts[0].ID), v2)
	_, err := s.Apply(s.ctx, &engine.Change{Timer: shot(ts[2].ID, "fresh", t0+hour), ID: ts[2].ID})
	s.is(err, engine.ErrConflict)
}

func contexts(s *cold) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.create(shot(1, "a", t0+1), recurring(2, "b"))
	cancel()
	if err := s.Settle(ctx, &engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(1, t0, t0)}}); err != nil && !errors.Is(err, context.Canceled) {
		s.Fatal(err)
	}
	stop := errors.New("stop")
	s.is(s.Due(s.ctx, engine.AllShards, t0, t0+hour, func([]engine.Candidate) error { return stop }), stop)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(1, t0, t0)}})
	s.is(s.Owed(s.ctx, engine.AllShards, 0, t0, func([]engine.Owed) error { return stop }), stop)
}
