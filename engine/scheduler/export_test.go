package scheduler

// BoundUnsettled sets how much may wait for the cold tier, before Run.
func (e *Scheduler) BoundUnsettled(outcomes int, bytes int64) {
	e.unsettled.outcomes, e.unsettled.bytes = outcomes, bytes
}

// BoundHeld sets how many decisions a start holds; restore sets what it was.
func BoundHeld(n int) (restore func()) {
	was := maxHeld
	maxHeld = n
	return func() { maxHeld = was }
}
