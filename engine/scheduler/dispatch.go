package scheduler

import (
	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/policy"
)

// item is what lies in the wheel: a timer's next due, or (Due ≠ 0) the retry of
// one of its tasks.
type item struct {
	ID  engine.TimerID
	Due int64
}

// fire takes what is due from the wheel: makes tasks, puts each timer's next due
// back into the wheel, and queues the tasks. It runs on the wheel's goroutine,
// so nothing in it waits for a disk or a network; and the wheel counts a due as
// handed over when it has returned, which is what the watermark relies on.
func (e *Scheduler) fire(due int64, batch []item) {
	now := e.now()
	stepped := min(e.stepped.Load(), now) // it may have been set back since
	ready := e.batch[:0]
	for _, it := range batch {
		sh := e.shardOf(it.ID)
		sh.mu.Lock()
		var t *task
		switch lv := sh.timers[it.ID]; {
		case it.Due != 0:
			t = sh.wake(engine.Key{Timer: it.ID, Due: it.Due}, now)
		case lv == nil || lv.next != due:
			// Removed or changed while the wheel was handing it over.
		case stepped-due > policy.MisfireAfter:
			e.misfires.add(e, lv, due, stepped, false)
		case sh.fallsBehind(lv, due, now):
			e.misfires.add(e, lv, due, now, true)
		default:
			if t = sh.take(lv, due, now); t != nil && lv.plan.OneShot() && !t.memory.takes(t) {
				t.state, t = isLeaving, nil
			}
			failpoint.Hit("next-compute")
			e.schedule(lv, due)
			sh.dismiss(lv)
		}
		sh.mu.Unlock()
		if t != nil {
			ready = append(ready, t)
		}
	}
	failpoint.Hit("pop-before-intent")
	e.enqueue(ready)
	clear(ready)
	e.batch = ready[:0]
}

// fallsBehind reports whether a timer is not to have its dues one by one, from one on
// that has no task yet: too many came during a stall or an outage, or its lane has no
// room. mu is held.
func (sh *shard) fallsBehind(lv *live, due, now int64) bool {
	return !lv.plan.OneShot() && (lv.lags(due, now) || lv.inMemory().isFull()) &&
		sh.tasks.find(engine.Key{Timer: lv.def.ID, Due: due}) == nil
}

// take makes the task of a due, nil when it was taken already: it is in memory, or not
// later than the watermark and not owed, or spent. mu is held.
func (sh *shard) take(lv *live, due, now int64) *task {
	k := engine.Key{Timer: lv.def.ID, Due: due}
	ranged := due <= lv.owedTo
	if due <= sh.watermark && !ranged {
		return nil
	}
	// Looking, in memory that no cache holds, was a twentieth of a fire. A timer's dues
	// come in order, but for minutes that are admitted late and rows that are owed
	// ahead of a clock that was set back.
	if due <= lv.latest && sh.tasks.find(k) != nil {
		return nil
	}
	var t *task
	if !lv.spent.Has(due) {
		t = sh.enlist(lv, k, engine.FromSchedule, ranged, now)
		t.dirty = ranged // a row of its own, for the range goes when it is over
	}
	if ranged {
		_, ranged = lv.plan.Next(due)
	}
	if !ranged && lv.owedTo != 0 {
		sh.paid = append(sh.paid, engine.Key{Timer: lv.def.ID, Due: lv.owedFrom})
		lv.owedTo, lv.spent = 0, nil
	}
	return t
}

// wake makes a task ready whose time in the wheel has come. mu is held.
func (sh *shard) wake(k engine.Key, now int64) *task {
	t := sh.tasks.find(k)
	if t == nil || t.state != isRetrying {
		return nil
	}
	t.await(now)
	return t
}
