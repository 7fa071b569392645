package resident

import (
	"context"
	"math"
	"runtime"
	"slices"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// Has reports whether the task of a key is in memory.
func (m *Memory) Has(k engine.Key) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	return sh.tasks.find(k) != nil
}

// Ended reports whether the task of a row that was read is over by now.
func (m *Memory) Ended(k engine.Key, r *Read) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	if t := sh.tasks.find(k); t != nil {
		return t.state == Done
	}
	return sh.removed[k] > r.from
}

// Task is a copy of a task in memory, nil for none.
func (m *Memory) Task(k engine.Key) *engine.Task {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	if t := sh.tasks.find(k); t != nil {
		return m.shown(t)
	}
	return nil
}

// EachTask calls f for each task in memory, with the lock of its shard.
func (m *Memory) EachTask(f func(*Task)) {
	for i := range m.shards {
		m.EachTaskOf(i, f)
		runtime.Gosched() // what is due goes first
	}
}

// EachTaskOf calls f for each task of a shard, with its lock.
func (m *Memory) EachTaskOf(shard int, f func(*Task)) {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	for t := range sh.tasks.all {
		f(t)
	}
}

// Look calls f for a task that EachTask gave, with the lock of its shard.
func (m *Memory) Look(t *Task, f func()) {
	sh := m.lock(t.Key.Timer)
	defer sh.mu.Unlock()
	f()
}

// IsBusy reports whether dues of a timer that have come are not over.
func (m *Memory) IsBusy(id engine.TimerID, now int64) bool {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	lv := sh.timers[id]
	return lv != nil && (lv.newest != nil || lv.behind || lv.next != 0 && lv.next <= now)
}

// IsUnsettled reports whether a task of a timer has ended and is not settled.
func (m *Memory) IsUnsettled(id engine.TimerID) bool {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return slices.ContainsFunc(sh.order, func(t *Task) bool {
		return t.Key.Timer == id && t.state == Done
	})
}

// Ends are the records of the tasks of a timer that have ended, are not settled and have no
// row; none in a process that is alone.
func (m *Memory) Ends(id engine.TimerID) (ends []engine.Record) {
	if !m.cfg.IsNode {
		return nil
	}
	sh := m.lock(id)
	defer sh.mu.Unlock()
	for _, t := range sh.order {
		if t.Key.Timer == id && t.state == Done && !t.HasOpenRow() {
			ends = append(ends, engine.Record{Key: t.Key, Status: t.Status, Encoded: t.encoded, Alone: t.alone()})
		}
	}
	return ends
}

// Unsettled counts the tasks that have ended and are not settled, and the bytes of their
// records.
func (m *Memory) Unsettled() (n int, bytes int64) {
	for i := range m.shards {
		sh := m.lockShard(i)
		n += sh.done
		bytes += sh.doneBytes
		sh.mu.Unlock()
	}
	return n, bytes
}

// AwaitSettled waits until a task is not one that has ended and is not settled, and until its
// key is not that of a row that stands for other tasks as well. The next settle
// passes the task without waiting for tasks that were due before it.
func (m *Memory) AwaitSettled(ctx context.Context, k engine.Key) error {
	return m.await(ctx, k.Timer, func(sh *shard) bool {
		t, x := sh.tasks.find(k), sh.shared[k]
		sh.part(x)
		if t == nil || t.state != Done {
			return x == nil
		}
		t.awaited = true
		return false
	})
}

// AwaitDecision waits until nothing of a claimed timer is being decided that is late.
func (m *Memory) AwaitDecision(ctx context.Context, id engine.TimerID) error {
	return m.await(ctx, id, func(sh *shard) bool {
		lv := sh.timers[id]
		return lv == nil || !lv.late
	})
}

// IsDeciding reports whether a decision about a timer is being stored, or may have been.
func (m *Memory) IsDeciding(id engine.TimerID) bool {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	lv := sh.timers[id]
	return lv != nil && lv.deciding
}

// AwaitWrites waits until the first bytes that were being written of a former
// definition are: after that none is sent of it.
func (m *Memory) AwaitWrites(ctx context.Context, id engine.TimerID) {
	_ = m.await(ctx, id, func(sh *shard) bool {
		lv := sh.timers[id]
		if lv == nil {
			return true
		}
		for t := lv.newest; t != nil; t = t.older {
			if t.state == Writing && t.version != lv.def.Version {
				return false
			}
		}
		return true
	})
}

