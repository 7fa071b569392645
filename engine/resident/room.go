package resident

import (
	"xtimer/engine"
	"xtimer/engine/fair"
)

// The room of a lane: how many tasks are in memory, and whether one more may be. See Lanes.

// forgotten is the count of a lane that has none in memory and never will: another may stand in
// its place.
const forgotten = -1

// enter counts a task that is in memory now. It reports false, and counts nothing, if the lane is
// forgotten: see current.
func (l *Lane) enter() bool {
	for {
		n := l.resident.Load()
		if n == forgotten {
			return false
		}
		if l.resident.CompareAndSwap(n, n+1) {
			if n == 0 {
				l.all.used.Add(1)
			}
			l.all.Resident.Add(1)
			return true
		}
	}
}

// current is the lane, or the one that stands in its place; its tasks wait in q.
func (l *Lane) current(q *fair.Lane[*Task]) *Lane {
	if l.resident.Load() == forgotten {
		l = l.all.Of(l.ID)
		l.isIn(q)
	}
	return l
}

// leave counts a task that has gone.
func (l *Lane) leave() {
	l.all.Resident.Add(-1)
	if l.resident.Add(-1) == 0 {
		l.all.used.Add(-1)
	}
}

// isOpen reports whether the lane certainly has room for one more task, and no rows that wait before
// it. isOpen takes no lock, so that a due takes none in a lane without gates that is not spilled.
func (l *Lane) isOpen() bool {
	return !l.spilled.Load() && l.all.Resident.Load() < l.all.limit && !l.isGated()
}

// room is how many more tasks the lane may have in memory.
func (l *Lane) room() int {
	free := l.all.limit - l.all.Resident.Load()
	lanes, resident := l.all.used.Load(), l.resident.Load()
	if resident <= 0 { // this one is not among them yet
		lanes++
	}
	share := max(l.all.limit/max(lanes, 1), min(leastShare, l.all.limit/16)) - resident
	room := int(max(free, share))
	if l.isGated() {
		room = min(room, l.all.HeldMost-int(resident))
	}
	return room
}

// isBehind reports whether a due of a timer in a shard waits behind the rows of the lane. If no row
// is of a timer in the shard, the order of each timer does not need that; so the due goes on while
// the lane has plenty of room and no gate. After a takeover only the shards that were taken have rows. mu is held.
func (l *Lane) isBehind(shard int) bool {
	return l.spilled.Load() && (l.rowsIn.Has(shard) || l.resident.Load() >= plenty || l.isGated())
}

// isFull reports whether the lane has no room for another task of a timer in a shard.
func (l *Lane) isFull(shard int) bool {
	if l.isOpen() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isBehind(shard) || l.room() <= 0
}

// isShut reports whether a timer that may fall behind does: the lane has no room, or refill has
// not read all its rows yet. While it is about to queue what waits, a due waits in memory
// with them: or of a lane with a due in each pass of refill there would be another row.
func (l *Lane) isShut(shard int) bool {
	if l.isOpen() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isBehind(shard) && !l.staying || l.room() <= 0
}

// takes reports whether the task of a due may wait in memory. If it may not, it leaves
// when it has a row: its state must be Leaving.
func (l *Lane) takes(t *Task) bool {
	if l.isOpen() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	shard := t.Key.Timer.Shard()
	if !l.isBehind(shard) && l.room() >= 0 {
		return true
	}
	l.leaving[t] = l.markOf(t)
	l.all.Leaving.Add(1)
	l.spill(engine.SetOf(shard))
	return false
}

// admits reports whether a row at a place may come into memory. If it may not, refill
// brings it when there is room.
func (l *Lane) admits(at engine.Place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.spilled.Load() && l.room() > 0 {
		return true
	}
	l.joins(at)
	return false
}
