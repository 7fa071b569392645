package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
	"xtimer/engine/resident"
)

// maxDecided is how many rows and records are stored in one transaction, and those of
// one timer more: one of MySQL has ten seconds, in which 140,000 were too many.
const maxDecided = 20_000

// records encodes tasks for a settlement.
func records(ts []*engine.Task) []engine.Record {
	rs := make([]engine.Record, len(ts))
	for i, t := range ts {
		rs[i] = engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t)}
	}
	return rs
}

// announce counts tasks that were stored as ended without a call, and tells
// those who watch.
func (e *Scheduler) announce(ts []*engine.Task) {
	for _, t := range ts {
		e.metrics.endedMany(t.Status, max(t.Count, 1))
		e.tell(t)
	}
}

// awaitDecisions returns when few enough timers wait for their decision, or ctx has ended: those
// that wait are in memory.
func (e *Scheduler) awaitDecisions(ctx context.Context) {
	m := &e.memory.Late
	for ctx.Err() == nil {
		m.Mu.Lock()
		n := m.Waiting
		m.Mu.Unlock()
		if n < maxDecided {
			return
		}
		sleep(ctx, 5*time.Millisecond)
	}
}

// decideLate decides what was added until ctx ends. What is not decided then keeps its
// hold, so that the next start decides it.
func (e *Scheduler) decideLate(ctx context.Context) error {
	m := &e.memory.Late
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.More:
		}
		m.Mu.Lock()
		list := m.List
		m.List = nil
		m.Mu.Unlock()
		var again []resident.LateTimer
		for len(list) > 0 && ctx.Err() == nil {
			c := catchUp{e: e}
			list = c.decide(list)
			err := c.commit(ctx)
			if err != nil && ctx.Err() == nil {
				e.log.Error("cannot store what becomes of dues that a step of the clock or a stall made late; trying again", "error", err)
			}
			m.Mu.Lock()
			m.Waiting -= c.over
			m.Mu.Unlock()
			if again = append(again, c.again...); err != nil {
				break
			}
		}
		if again = append(again, list...); len(again) == 0 {
			continue
		}
		sleep(ctx, 100*time.Millisecond)
		m.Mu.Lock()
		m.List = append(again, m.List...)
		m.Mu.Unlock()
		m.Poke()
	}
}

// catchUp is one commit of decisions of timers that are behind.
type catchUp struct {
	e       *Scheduler
	d       policy.Triage
	pay     []engine.Key
	rest    map[engine.TimerID]engine.Owed // what is left of ranges
	decided []resident.LateTimer
	again   []resident.LateTimer // not decided yet: a change is being made of them, or the cold tier is away
	over    int                  // timers that are done with
}

// decide decides the dues of timers from the first one that is late, as many timers as
// one commit can take, and answers the others.
func (c *catchUp) decide(list []resident.LateTimer) (left []resident.LateTimer) {
	c.rest = map[engine.TimerID]engine.Owed{}
	for i := range list {
		if len(c.d.Records)+len(c.d.Owe)+len(c.pay) > maxDecided {
			return list[i:]
		}
		m := &list[i]
		sh := c.e.memory.ShardOf(m.ID)
		sh.Mu.Lock()
		switch lv := m.Of(sh); {
		case lv == nil: // a change has cancelled them
			c.e.memory.Pins.Release(m.Pin)
			c.ends(m)
		case lv.Frozen && !lv.Deciding:
			c.again = append(c.again, *m)
		default:
			c.decideOne(sh, lv, m)
			lv.Deciding = true
			c.decided = append(c.decided, *m)
		}
		sh.Mu.Unlock()
	}
	return nil
}

