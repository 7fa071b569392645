package scheduler

import (
	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// fire takes what is due from the wheel: makes tasks, puts each timer's next due
// back into the wheel, and queues the tasks. It runs on the wheel's goroutine,
// so nothing in it waits for a disk or a network; and the wheel counts a due as
// handed over when it has returned, which is what the watermark relies on.
func (e *Scheduler) fire(due int64, batch []resident.Item) {
	now := e.now()
	stepped := min(e.memory.Stepped.Load(), now) // it may have been set back since
	ready := e.batch[:0]
	for _, it := range batch {
		sh := e.memory.ShardOf(it.ID)
		sh.Mu.Lock()
		var t *resident.Task
		switch lv := sh.Timers[it.ID]; {
		case it.Due != 0:
			t = sh.Wake(engine.Key{Timer: it.ID, Due: it.Due}, now)
		case lv == nil || lv.Next != due:
			// Removed or changed while the wheel was handing it over.
		case stepped-due > policy.MisfireAfter:
			e.memory.AddLate(lv, due, stepped, false)
		case sh.FallsBehind(lv, due, now):
			e.memory.AddLate(lv, due, now, true)
		default:
			if t = sh.Take(lv, due, now); t != nil && lv.Plan.OneShot() && !t.Lane.Takes(t) {
				t.State, t = resident.Leaving, nil
			}
			failpoint.Hit("next-compute")
			e.memory.Schedule(lv, due)
			sh.Dismiss(lv)
		}
		sh.Mu.Unlock()
		if t != nil {
			ready = append(ready, t)
		}
	}
	failpoint.Hit("pop-before-intent")
	e.memory.Enqueue(ready)
	clear(ready)
	e.batch = ready[:0]
}
