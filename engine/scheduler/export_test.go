package scheduler

// BoundUnsettled sets how much may wait for the cold tier, before Run.
func (e *Scheduler) BoundUnsettled(outcomes int, bytes int64) {
	e.unsettled.outcomes, e.unsettled.bytes = outcomes, bytes
}