// decideOne decides the dues of one timer up to m.at that are not in memory. mu is held.
func (c *catchUp) decideOne(sh *resident.Shard, lv *resident.Timer, m *resident.LateTimer) {
	// From the watermark on: minutes may have been admitted in any order.
	after := m.Due - 1
	if m.Due > sh.Watermark {
		after = max(sh.Watermark, sh.Decided[m.ID])
	}
	c.d.Now = m.At
	if lv.RangeTo != 0 { // what is decided of a range leaves it
		c.pay = append(c.pay, engine.Key{Timer: m.ID, Due: lv.RangeFrom})
	}
	if m.Behind {
		// The range begins behind all dues that have, or had, a task.
		begin := max(lv.Latest, m.Due-1)
		for _, s := range sh.InMemory(lv, after, begin).Open(&lv.Plan, after, begin) {
			c.d.Call(lv.Def, &lv.Plan, s[0], s[1])
		}
		if first, ok := lv.Plan.Next(begin); ok {
			o := policy.Row(lv.Def, first)
			o.To = engine.Endless
			c.d.Owe = append(c.d.Owe, o)
			m.GoesOn = true
		}
		return
	}
	c.d.Decide(lv.Def, &lv.Plan, sh.InMemory(lv, after, m.At).Open(&lv.Plan, after, m.At))
	if lv.RangeTo == 0 {
		return
	}
	os, _ := ranges(lv.Def, &lv.Plan, m.At, lv.RangeTo, func(k engine.Key) (bool, error) {
		return sh.Tasks.Find(k) != nil || owes(&c.d, k), nil
	})
	if n := len(os) - 1; n >= 0 && os[n].To != 0 {
		c.rest[m.ID] = os[n]
		os = os[:n]
	}
	c.d.Owe = append(c.d.Owe, os...)
}

// commit stores what was decided, takes what is to be called into memory, and lets the
// timers go on.
func (c *catchUp) commit(ctx context.Context) error {
	if len(c.decided) == 0 {
		return nil
	}
	e := c.e
	owe := slices.AppendSeq(slices.Clone(c.d.Owe), maps.Values(c.rest))
	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: records(c.d.Records), Owe: owe, Pay: c.pay}
	if err := e.cfg.Cold.Settle(ctx, s); err != nil {
		c.again = append(c.again, c.decided...)
		return err
	}
	stored := time.Now() // before a change that waits for it goes on
	e.announce(c.d.Records)
	c.each(func(_ *resident.Shard, lv *resident.Timer, m *resident.LateTimer) {
		if lv.RangeTo != 0 {
			o, ok := c.rest[m.ID]
			if lv.RangeFrom = o.Key.Due; !ok {
				lv.RangeTo = 0 // what is spent stays so
			}
		}
		lv.Deciding, lv.Judged = false, m.At
		if m.Behind {
			lv.Late, lv.Behind, lv.Judged = false, m.GoesOn, 0
		}
	})
	e.memory.Settled.Broadcast()
	if err := e.resumeAll(ctx, c.d.Owe, stored, false); err != nil {
		return err // the process ends, and the holds stay
	}
	c.each(func(sh *resident.Shard, lv *resident.Timer, m *resident.LateTimer) {
		if m.Behind {
			return // refill goes through its dues
		}
		sh.Decided[m.ID] = m.At
		lv.Late, lv.Judged = false, 0
		e.memory.Schedule(lv, m.At) // also when it is held: its change may fail
		sh.Dismiss(lv)
	})
	for i := range c.decided {
		e.memory.Pins.Release(c.decided[i].Pin)
	}
	for i := range c.decided {
		c.ends(&c.decided[i])
	}
	return nil
}

// ends counts a timer that is done with.
func (c *catchUp) ends(m *resident.LateTimer) {
	if !m.Behind {
		c.over++
	}
}

// each calls f for each timer that was decided and was not changed since, with the mu of
// its shard.
func (c *catchUp) each(f func(sh *resident.Shard, lv *resident.Timer, m *resident.LateTimer)) {
	for i := range c.decided {
		m := &c.decided[i]
		sh := c.e.memory.ShardOf(m.ID)
		sh.Mu.Lock()
		if lv := m.Of(sh); lv != nil {
			f(sh, lv, m)
		}
		sh.Mu.Unlock()
	}
}

// onStep hears from the wheel that the wall clock was set by delta.
func (e *Scheduler) onStep(delta time.Duration) {
	e.steps.Add(1)
	now := e.now()
	e.metrics.clockSteps.Inc()
	e.log.Warn("the wall clock was set", "by", delta)
	if delta > 0 {
		resident.Raise(&e.memory.Stepped, now)
	}
	select {
	case e.wakeMigrator <- struct{}{}:
	default:
	}
}