// await waits until f, which is called with the lock of the timer's shard, is content,
// or ctx has ended.
func (m *Memory) await(ctx context.Context, id engine.TimerID, f func(sh *shard) bool) error {
	sh := m.shardOf(id)
	for {
		settled := m.Settled.Wait()
		sh.mu.Lock()
		content := f(sh)
		sh.mu.Unlock()
		if content {
			return nil
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Watermark is the watermark of a timer's shard as it is settled, and as a settle may
// have set it whose answer is still to come.
func (m *Memory) Watermark(id engine.TimerID) (settled, settling int64) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return sh.watermark, max(sh.watermark, sh.settling)
}

// FinishedTo is up to when the dues of a timer are finished that have no row.
func (m *Memory) FinishedTo(id engine.TimerID) int64 {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return max(sh.watermark, sh.settling, sh.decided[id])
}

// Watermarks are the lowest that is settled of the shards that are owned, and the highest
// that a settle may have set; 0 when none is.
func (m *Memory) Watermarks() (lowest, highest int64) {
	lowest = math.MaxInt64
	for i := range m.Owned().All() {
		sh := m.lockShard(i)
		lowest = min(lowest, sh.watermark)
		highest = max(highest, sh.watermark, sh.settling)
		sh.mu.Unlock()
	}
	return min(lowest, highest), highest
}

// AllWatermarks are the watermarks that this process knows to be settled: of the shards that it holds, and of the shards
// that it gave away, as they were then. The watermark of a shard whose gain is under way is left out: the process has only
// read it, and the tier may have gone back to it.
func (m *Memory) AllWatermarks() *engine.Watermarks {
	w, held := &engine.Watermarks{}, m.Held()
	for i := range engine.Shards {
		sh := m.lockShard(i)
		if held.Has(i) || sh.stay == away {
			w[i] = sh.watermark
		}
		sh.mu.Unlock()
	}
	return w
}

// LastUsed is the last due of a timer whose key may have been sent, 0 for none, and the
// watermark of its shard.
func (m *Memory) LastUsed(id engine.TimerID) (due, watermark int64) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	for _, t := range sh.order {
		if t.Key.Timer == id && t.state != Gone && t.used() {
			due = max(due, t.Key.Due)
		}
	}
	return due, sh.watermark
}

// Used are the dues of a timer in (after, to] whose keys may have been sent.
func (m *Memory) Used(id engine.TimerID, after, to int64) (s policy.Spans) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	for _, t := range sh.order {
		if due := t.Key.Due; t.Key.Timer == id && t.state != Gone && after < due && due <= to && t.used() {
			s = append(s, [2]int64{due, due})
		}
	}
	return s
}

// DuesOf are the dues of a timer in (after, to] that have a task in memory, and those
// that its range does not owe, whenever they are.
func (m *Memory) DuesOf(id engine.TimerID, after, to int64) policy.Spans {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	if lv := sh.timers[id]; lv != nil {
		return sh.duesOf(lv, after, to)
	}
	return nil
}

// TaskDues are the dues of a timer in (after, to] that have a task in memory.
func (m *Memory) TaskDues(id engine.TimerID, after, to int64) (s policy.Spans) {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return sh.taskDues(id, after, to)
}

// CancelledDues are the records that cancel the dues of a generation in (after, to] that have
// no task in memory and are not among own.
func (m *Memory) CancelledDues(end *policy.Ending, p *plan.Plan, after, to int64, own policy.Spans) []*engine.Task {
	sh := m.lock(end.Former.ID)
	defer sh.mu.Unlock()
	return sh.cancelledDues(end, p, after, to, own)
}

// IsTurning reports whether the dues of a range come through the wheel, or are in memory.
func (m *Memory) IsTurning(k engine.Key) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	lv := sh.timers[k.Timer]
	return lv != nil && lv.rangeTo() != 0 && lv.turning.from == k.Due || sh.shared[k] != nil
}

