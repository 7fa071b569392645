package scheduler

import "xtimer/engine"

// BoundUnsettled sets how much may wait for the cold tier, before Run.
func (e *Scheduler) BoundUnsettled(outcomes int, bytes int64) {
	e.unsettled.outcomes, e.unsettled.bytes = outcomes, bytes
}

// Resident is how many unfinished tasks are in memory.
func (e *Scheduler) Resident() int64 { return e.lanes.resident.Load() }

// Payloads are the bytes of headers and bodies that the roster has, and what calls
// have room for; each as counted by hand.
func (e *Scheduler) Payloads() (kept, flying int64) {
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		seen := map[*engine.Timer]bool{}
		add := func(t *engine.Timer) {
			if n := t.Payload() - int(t.Omitted); n > lightPayload && !seen[t] {
				seen[t] = true
				kept += int64(n)
			}
		}
		for _, lv := range sh.timers {
			add(lv.def)
		}
		for _, t := range sh.order {
			add(t.live.def)
		}
		sh.mu.Unlock()
	}
	e.bodies.mu.Lock()
	defer e.bodies.mu.Unlock()
	return kept, e.bodies.flying
}

// CountsOfBodies are what is counted of them.
func (e *Scheduler) CountsOfBodies() (kept, flying, lacking int64, waiting, shares int) {
	b := &e.bodies
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept, b.flying, b.lacking.Load(), len(b.waiting), len(b.shares)
}

// BoundHeld sets how many decisions a start holds; restore sets what it was.
func BoundHeld(n int) (restore func()) {
	was := maxHeld
	maxHeld = n
	return func() { maxHeld = was }
}

// BoundEnded sets how many rows a change takes along, and ended at a time; restore sets what it was.
func BoundEnded(n int) (restore func()) {
	was := endedRows
	endedRows = n
	return func() { endedRows = was }
}
