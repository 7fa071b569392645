package tiertest

import (
	"cmp"
	"fmt"
	"slices"

	"xtimer/engine"
)

// due collects what Due tells.
func (s *cold) due(from, to int64) (cs []engine.Candidate) {
	s.Helper()
	s.ok(s.Due(s.ctx, engine.AllShards, from, to, func(page []engine.Candidate) error {
		for _, c := range page {
			c.Definition = slices.Clone(c.Definition)
			if c.Definition != nil { // of a one-shot it may be given, or not
				t, err := engine.DecodeTimer(c.Definition)
				s.ok(err)
				if t.Schedule.OneShot() {
					c.Definition = nil
				}
			}
			cs = append(cs, c)
		}
		clear(page) // it is the tier's again only afterwards, and must not matter
		return nil
	}))
	slices.SortFunc(cs, func(a, b engine.Candidate) int { return cmp.Compare(a.ID, b.ID) })
	return cs
}

func (s *cold) dueIDs(from, to int64) (ids []engine.TimerID) {
	s.Helper()
	for _, c := range s.due(from, to) {
		ids = append(ids, c.ID)
	}
	return ids
}

func dueOneShots(s *cold) {
	var ts []*engine.Timer
	for i := range 2500 {
		ts = append(ts, shot(engine.TimerID(i+1), fmt.Sprint(i), t0+int64(i*37%2500)))
	}
	s.create(ts...)
	for _, w := range [][2]int64{{t0, t0 + 1}, {t0, t0 + 2500}, {t0 + 10, t0 + 11}, {t0 + 100, t0 + 100}, {t0 + 2000, t0 + day}} {
		var want []engine.Candidate
		for _, t := range ts {
			if t.At > w[0] && t.At <= w[1] {
				want = append(want, engine.Candidate{ID: t.ID, Due: t.At})
			}
		}
		s.same(fmt.Sprint("window ", w), s.due(w[0], w[1]), want)
	}
	past := shot(9000, "past", t0-minute) // it is in owed, not in the plan
	s.create(past)
	for _, c := range s.due(t0-hour, t0+day) {
		if c.ID == 9000 {
			s.Fatal("a due that is not later than valid_from was told")
		}
	}
	end := shot(9001, "end", engine.MaxDue)
	s.create(end)
	s.same("the last instant", s.dueIDs(engine.MaxDue-1, engine.MaxDue), []engine.TimerID{9001})
	jittered := shot(9002, "jitter", t0+day)
	jittered.LastDue += 77
	s.create(jittered)
	s.same("with its jitter", s.due(t0+day, t0+day+77), []engine.Candidate{{ID: 9002, Due: t0 + day + 77}})
}

func dueRecurring(s *cold) {
	var want []engine.TimerID
	for i := range 1500 {
		want = append(want, engine.TimerID(i*5+1))
	}
	var ts []*engine.Timer
	for i, id := range want {
		ts = append(ts, recurring(id, fmt.Sprint(i)))
	}
	s.create(ts...)
	cs := s.due(t0, t0+minute)
	s.same("all", len(cs), len(want))
	for i, c := range cs {
		t, err := engine.DecodeTimer(c.Definition)
		s.ok(err)
		s.sameTimer(t, ts[i])
		if c.Due > t0+minute {
			s.Fatalf("a lower bound of %d is later than the first due", c.Due)
		}
	}
	// Raised or not: what has a due in the window is told.
	s.watermark(t0 + hour)
	var bs []engine.Bound
	for i, id := range want {
		bs = append(bs, engine.Bound{ID: id, Version: 1, Due: t0 + hour + int64(i)*minute})
	}
	s.ok(s.Raise(s.ctx, bs))
	s.ok(s.Raise(s.ctx, bs))
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 2, Version: 1, Due: t0 + day}}))
	for _, to := range []int64{t0 + hour, t0 + 2*hour, t0 + day, t0 + 30*day} {
		told := map[engine.TimerID]bool{}
		for _, id := range s.dueIDs(t0+hour, to) {
			if told[id] {
				s.Fatalf("timer %d was told twice", id)
			}
			told[id] = true
		}
		for i, id := range want {
			if bs[i].Due <= to && !told[id] {
				s.Fatalf("timer %d has a due at %d, and was omitted up to %d", id, bs[i].Due, to)
			}
		}
	}
}

func dueForgets(s *cold) {
	a, b, c := shot(1, "a", t0+hour), recurring(2, "b"), recurring(3, "c")
	s.create(a, b, c)
	s.same("all", s.dueIDs(t0, t0+hour), []engine.TimerID{1, 2, 3})
	off := edited(b, func(t *engine.Timer) { t.Status = engine.Disabled })
	s.change(b, off)
	s.delete(c)
	s.same("one", s.dueIDs(t0, t0+hour), []engine.TimerID{1})
	on := edited(off, func(t *engine.Timer) { t.Status, t.ValidFrom = engine.Enabled, t0+minute })
	s.change(off, on)
	moved := edited(a, func(t *engine.Timer) { t.At, t.LastDue, t.Schedule.At = t0+2*hour, t0+2*hour, t0+2*hour })
	s.change(a, moved)
	s.same("enabled again", s.dueIDs(t0, t0+hour), []engine.TimerID{2})
	s.same("moved", s.dueIDs(t0, t0+2*hour), []engine.TimerID{1, 2})
	every := edited(moved, func(t *engine.Timer) {
		t.At, t.LastDue, t.Schedule = 0, 0, engine.Schedule{Every: 1e9}
	})
	s.change(moved, every)
	s.same("recurring now", s.dueIDs(t0, t0+hour), []engine.TimerID{1, 2})
}

func boundOfVersion(s *cold) {
	v1 := recurring(1, "a")
	s.create(v1)
	s.watermark(t0 + hour)
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 1, Version: 1, Due: t0 + 10*day}}))
	v2 := edited(v1, func(t *engine.Timer) { t.Schedule.Cron, t.ValidFrom, t.Generation = "*/2 * * * *", t0+hour, 2 })
	s.change(v1, v2)
	s.same("a change starts over", s.dueIDs(t0+hour, t0+2*hour), []engine.TimerID{1})
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 1, Version: 1, Due: t0 + 10*day}, {ID: 1, Version: 1, Finished: true}}))
	s.same("of another version", s.dueIDs(t0+hour, t0+2*hour), []engine.TimerID{1})
	s.same("status", s.get(1).Status, engine.Enabled)
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 1, Version: 2, Due: t0 + 3*day}}))
	v3 := edited(v2, func(t *engine.Timer) { t.Callback.URL += "x" })
	s.change(v2, v3)
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 1, Version: 2, Due: t0 + 9*day}}))
	s.same("up to its due", s.dueIDs(t0+hour, t0+3*day), []engine.TimerID{1})
	s.delete(v3)
	s.ok(s.Raise(s.ctx, []engine.Bound{{ID: 1, Version: 3, Due: t0 + 4*day}}))
	s.same("deleted", s.dueIDs(t0+hour, t0+30*day), []engine.TimerID(nil))
}
