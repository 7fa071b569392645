package tiertest

import (
	"fmt"
	"slices"

	"xtimer/engine"
)

func owed(id engine.TimerID, due, notBefore int64) engine.Owed {
	return engine.Owed{Key: engine.Key{Timer: id, Due: due}, Generation: 1, NotBefore: notBefore}
}

// owedIn collects what Owed tells.
func (s *cold) owedIn(from, to int64) (ks []engine.Key) {
	s.Helper()
	s.ok(s.Owed(s.ctx, engine.AllShards, from, to, func(page []engine.Owed) error {
		for _, o := range page {
			if o.NotBefore <= from || o.NotBefore > to {
				s.Fatalf("%+v is not in (%d, %d]", o, from, to)
			}
			ks = append(ks, o.Key)
		}
		return nil
	}))
	slices.SortFunc(ks, func(a, b engine.Key) int {
		return slices.Compare([]int64{int64(a.Timer), a.Due}, []int64{int64(b.Timer), b.Due})
	})
	return ks
}

func owedRows(s *cold) {
	var rows []engine.Owed
	for i := range 1200 {
		rows = append(rows, owed(engine.TimerID(i/2+1), t0+int64(i%2), t0+int64(i)))
	}
	full := owed(9000, t0, t0+5)
	full.To, full.Origin, full.Begun, full.Task = t0+hour, engine.FromCatchUp, true, task(9000, t0, engine.Retrying, 2)
	s.settle(&engine.Settlement{Owner: "n", Owe: append(slices.Clone(rows), full)})
	got, err := s.OwedPage(s.ctx, 9000, -1, 1<<20)
	s.ok(err)
	s.same("rows", len(got), 1)
	s.same("row", string(engine.AppendOwed(nil, &got[0])), string(engine.AppendOwed(nil, &full)))
	s.same("all", len(s.owedIn(0, t0+day)), 1201)
	s.same("window", s.owedIn(t0+9, t0+11), []engine.Key{rows[10].Key, rows[11].Key})
	s.same("from before all time", len(s.owedIn(-1, t0+day)), 1201)

	moved := rows[10]
	moved.NotBefore = t0 + hour
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{moved}, Pay: []engine.Key{rows[11].Key, {Timer: 77777, Due: 1}}})
	s.same("moved and paid", s.owedIn(t0+9, t0+11), []engine.Key(nil))
	s.same("moved to", s.owedIn(t0+hour-1, t0+hour), []engine.Key{moved.Key})
	got, err = s.OwedPage(s.ctx, rows[10].Key.Timer, -1, 1<<20)
	s.ok(err)
	s.same("of the timer", len(got), 1)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{rows[10]}, Pay: []engine.Key{rows[10].Key}})
	s.same("paid and owed anew", s.owedIn(t0+9, t0+11), []engine.Key{rows[10].Key})
}

func changeDecides(s *cold) {
	v1 := shot(1, "a", t0-minute)
	_, err := s.Apply(s.ctx, &engine.Change{Timer: v1, ID: 1, Owe: []engine.Owed{owed(1, t0-minute, t0)}})
	s.ok(err)
	s.same("owed", s.owedIn(0, t0), []engine.Key{{Timer: 1, Due: t0 - minute}})
	gone := task(1, t0-minute, engine.Cancelled, 0)
	gone.Reason = engine.ReasonDeleted
	_, err = s.Apply(s.ctx, &engine.Change{ID: 1, Was: 1, Pay: []engine.Key{gone.Key}, Tasks: []*engine.Task{gone}})
	s.ok(err)
	s.same("paid", s.owedIn(0, t0), []engine.Key(nil))
	got, err := s.Task(s.ctx, gone.Key)
	s.ok(err)
	s.same("record", got, gone)
}

