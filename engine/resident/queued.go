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

// hasBacklogLane reports whether a task of the timer that was a row, or is to become one, waits in
// another lane than those that come due: of such as a former process left, or come while those
// are read. Where gates may limit them, all keep to one lane, and to its order.
func (lv *Timer) hasBacklogLane(former bool) bool {
	if lv.def.Flow != "" || lv.lane.IsGated() {
		return false
	}
	return former || lv.inMemory().readsFormer(lv.def.ID.Shard())
}

// readsFormer reports whether rows of a shard are read that were there when it was taken.
func (l *Lane) readsFormer(shard int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.formerIn.Has(shard)
}

func (ls *Lanes) forcedQueueOf(t *engine.Timer) *fair.Lane[*Task] {
	return ls.queue.ForcedLane(t.App, engine.TargetOf(t.Callback.URL), string(t.Flow), t.BatchClass())
}
