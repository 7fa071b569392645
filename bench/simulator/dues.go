package simulator

import (
	"cmp"
	"slices"

	"xtimer/engine"
)

// version is one version of a timer that was stored, and who asked for it.
type version struct {
	*engine.Timer
	by *request // nil: nobody knows
}

// timer is the life of one timer, as it is stored in the end.
type timer struct {
	id       engine.TimerID
	versions []version
	deleted  int64    // Unix ms; 0: it stands
	end      *request // its delete
	eras     []*era
	manual   map[int64]*request // dues that a run made, by key
	unsure   []*request         // runs of which nobody knows
	redriven map[int64]int      // how often
	calls    map[int64][]*call  // by due
	refused  []int64            // dues of attempts that reached nobody
	records  []*engine.Task     // by due
	blocked  bool               // see waits
	blocker  int64              // the due that it waits for
	rests    map[int64]bool     // see remains.resting
	must     map[int64]bool     // dues that had to be called, see complete
}

// era is the time of one generation: which dues there are.
type era struct {
	timer      *timer
	first      version // with it, it began
	last       version // as it was in the end
	countFrom  int64   // max_runs counts from here
	fresh      bool    // its schedule was given anew
	start, end *request
	endWall    int64 // when its end was asked for; 0: it stands
	caught     []int64
	catchMust  int64 // the one of them that has to be called; 0: none
}

// split splits a life into generations.
func (t *timer) split() {
	for i, v := range t.versions {
		if i > 0 && t.versions[i-1].Generation == v.Generation {
			t.eras[len(t.eras)-1].last = v
			continue
		}
		e := &era{timer: t, first: v, last: v, start: v.by}
		e.countFrom = e.since()
		if i == 0 {
			e.fresh = true
		} else {
			was := t.versions[i-1]
			e.fresh = (was.Schedule != v.Schedule || was.At != v.At) && v.ValidFrom <= v.UpdatedAt
			before := t.eras[len(t.eras)-1]
			before.end, before.endWall = v.by, e.since()
			if v.by != nil {
				before.endWall = min(before.endWall, v.by.sentWall)
				if v.by.Kind == Disable {
					e.countFrom = before.countFrom
				}
			}
		}
		t.eras = append(t.eras, e)
	}
	if n := len(t.eras); n > 0 && t.deleted != 0 {
		e := t.eras[n-1]
		e.end, e.endWall = t.end, t.deleted
		if t.end != nil {
			e.endWall = min(e.endWall, t.end.sentWall)
		}
	}
	for i, e := range t.eras {
		if e.start != nil && e.start.Kind == Enable && e.start.CatchUp != engine.CatchUpNone && i > 0 {
			t.catchUp(i)
		}
	}
}

// catchUp are the dues that an enable brings back: those since the timer was
// disabled, or got its schedule if that was later.
func (t *timer) catchUp(i int) {
	e := t.eras[i]
	if e.first.ValidFrom > e.first.UpdatedAt {
		return // the clock was set back, and all that is past was decided before
	}
	since := t.eras[i-1].since()
	for j := i - 1; j > 0; j-- {
		a, b := t.eras[j-1], t.eras[j]
		if a.last.Schedule != b.first.Schedule || !a.disabled() || a.first.Status != engine.Disabled && a.first.ValidFrom <= b.first.UpdatedAt {
			break // until then it was disabled, and no longer
		}
		since = a.since()
	}
	ds := t.eras[i-1].between(since, e.since()) // its max_runs count from before
	e.caught = ds
	if len(ds) > 0 {
		e.catchMust = ds[len(ds)-1]
	}
}

// since is when an era began. A version's UpdatedAt may be ahead of a clock that was
// set back, and the ValidFrom of one that is disabled for a while is its end.
func (e *era) since() int64 { return min(e.first.UpdatedAt, e.first.ValidFrom) }

func (e *era) disabled() bool {
	until := e.first.Reason != "" && e.first.ValidFrom > e.first.UpdatedAt // also when it was changed meanwhile
	return e.first.Status == engine.Disabled || e.start != nil && e.start.Kind == Disable || until
}

// between are the dues that the schedule of an era has in (after, to], by brute force.
func (e *era) between(after, to int64) []int64 {
	c := scheduleOf(e.last.Timer)
	ds, err := c.Dues(e.countFrom, e.last.CreatedAt, after, to)
	if err != nil {
		panic("BUG: the oracle does not know a schedule of the script: " + err.Error())
	}
	return ds
}

// dues are all dues of an era up to an instant, in order.
func (e *era) dues(to int64) []int64 {
	if e.first.Status == engine.Disabled {
		return nil
	}
	if e.endWall != 0 {
		to = min(to, e.endWall)
	}
	var ds []int64
	if s := e.last.Schedule; s.OneShot() && e.last.At <= min(to, e.first.ValidFrom) && e.fresh {
		ds = append(ds, e.last.At)
	}
	return append(ds, e.between(e.first.ValidFrom, to)...)
}

// has reports whether a due is one of an era's.
func (e *era) has(due int64) bool {
	if e.first.Status == engine.Disabled {
		return false
	}
	if e.last.Schedule.OneShot() && e.last.At == due && (e.fresh || due > e.first.ValidFrom) {
		return true
	}
	return due > e.first.ValidFrom && len(e.between(due-1, due)) > 0 || slices.Contains(e.caught, due)
}

func byDue(a, b *engine.Task) int { return cmp.Compare(a.Key.Due, b.Key.Due) }
