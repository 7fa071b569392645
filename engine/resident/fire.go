package resident

import "xtimer/engine"

// Item is what lies in the wheel: a timer's next due, or (Due ≠ 0) the retry of
// one of its tasks.
type Item struct {
	ID  engine.TimerID
	Due int64
}

// Take makes the task of a due, nil when it was taken already: it is in memory, or not
// later than the watermark and not owed, or spent. Mu is held.
func (sh *Shard) Take(lv *Timer, due, now int64) *Task {
	k := engine.Key{Timer: lv.Def.ID, Due: due}
	ranged := due <= lv.RangeTo
	if due <= sh.Watermark && !ranged {
		return nil
	}
	// Looking, in memory that no cache holds, was a twentieth of a fire. A timer's dues
	// come in order, but for minutes that are admitted late and rows that are owed
	// ahead of a clock that was set back.
	if due <= lv.Latest && sh.Tasks.Find(k) != nil {
		return nil
	}
	var t *Task
	if !lv.Spent.Has(due) {
		t = sh.Enlist(lv, k, engine.FromSchedule, ranged, now)
		t.RowStale = ranged // a row of its own, for the range goes when it is over
	}
	if ranged {
		_, ranged = lv.Plan.Next(due)
	}
	if !ranged && lv.RangeTo != 0 {
		sh.paid = append(sh.paid, engine.Key{Timer: lv.Def.ID, Due: lv.RangeFrom})
		lv.RangeTo, lv.Spent = 0, nil
	}
	return t
}

// Wake makes a task ready whose time in the wheel has come. Mu is held.
func (sh *Shard) Wake(k engine.Key, now int64) *Task {
	t := sh.Tasks.Find(k)
	if t == nil || t.State != Retrying {
		return nil
	}
	t.Await(now)
	return t
}
