package scheduler

import (
	"xtimer/engine"
	"xtimer/engine/resident"
)

// BoundUnsettled sets how much may wait for the cold tier, before Run.
func (e *Scheduler) BoundUnsettled(outcomes int, bytes int64) {
	e.unsettled.outcomes, e.unsettled.bytes = outcomes, bytes
}

// Resident is how many unfinished tasks are in memory.
func (e *Scheduler) Resident() int64 { return e.memory.Lanes.Resident.Load() }

// Payloads are the bytes of headers and bodies that the roster has, and what calls
// have room for; each as counted by hand.
func (e *Scheduler) Payloads() (kept, flying int64) {
	for i := range e.memory.Shards {
		sh := &e.memory.Shards[i]
		sh.Mu.Lock()
		seen := map[*engine.Timer]bool{}
		add := func(t *engine.Timer) {
			if n := t.Payload() - int(t.Omitted); n > resident.LightPayload && !seen[t] {
				seen[t] = true
				kept += int64(n)
			}
		}
		for _, lv := range sh.Timers {
			add(lv.Def)
		}
		for _, t := range sh.Order {
			add(t.Timer.Def)
		}
		sh.Mu.Unlock()
	}
	e.memory.Bodies.Mu.Lock()
	defer e.memory.Bodies.Mu.Unlock()
	return kept, e.memory.Bodies.Flying
}

// CountsOfBodies are what is counted of them.
func (e *Scheduler) CountsOfBodies() (kept, flying, lacking int64, waiting, shares int) {
	b := &e.memory.Bodies
	b.Mu.Lock()
	defer b.Mu.Unlock()
	return b.Kept, b.Flying, b.Lacking.Load(), len(b.Waiting), len(b.Shares)
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
