package resident

import (
	"xtimer/engine"
	"xtimer/engine/fair"
)

// The lanes of the queue in which the tasks of a timer wait:
//
//	queueOf         what comes due
//	backlogQueueOf  what a former process or another node left, and what comes behind that
//	forcedQueueOf   what no limit holds

func (ls *Lanes) queueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.BatchLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}

func (ls *Lanes) backlogQueueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.BacklogLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}

// hasBacklogLane reports whether a task of the timer, which comes from a row or is to become one,
// waits in the lane of the backlog: a former process left the row, or the lane still reads
// such rows of the shard. All tasks of a lane with gates keep to one lane, and so to its order.
func (lv *Timer) hasBacklogLane(former bool) bool {
	if lv.def.Flow != "" || lv.lane.IsGated() {
		return false
	}
	return former || lv.inMemory().readsFormer(lv.def.ID.Shard())
}

// readsFormer reports whether the lane still reads rows that a shard had when this process took it.
func (l *Lane) readsFormer(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.formerIn.Has(shard)
}

func (ls *Lanes) forcedQueueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.ForcedLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}
