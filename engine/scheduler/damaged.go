package scheduler

import (
	"sync"

	"xtimer/engine"
)

// A row of the cold tier that cannot be read keeps no other from firing. It stays as it is
// stored, for a program that can read it; until then, of a timer whose definition is
// damaged nothing is called, and of a damaged row of owed its due is not. A change that ends
// the generation, or a delete, cancels that due, see change.Maker.EndOf.
//
//	memory     the row is passed over: nothing of it is called
//	a start    writes it anew from the journal, if that knows of the task; else its due is
//	           not derived from the plan again, for it may have been called
//	a range    of dues, if it was one, is known by its first due only; the timer is not
//	           behind after the next start, and goes on with the dues of its plan
//	readers    see the task as history has it; verify has its due as damaged, not as a gap

// leaveOut tells of a stored timer that cannot be read, or planned: of a zone, say, that
// this program does not know. It must not keep the others from firing.
func (e *Scheduler) leaveOut(id engine.TimerID, err error) {
	e.metrics.audit.Inc()
	e.log.Error("a stored timer cannot be planned; it does not fire until it is changed", "timer", id, "error", err)
}

// leaveOutRow tells of a row of owed that cannot be read, once.
func (e *Scheduler) leaveOutRow(o *engine.Owed) {
	if !e.backlog.damaged.add(o.Key) {
		return
	}
	e.metrics.audit.Inc()
	e.log.Error("a stored pending task cannot be read; it is not called, and is cancelled when its timer is changed or deleted",
		"task", o.Key, "error", o.Damaged)
}

// sort sorts one row, see row. One that is damaged is written anew from the journal, if that
// knows of the task; else its due counts as one that has a row.
func (r *recovery) sort(o engine.Owed) {
	b, begun := r.begun[o.Key]
	t := r.finished[o.Key]
	switch {
	case o.Damaged == nil:
		r.row(o)
	case begun:
		r.row(engine.Owed{Key: o.Key, Generation: b.Generation, Origin: b.Origin, NotBefore: o.Key.Due})
	case t != nil:
		r.row(engine.Owed{Key: o.Key, Generation: t.Generation, Origin: t.Origin})
	default:
		r.e.leaveOutRow(&o)
		if o.Key.Due >= r.now {
			r.keys[o.Key] = true
		}
		if o.Key.Due > r.watermark(o.Key.Timer) {
			r.owed[o.Key] = true
		}
	}
}

// damagedRows are the rows that were told of.
type damagedRows struct {
	mu   sync.Mutex
	rows map[engine.Key]struct{}
}

// mostDamaged is how many rows are remembered; those beyond are told of each time.
const mostDamaged = 10_000

// add reports whether the row was not told of before.
func (d *damagedRows) add(k engine.Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, told := d.rows[k]; told {
		return false
	}
	if d.rows == nil {
		d.rows = map[engine.Key]struct{}{}
	}
	if len(d.rows) < mostDamaged {
		d.rows[k] = struct{}{}
	}
	return true
}
