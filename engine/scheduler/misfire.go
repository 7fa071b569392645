package scheduler

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
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
		e.followers.tell(t)
	}
}

// misfires are timers of which dues have come that the wheel is not to go through one by
// one (live.late): the clock was set forward, or the timer falls behind. What becomes of all of them up to an instant is one
// decision, whose cost goes with what is called or recorded. It is made off the wheel's
// goroutine, for it is committed before the first of them is sent, and each timer keeps
// the watermark back until then.
type misfires struct {
	mu      sync.Mutex
	list    []misfire
	waiting int // in the list, or being decided
	more    chan struct{}
}

type misfire struct {
	id         engine.TimerID
	generation uint32
	due        int64
	hold       *hold
	// at is when the clock had been set (Unix ms): by that it is judged, however late
	// it is found for another reason, and however often its commit is tried: one that
	// seemed to fail may have been made.
	at int64
	// behind: no step of the clock made it late, so all of it is called: its dues become
	// a range without end; see unfold.go.
	behind bool
	goesOn bool // it has dues that are not decided
}

// behindAfter is how late (ms) the next due of a timer must be for its dues to be
// decided at once, and not to go through the wheel.
const behindAfter = minute

// fellBehind leaves a timer to misfires whose next due is late by a step of the clock.
// mu is held.
func (e *Scheduler) fellBehind(lv *live, due int64) bool {
	now := e.now()
	if now-due <= behindAfter {
		return false
	}
	stepped := min(e.stepped.Load(), now) // it may have been set back since
	if stepped-due <= policy.MisfireAfter {
		return false
	}
	e.misfires.add(e, lv, due, stepped, false)
	return true
}

// lags reports whether many dues of a timer, from one on, came during a stall or an
// outage. Only fire may ask: it runs when the wheel has looked for a step of the clock,
// and what a step made late is decided by policy, not called. mu is held.
func (lv *live) lags(due, now int64) bool {
	return now-due > behindAfter && lv.plan.Count(due, now) > policy.MaxSingles
}

// add leaves a timer that is behind from a due on to run. Never blocks. mu of its shard
// is held.
func (m *misfires) add(e *Scheduler, lv *live, due, at int64, behind bool) {
	lv.next, lv.late = 0, true
	// The decision begins at the watermark as it is now: dues from there on may be
	// admitted while the timer waits for it, and are left to it.
	from, sh := due-1, e.shardOf(lv.def.ID)
	if due > sh.watermark {
		from = min(from, max(sh.watermark, sh.decided[lv.def.ID]))
	}
	h := e.holds.take(from)
	m.mu.Lock()
	m.list = append(m.list, misfire{id: lv.def.ID, generation: lv.def.Generation, due: due, hold: h, at: at, behind: behind})
	if !behind {
		m.waiting++
	}
	m.mu.Unlock()
	m.poke()
}

// wait returns when few enough timers wait for their decision, or ctx has ended: those
// that wait are in memory.
func (m *misfires) wait(ctx context.Context) {
	for ctx.Err() == nil {
		m.mu.Lock()
		n := m.waiting
		m.mu.Unlock()
		if n < maxDecided {
			return
		}
		sleep(ctx, 5*time.Millisecond)
	}
}

// of is the timer, while it is as it was when it was added: a change says itself what
// becomes of what was late before it, and a later generation is late by an entry of
// its own. The mu of its shard is held.
func (m *misfire) of(sh *shard) *live {
	if lv := sh.timers[m.id]; lv != nil && lv.late && lv.def.Generation == m.generation {
		return lv
	}
	return nil
}

// run decides what was added until ctx ends. What is not decided then keeps its
// hold, so that the next start decides it.
func (m *misfires) run(ctx context.Context, e *Scheduler) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.more:
		}
		m.mu.Lock()
		list := m.list
		m.list = nil
		m.mu.Unlock()
		var again []misfire
		for len(list) > 0 && ctx.Err() == nil {
			c := catchUp{e: e}
			list = c.decide(list)
			err := c.commit(ctx)
			if err != nil && ctx.Err() == nil {
				e.log.Error("cannot store what becomes of dues that a step of the clock or a stall made late; trying again", "error", err)
			}
			m.mu.Lock()
			m.waiting -= c.over
			m.mu.Unlock()
			if again = append(again, c.again...); err != nil {
				break
			}
		}
		if again = append(again, list...); len(again) == 0 {
			continue
		}
		sleep(ctx, 100*time.Millisecond)
		m.mu.Lock()
		m.list = append(again, m.list...)
		m.mu.Unlock()
		m.poke()
	}
}

func (m *misfires) poke() {
	select {
	case m.more <- struct{}{}:
	default:
	}
}

// catchUp is one commit of decisions of timers that are behind.
type catchUp struct {
	e       *Scheduler
	d       policy.Triage
	pay     []engine.Key
	rest    map[engine.TimerID]engine.Owed // what is left of ranges
	decided []misfire
	again   []misfire // not decided yet: a change is being made of them, or the cold tier is away
	over    int       // timers that are done with
}