func refusedDecidesNothing(s *cold) {
	v1 := shot(1, "a", t0+minute)
	s.create(v1)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(1, t0, t0)}})
	k := engine.Key{Timer: 1, Due: t0}
	for _, c := range []*engine.Change{
		{ID: 1, Was: 9, Pay: []engine.Key{k}, Tasks: []*engine.Task{task(1, t0, engine.Cancelled, 0)}},
		{Timer: shot(2, "a", t0), ID: 2, Pay: []engine.Key{k}, Owe: []engine.Owed{owed(2, t0, t0)}},
		{ID: 3, Was: 1, Pay: []engine.Key{k}},
		{ID: 3, Pay: []engine.Key{k}},
	} {
		if _, err := s.Apply(s.ctx, c); err == nil {
			s.Fatalf("%+v was taken", c)
		}
	}
	s.same("owed", s.owedIn(0, t0), []engine.Key{k})
	_, err := s.Task(s.ctx, k)
	s.is(err, engine.ErrNotFound)
}

func settleTwice(s *cold) {
	s.create(recurring(1, "a"))
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(1, t0+3*minute, t0)}})
	st := &engine.Settlement{
		Owner: "n",
		Tasks: []engine.Record{record(task(1, t0+minute, engine.Succeeded, 1)), record(task(1, t0+2*minute, engine.Retrying, 1))},
		Owe:   []engine.Owed{owed(1, t0+2*minute, t0+5*minute)},
		Pay:   []engine.Key{{Timer: 1, Due: t0 + 3*minute}},
		Marks: marks(t0 + 2*minute),
	}
	look := func() string {
		rows, err := s.OwedPage(s.ctx, 1, -1, 1<<20)
		s.ok(err)
		shards, err := s.Shards(s.ctx)
		s.ok(err)
		return fmt.Sprintf("%+v %v %+v %+v", rows, s.history(engine.TaskFilter{}, 10), shards, s.counts())
	}
	s.settle(st)
	once := look()
	s.settle(st)
	s.same("twice", look(), once)
	st.Replayed = true
	s.settle(st)
	s.same("replayed", look(), once)
	s.settle(&engine.Settlement{Owner: "n"})
	s.same("nothing", look(), once)
}

// settleKeeps: the lists are the caller's again after a settle; the rows and records
// stay what they were, also a range without an end.
func settleKeeps(s *cold) {
	endless := owed(1, t0+minute, t0)
	endless.To, endless.Lane = engine.Endless, engine.LaneOf("app", "http://h", "")
	st := &engine.Settlement{
		Owner: "n", Tasks: []engine.Record{record(task(1, t0, engine.Dead, 1))}, Owe: []engine.Owed{endless},
		Pay: []engine.Key{{Timer: 9, Due: 1}}, Marks: marks(t0), LeftOut: []int64{m0},
	}
	s.settle(st)
	clear(st.Tasks)
	clear(st.Owe)
	clear(st.Pay)
	clear(st.Marks)
	clear(st.LeftOut)
	s.watermark(t0 + 1) // behind it, if it is stored later
	rows, err := s.OwedPage(s.ctx, 1, -1, 10)
	s.ok(err)
	s.same("rows", rows, []engine.Owed{endless})
	s.same("history", s.history(engine.TaskFilter{}, 10), []engine.Key{{Timer: 1, Due: t0}})
	minutes, err := s.LeftOut(s.ctx, 0, t0+day)
	s.ok(err)
	s.same("left out", minutes, []int64{m0})
}

// finishedBounds: Raise archives a timer without a due left, of the version that stands.
func finishedBounds(s *cold) {
	for id := engine.TimerID(1); id <= 3; id++ {
		t := recurring(id, fmt.Sprint(id))
		t.LastDue = t0 + minute
		s.create(t)
	}
	finish := func(ids ...engine.TimerID) {
		s.Helper()
		var bs []engine.Bound
		for _, id := range ids {
			bs = append(bs, engine.Bound{ID: id, Version: 1, Finished: true})
		}
		s.ok(s.Raise(s.ctx, bs))
	}
	finish(1)
	s.same("before its last due is settled", s.get(1).Status, engine.Enabled)
	s.watermark(t0 + minute)
	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{owed(2, t0+minute, t0+hour)}})
	finish(1, 2, 77)
	s.same("finished", s.get(1).Status, engine.Finished)
	s.same("owed", s.get(2).Status, engine.Enabled)
	s.same("not named", s.get(3).Status, engine.Enabled)
	s.same("counts", s.counts(), engine.Counts{Enabled: 2, Finished: 1})
	s.settle(&engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 2, Due: t0 + minute}}})
	s.sweep(t0+hour, 0, 0)
	s.same("paid", s.counts(), engine.Counts{Finished: 3})
	s.same("due", s.dueIDs(t0, t0+day), []engine.TimerID(nil))
}