// FollowsRange reports whether the wheel goes through an earlier range of the timer than one: the later range
// waits until the earlier one is over.
func (m *Memory) FollowsRange(k engine.Key) bool {
	sh := m.lock(k.Timer)
	defer sh.mu.Unlock()
	lv := sh.timers[k.Timer]
	return lv != nil && lv.rangeTo() != 0 && lv.turning.from < k.Due
}

// Coming appends the first due in [from, end) of each timer in the wheel, of an app or
// ("") of all; about most of them.
func (m *Memory) Coming(from, end int64, app string, most int) (es []engine.Entry) {
	for i := 0; i < len(m.shards) && len(es) <= most; i++ {
		es = m.shards[i].coming(es, from, end, app)
		runtime.Gosched() // what is due goes first
	}
	return m.Deferred.coming(es, from, end, most)
}

// Owned are the shards of this process. What is due and what is owed of their timers is
// read from the tiers into memory, their watermarks move, and their timers are changed here.
// A process that is alone owns all.
func (m *Memory) Owned() engine.Set { return *m.owned.Load() }

// OwnedNow returns Owned as a pointer that changes whenever shards go or come.
func (m *Memory) OwnedNow() *engine.Set { return m.owned.Load() }

// Owns is ErrElsewhere if a timer lies in a shard that is not this process's: memory knows
// nothing of it.
func (m *Memory) Owns(id engine.TimerID) error {
	if m.owned.Load().Has(id.Shard()) {
		return nil
	}
	return engine.ErrElsewhere
}

// Own has a start note how a shard was found.
func (m *Memory) Own(shard int, found engine.Shard) {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	sh.watermark, sh.former, sh.settling, sh.fence = found.Watermark, found.Watermark, 0, found.Fence
	if sh.stay == away {
		sh.stay, sh.opened = here, m.Reads.note()
	}
	sh.unread, sh.early = true, nil
}

// Known notes that the lanes know which rows of the shards wait. Refill reads the rows again that came before Known.
func (m *Memory) Known(of engine.Set) {
	for i := range of.All() {
		sh := m.lockShard(i)
		for id, at := range sh.early {
			m.Lanes.Of(id).Waits(at)
		}
		sh.unread, sh.early = false, nil
		sh.mu.Unlock()
	}
}

// Mark has a start note a watermark that was stored. clean: the shard was given, see
// engine.Holding, with the watermark as it was found.
func (m *Memory) Mark(shard int, watermark, now int64, clean bool) {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	sh.repeats, sh.handed = now, 0
	if clean {
		sh.repeats, sh.handed = 0, sh.watermark
	}
	sh.watermark, sh.recovered = watermark, now
	Raise(&m.marked, watermark)
}

// Came says how a shard came to this process, and so why an attempt there may have been made
// before.
type Came uint8

// How a shard came.
const (
	ByStart    Came = iota // of the process, or of the node whose former life had it
	ByTakeover             // its owner was dead
	ByHandover             // its owner gave it
	Comes
)

func (c Came) String() string { return [...]string{"start", "takeover", "handover"}[c] }

// Came notes how shards came.
func (m *Memory) Came(of engine.Set, how Came) {
	for i := range of.All() {
		sh := m.lockShard(i)
		sh.came = how
		sh.mu.Unlock()
	}
}

// Recovered is up to when a start, or a gain of a timer's shard, has decided what was due.
func (m *Memory) Recovered(id engine.TimerID) int64 {
	sh := m.lock(id)
	defer sh.mu.Unlock()
	return sh.recovered
}

// Gain adds shards to those that are owned.
func (m *Memory) Gain(of engine.Set) {
	changeSet(&m.held, of.Union) // first: a settle that sees them owned is to move their watermarks
	changeSet(&m.owned, of.Union)
	m.setPart()
}

// setPart has the queue keep the part of the limits of apps and targets that this process has
// of the shards: the other nodes have the rest.
func (m *Memory) setPart() {
	m.Queue.SetPart(func() int { return m.Owned().Len() }, engine.Shards)
}

// Shard is the watermark and the fence of a shard.
func (m *Memory) Shard(shard int) engine.Shard {
	sh := m.lockShard(shard)
	defer sh.mu.Unlock()
	return engine.Shard{Watermark: sh.watermark, Fence: sh.fence}
}