// decide decides the dues of timers from the first one that is late, as many timers as
// one commit can take, and answers the others.
func (c *catchUp) decide(list []misfire) (left []misfire) {
	c.rest = map[engine.TimerID]engine.Owed{}
	for i := range list {
		if len(c.d.Records)+len(c.d.Owe)+len(c.pay) > maxDecided {
			return list[i:]
		}
		m := &list[i]
		sh := c.e.shardOf(m.id)
		sh.mu.Lock()
		switch lv := m.of(sh); {
		case lv == nil: // a change has cancelled them
			c.e.holds.give(m.hold)
			c.ends(m)
		case lv.held && !lv.deciding:
			c.again = append(c.again, *m)
		default:
			c.decideOne(sh, lv, m)
			lv.deciding = true
			c.decided = append(c.decided, *m)
		}
		sh.mu.Unlock()
	}
	return nil
}

// decideOne decides the dues of one timer up to m.at that are not in memory. mu is held.
func (c *catchUp) decideOne(sh *shard, lv *live, m *misfire) {
	// From the watermark on: minutes may have been admitted in any order.
	after := m.due - 1
	if m.due > sh.watermark {
		after = max(sh.watermark, sh.decided[m.id])
	}
	c.d.Now = m.at
	if lv.owedTo != 0 { // what is decided of a range leaves it
		c.pay = append(c.pay, engine.Key{Timer: m.id, Due: lv.owedFrom})
	}
	if m.behind {
		// The range begins behind all dues that have, or had, a task.
		begin := max(lv.latest, m.due-1)
		for _, s := range sh.inMemory(lv, after, begin).Open(&lv.plan, after, begin) {
			c.d.Call(lv.def, &lv.plan, s[0], s[1])
		}
		if first, ok := lv.plan.Next(begin); ok {
			o := policy.Row(lv.def, first)
			o.To = engine.Endless
			c.d.Owe = append(c.d.Owe, o)
			m.goesOn = true
		}
		return
	}
	c.d.Decide(lv.def, &lv.plan, sh.inMemory(lv, after, m.at).Open(&lv.plan, after, m.at))
	if lv.owedTo == 0 {
		return
	}
	os, _ := ranges(lv.def, &lv.plan, m.at, lv.owedTo, func(k engine.Key) (bool, error) {
		return sh.tasks.find(k) != nil || owes(&c.d, k), nil
	})
	if n := len(os) - 1; n >= 0 && os[n].To != 0 {
		c.rest[m.id] = os[n]
		os = os[:n]
	}
	c.d.Owe = append(c.d.Owe, os...)
}

// inMemory are the dues of a timer in (after, to] that have a task in memory, and those
// that are spent, whenever they are. mu is held.
func (sh *shard) inMemory(lv *live, after, to int64) (s policy.Spans) {
	s = slices.Clone(lv.spent)
	if lv.latest <= after {
		return s
	}
	for _, t := range sh.order {
		if due := t.Key.Due; t.Key.Timer == lv.def.ID && !t.out && after < due && due <= to {
			s = append(s, [2]int64{due, due})
		}
	}
	slices.SortFunc(s, policy.CompareSpans)
	return s
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
	c.each(func(_ *shard, lv *live, m *misfire) {
		if lv.owedTo != 0 {
			o, ok := c.rest[m.id]
			if lv.owedFrom = o.Key.Due; !ok {
				lv.owedTo = 0 // what is spent stays so
			}
		}
		lv.deciding, lv.judged = false, m.at
		if m.behind {
			lv.late, lv.behind, lv.judged = false, m.goesOn, 0
		}
	})
	e.settled.broadcast()
	if err := e.resumeAll(ctx, c.d.Owe, stored, false); err != nil {
		return err // the process ends, and the holds stay
	}
	c.each(func(sh *shard, lv *live, m *misfire) {
		if m.behind {
			return // refill goes through its dues
		}
		sh.decided[m.id] = m.at
		lv.late, lv.judged = false, 0
		e.schedule(lv, m.at) // also when it is held: its change may fail
		sh.dismiss(lv)
	})
	for i := range c.decided {
		e.holds.give(c.decided[i].hold)
	}
	for i := range c.decided {
		c.ends(&c.decided[i])
	}
	return nil
}

// ends counts a timer that is done with.
func (c *catchUp) ends(m *misfire) {
	if !m.behind {
		c.over++
	}
}

// each calls f for each timer that was decided and was not changed since, with the mu of
// its shard.
func (c *catchUp) each(f func(sh *shard, lv *live, m *misfire)) {
	for i := range c.decided {
		m := &c.decided[i]
		sh := c.e.shardOf(m.id)
		sh.mu.Lock()
		if lv := m.of(sh); lv != nil {
			f(sh, lv, m)
		}
		sh.mu.Unlock()
	}
}

// onStep hears from the wheel that the wall clock was set by delta.
func (e *Scheduler) onStep(delta time.Duration) {
	e.steps.Add(1)
	now := e.now()
	e.metrics.clockSteps.Inc()
	e.log.Warn("the wall clock was set", "by", delta)
	if delta > 0 {
		raise(&e.stepped, now)
	}
	select {
	case e.wakeMigrator <- struct{}{}:
	default:
	}
}
