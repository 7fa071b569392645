package scheduler

import (
	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// BoundUnsettled sets how much may wait for the cold tier, before Run.
func (e *Scheduler) BoundUnsettled(outcomes int, bytes int64) {
	e.backpressure.outcomes, e.backpressure.bytes = outcomes, bytes
}

// BoundCrowd sets how many outcomes may wait for the cold tier while memory is full, before Run.
func (e *Scheduler) BoundCrowd(n int) { e.backpressure.crowd = n }

// Resident is how many unfinished tasks are in memory.
func (e *Scheduler) Resident() int64 { return e.memory.Lanes.Resident.Load() }

// Payloads are the bytes of headers and bodies that memory has, and what calls have room
// for; each as counted by hand.
func (e *Scheduler) Payloads() (kept, flying int64) {
	p := e.memory.CountPayloads()
	return p.Held, p.Flying
}

// CountsOfBodies are what is counted of them.
func (e *Scheduler) CountsOfBodies() (kept, flying, lacking int64, waiting, shares int) {
	p := e.memory.CountPayloads()
	return p.Kept, p.Flying, p.Lacking, p.Waiting, p.Shares
}

// StartInParts has a start recover the shards in parts; restore sets what it was.
func StartInParts(parts ...engine.Set) (restore func()) {
	was := startParts
	startParts = parts
	return func() { startParts = was }
}

// BoundHeld sets how many decisions a start holds; restore sets what it was.
func BoundHeld(n int) (restore func()) {
	was := maxHeld
	maxHeld = n
	return func() { maxHeld = was }
}

// BoundDecided sets how many rows are stored in one transaction; restore sets what it was.
func BoundDecided(n int) (restore func()) {
	was := maxDecided
	maxDecided = n
	return func() { maxDecided = was }
}

// BoundEnded sets how many rows a change takes along, and ended at a time; restore sets what it was.
func BoundEnded(n int) (restore func()) {
	was := endedRows
	endedRows = n
	return func() { endedRows = was }
}

// BoundGated sets how many tasks of a lane with gates are in memory at most, before Run.
func (e *Scheduler) BoundGated(n int) { e.memory.Lanes.HeldMost = n }

// SetRule puts a rule of a flow into force.
func (e *Scheduler) SetRule(n flow.Name, r *flow.Rule) { e.memory.Queue.SetRule(n, r) }

// MayRest reports whether the next settle may come late.
func (e *Scheduler) MayRest() bool { return e.settler.mayRest() }

// Cut is how far a settle would move watermarks now.
func (e *Scheduler) Cut() int64 { return e.settler.cut(e.now()) }

// LimitedTargets are the targets whose calls are limited for what they have shown.
func (e *Scheduler) LimitedTargets() []fair.TargetStats { return e.memory.Queue.Stats(10).Targets }
