package wheel

import "time"

// Stats counts what a wheel has done, for a page of metrics.
type Stats struct {
	Ticks   uint64 // cohorts fired to the end
	Batches uint64 // calls of fire
	Fired   uint64 // values handed to fire

	Steps    uint64        // times the wall clock was set
	LastStep time.Duration // how far, the last time

	Missed   uint64 // naps the clockwork did not call in time for; the hand got up by itself
	Rebuilds uint64 // clockworks thrown away because they no longer called
	Stuck    int    // clockworks thrown away that have not ended: wedged, their memory is lost

	Oversleep    time.Duration // how late the last exact sleep ended
	OversleepMax time.Duration

	Drawers int // spans of 64 ms that are held
	Chunks  int // pieces of 1,024 values of memory that are held
}

// Stats returns the counts so far.
func (w *Wheel[V]) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.stats
	for _, c := range w.dropped {
		if !c.over() {
			s.Stuck++
		}
	}
	s.Drawers, s.Chunks = len(w.drawers), w.slab.held
	return s
}
