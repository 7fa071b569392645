package resident

import (
	"cmp"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// A task is held while its lane is (engine/fair, gate.go): by a pause of its app, or by the
// limits of its target and of its flow keys. What held it, and for how long, goes into its
// record, and tells a start that its row is no misfire.

// heldMost is the default of Lanes.HeldMost: what the gates let through needs no more.
const heldMost = 10_000

// noteHolds adds to a task that is handed out what held it meanwhile. mu is held.
func (t *Task) noteHolds() {
	if sums := t.turn.Held(); len(sums) > 0 {
		t.addHolds(sums)
	}
}

func (t *Task) addHolds(sums []fair.HoldSum) {
	for i := range sums {
		t.held += sums[i].Took
	}
	t.AddHolds(holdsOf(sums))
}

// holdsOf are sums as the record of a task has them.
func holdsOf(sums []fair.HoldSum) []engine.Hold {
	holds := make([]engine.Hold, len(sums))
	for i, s := range sums {
		holds[i] = engine.Hold{By: s.By.String(), Name: s.Name, Took: s.Took}
	}
	return holds
}

// leaveQueue ends the waiting of a task for its turn. One whose batch waited for others may
// wait again, after a change of its timer. mu is held.
func (m *Memory) leaveQueue(t *Task) {
	if t.timer.def.Callback.Batch != nil {
		m.Queue.Remove(&t.turn)
	}
	t.noteHolds()
}

// heldBy is what held the task for longest, "" if nothing did since its last attempt. mu is held.
func (t *Task) heldBy() string {
	if t.held == 0 || len(t.Holds) == 0 {
		return ""
	}
	return slices.MaxFunc(t.Holds, func(a, b engine.Hold) int { return cmp.Compare(a.Took, b.Took) }).By
}

// KeepsPlaces reports whether tasks of a timer keep a place of a key or of a target until they
// end.
func (m *Memory) KeepsPlaces(t *engine.Timer) bool {
	return m.Queue.HasRules() && m.Queue.KeepsPlaces(m.Lanes.queueOf(t))
}

// PausedFrom is when a pause began (Unix ms) that holds the tasks of a timer; engine.MaxDue: none
// does. Dues from there on are no misfires, whether or not they have a row.
func (m *Memory) PausedFrom(t *engine.Timer) int64 {
	if m.Queue.HasRules() {
		if since := m.Queue.PausedSince(m.Lanes.queueOf(t)); since != 0 {
			return since
		}
	}
	return engine.MaxDue
}

// wasHeld adds to a task that comes from a row which was held that it was held since: a
// lane that has rows waits for its gates. Where a start came between, what was before it
// is as the row knows it, and the time without a process is not counted. mu is held.
func (m *Memory) wasHeld(sh *shard, t *Task, o *engine.Owed, now int64) {
	took := sh.heldAsRow(&t.Task, o, now)
	if took > 0 {
		t.addHolds(m.Queue.Causes(t.lane(), took))
	}
}

// heldAsRow is for how long a row was held besides what its task knows of. mu is held.
func (sh *shard) heldAsRow(t *engine.Task, o *engine.Owed, now int64) time.Duration {
	from, more := max(o.NotBefore, o.Key.Due), int64(0)
	if from <= sh.recovered {
		from, more = sh.recovered, max(o.Held-t.Held().Milliseconds(), sh.former-from, 0)
	}
	return time.Duration(max(now-from, 0)+more) * time.Millisecond
}

// LateSoFar is how late a task is that waits for its first attempt, without what held it; 0
// of others. Mu of its shard is held.
func (m *Memory) LateSoFar(t *Task, now int64) time.Duration {
	if !t.Waits() || len(t.Attempts) > 0 || t.Key.Due >= now {
		return 0
	}
	return max(0, time.Duration(now-t.Key.Due-m.heldFor(t))*time.Millisecond)
}

// heldFor is for how long (ms) a task that waits was held; not 0 if it is now. mu is held.
func (m *Memory) heldFor(t *Task) int64 {
	held := t.Held()
	if t.lane().IsGated() {
		by, sums := m.Queue.HoldOf(&t.turn)
		for _, s := range sums {
			held += s.Took
		}
		if by.Name != "" || t.state == Leaving || t.state == Parked {
			held = max(held, time.Millisecond)
		}
	}
	return held.Milliseconds()
}

// takesTurn has a task that came due in a lane with gates take the turn of its timer
// before it is called: while it is held, it is busy. It returns nil, and the task is set aside, if
// another is busy, or, where tasks go in order, an older one waits that is not: one of a row. mu is held.
func (m *Memory) takesTurn(sh *shard, t *Task, now int64) *Task {
	lv := t.timer
	if lv.def.Overlap == engine.OverlapAllow || !t.lane().IsGated() {
		return t
	}
	older := lv.first()
	if lv.busy > 0 || lv.def.Overlap == engine.OverlapQueue && older != nil && older.Key.Due < t.Key.Due {
		m.overlap(sh, t, now)
		return nil
	}
	t.busy = true
	lv.busy++
	return t
}

// shown is a copy of a task for readers: of one that is held, it says what Holding does. mu is held.
func (m *Memory) shown(t *Task) *engine.Task {
	c := t.snapshot()
	m.Holding(t, c)
	return c
}

// Holding adds to a copy of a task that is held what holds it, what has held it, and about when it may
// be called, if that is known. It looks at a bounded number of lanes, however many tasks wait. Mu of
// the shard of the task is held.
func (m *Memory) Holding(t *Task, c *engine.Task) {
	if t.state != Queued || !t.lane().IsGated() {
		return
	}
	by, sums := m.Queue.HoldOf(&t.turn)
	for _, s := range sums {
		c.AddHolds([]engine.Hold{{By: s.By.String(), Name: s.Name, Took: s.Took}})
	}
	if by.Name != "" {
		c.Reason = by.By.String() + " " + by.Name
		if next := m.Queue.Expected(&t.turn); next != flow.Never {
			c.NotBefore = m.now() + max(next-m.Queue.Now(), 0).Milliseconds()
		}
	}
}