func fences(s *cold) {
	shards, err := s.Shards(s.ctx)
	s.ok(err)
	s.same("shards", len(shards), engine.Shards)
	k := engine.Key{Timer: 1, Due: t0}
	try := func(fence uint64, owner string) error {
		return s.Settle(s.ctx, &engine.Settlement{
			Owner: owner, Tasks: []engine.Record{record(task(1, t0, engine.Succeeded, 1))},
			Owe:   []engine.Owed{owed(2, t0, t0)},
			Marks: []engine.Mark{{Shard: 1, Fence: 2, W: t0}, {Shard: 7, Fence: fence, W: t0}},
		})
	}
	for range 2 {
		_, _, err := s.Take(s.ctx, "b")
		s.ok(err)
	}
	s.is(try(1, "a"), engine.ErrFenced)
	s.is(try(3, "a"), engine.ErrFenced) // nobody has got that one
	_, err = s.Task(s.ctx, k)
	s.is(err, engine.ErrNotFound)
	s.same("owed", s.owedIn(0, t0), []engine.Key(nil))
	shards, err = s.Shards(s.ctx)
	s.ok(err)
	s.same("untouched", shards[1], engine.Shard{Fence: 2, Owner: "b"})
	s.ok(try(2, "b"))
	shards, err = s.Shards(s.ctx)
	s.ok(err)
	s.same("moved", shards[7], engine.Shard{Fence: 2, Owner: "b", Watermark: t0})
}

func watermarks(s *cold) {
	s.watermark(t0)
	s.settle(&engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: 0, W: t0 - 1}, {Shard: 1, W: t0 + 1}, {Shard: 255, W: 0}}})
	shards, err := s.Shards(s.ctx)
	s.ok(err)
	s.same("back", shards[0].Watermark, t0)
	s.same("forward", shards[1].Watermark, t0+1)
	s.same("zero", shards[255].Watermark, t0)
	if err := s.Settle(s.ctx, &engine.Settlement{Marks: []engine.Mark{{Shard: engine.Shards}}}); err == nil {
		s.Fatal("a shard that is none was taken")
	}
}

func replay(s *cold) {
	k := engine.Key{Timer: 1, Due: t0}
	step := func(replayed bool, want *engine.Task, ts ...*engine.Task) {
		s.Helper()
		st := &engine.Settlement{Owner: "n", Replayed: replayed}
		for _, t := range ts {
			st.Tasks = append(st.Tasks, record(t))
		}
		s.settle(st)
		got, err := s.Task(s.ctx, k)
		s.ok(err)
		s.same("record", got, want)
	}
	one, two, dead := task(1, t0, engine.Retrying, 1), task(1, t0, engine.Retrying, 2), task(1, t0, engine.Dead, 2)
	step(true, one, one)
	step(true, two, two)
	step(true, two, one)       // fewer attempts
	step(true, dead, dead)     // as many, and the end
	step(true, dead, two)      // as many, and not the end
	step(true, dead, one, two) // all that the journal had
	step(false, one, one)      // not a replay: as told
	step(true, dead, one, two, dead, one)
	dismissed := task(1, t0, engine.Dead, 2)
	dismissed.Dismissed, dismissed.DismissedBy = t0+hour, "somebody"
	step(false, dismissed, dismissed)
	step(true, dismissed, one, two, dead) // what the journal had of before
	again := task(1, t0, engine.Retrying, 3)
	step(true, again, dead, again)

	s.settle(&engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: k, NotBefore: t0 + 2, Task: two}}})
	s.settle(&engine.Settlement{Owner: "n", Replayed: true, Owe: []engine.Owed{{Key: k, NotBefore: t0 + 1, Task: one}}})
	rows, err := s.OwedPage(s.ctx, 1, -1, 1<<20)
	s.ok(err)
	s.same("owed", rows[0].NotBefore, t0+2)
}
