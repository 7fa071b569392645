package alert

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
)

// recent is what was judged lately, by task: the last mostRecent at least.
type recent[T any] struct{ now, before map[engine.Key]T }

const mostRecent = 200_000

func (r *recent[T]) of(k engine.Key) T {
	if v, is := r.now[k]; is {
		return v
	}
	return r.before[k]
}

func (r *recent[T]) put(k engine.Key, v T) {
	if len(r.now) >= mostRecent {
		r.before, r.now = r.now, nil
	}
	if r.now == nil {
		r.now = map[engine.Key]T{}
	}
	r.now[k] = v
}

// ends is which ends of tasks were judged lately, as hashes: the last mostEnds at least.
type ends struct {
	seed        maphash.Seed
	now, before map[uint64]struct{}
}

// mostEnds takes 16 to 40 MB, twice.
const mostEnds = 1 << 20

type end struct {
	key engine.Key
	at  int64
}

func (e *ends) has(k engine.Key, at int64) bool {
	h := maphash.Comparable(e.seed, end{k, at})
	_, is := e.now[h]
	if !is {
		_, is = e.before[h]
	}
	return is
}

func (e *ends) put(k engine.Key, at int64) {
	if len(e.now) >= mostEnds {
		e.before, e.now = e.now, nil
	}
	if e.now == nil {
		e.now = map[uint64]struct{}{}
	}
	e.now[maphash.Comparable(e.seed, end{k, at})] = struct{}{}
}

// gap is a time whose failures are to be read from history.
type gap struct {
	from, to int64 // the first and the last end of a task (Unix ms); from 0: there is none
	due      int64 // the first due (Unix ms)
	past     int64 // what ended until then (Unix ms) was judged by a former process
	n        int   // how many there are; 0: as many as one look finds
	found    int   // how many of them were judged
	since    time.Time
	next     time.Time // when it is looked for them
}

func (g *gap) add(b brief) {
	if b.Status == engine.Succeeded {
		return // history is asked for the last task of a timer
	}
	if g.from == 0 {
		g.from, g.due = b.Ended, b.Key.Due
	}
	g.from, g.to, g.due = min(g.from, b.Ended), max(g.to, b.Ended), min(g.due, b.Key.Due)
	g.n++
}

// Times of gaps. A result is in history within seconds of its end, while the tier can be
// written; those that are not all there are looked for again.
const (
	settles   = 2 * time.Second
	lookAgain = 10 * time.Second
	lookUntil = 2 * time.Hour
)

// fillGaps judges the failures of the gaps.
func (a *Alerter) fillGaps(ctx context.Context) {
	if g := a.ring.takeGap(); g.from != 0 {
		g.since = time.Now()
		g.next = g.since.Add(settles)
		a.gaps = append(a.gaps, g)
	}
	for i := range a.gaps {
		g := &a.gaps[i]
		if time.Now().Before(g.next) {
			continue
		}
		found, ok := a.lookBack(ctx, g)
		if g.found += found; ok && g.found >= g.n {
			*g, a.trouble = gap{}, false
			a.doubt(ctx)
			continue
		}
		if g.next = time.Now().Add(lookAgain); time.Since(g.since) > lookUntil {
			a.cfg.Log.Error("failures that alerts are to see are not in history", "failures", g.n, "found", g.found)
			*g = gap{}
		}
	}
	a.gaps = slices.DeleteFunc(a.gaps, func(g gap) bool { return g.from == 0 })
}

// failures select what rules count: the failures in history, and dues skipped as misfires.
var failures = [...]engine.TaskFilter{
	{Statuses: []engine.TaskStatus{engine.Failed, engine.Dead, engine.Unknown, engine.Missed}},
	{Misfires: true},
}

// lookBack judges the failures of a gap, but not those that were judged already, in the order
// of their ends. It returns how many it judged, and whether all could be read.
func (a *Alerter) lookBack(ctx context.Context, g *gap) (judged int, ok bool) {
	var all []brief
	of := 0
	for before := (engine.Key{}); ; {
		f := failures[of]
		f.From, f.To = g.due, g.to+1
		page, next, err := a.cfg.Cold.Tasks(ctx, f, before, 1000)
		if d := engine.DamagedRecord(err, before); d != nil {
			judged += a.passOver(d.Key)
			next, err = d.Key, nil
		}
		if err != nil {
			a.cannotRead(ctx, err)
			return judged, false
		}
		for _, t := range page {
			if t.Ended >= g.from && t.Ended <= g.to && a.isNews(t) {
				ev := eventOf(t)
				all = append(all, briefOf(&ev))
			}
		}
		if before = next; next == (engine.Key{}) && of < len(failures)-1 {
			of++
			continue
		}
		if next != (engine.Key{}) && len(all) < mostBriefs {
			continue
		}
		slices.SortStableFunc(all, func(x, y brief) int { return cmp.Compare(x.Ended, y.Ended) })
		for page := range slices.Chunk(all, pageSize) {
			if !a.judgePage(ctx, page, g) {
				return judged, false
			}
			judged += len(page)
		}
		if all = nil; next == (engine.Key{}) {
			return judged, true
		}
	}
}

// passOver counts a record that cannot be read as judged: it returns 1, and 0 when it is called
// again. Otherwise the gap would be read every lookAgain for that record. Verify tells of it.
func (a *Alerter) passOver(k engine.Key) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen.has(k, 0) {
		return 0
	}
	a.seen.put(k, 0)
	return 1
}

// isNews reports whether the end of a task was not judged yet.
func (a *Alerter) isNews(t *engine.Task) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.seen.has(t.Key, t.Ended)
}

// cannotRead tells once that the tier cannot be read.
func (a *Alerter) cannotRead(ctx context.Context, err error) {
	if ctx.Err() == nil && !a.trouble {
		a.trouble = true
		a.cfg.Log.Error("cannot read what alerts need; failures wait until it can be read", "error", err)
	}
}

// doubt has the last successes looked for of the timers and apps with an incident: nobody may have
// told of them.
func (a *Alerter) doubt(ctx context.Context) {
	if a.cfg.Leads != nil {
		return // they are looked at all the time
	}
	a.mu.Lock()
	timers, _ := a.judge.watched()
	a.watch.replace(a.judge.watched())
	a.mu.Unlock()
	a.unsure = slices.Collect(maps.Keys(timers))
	a.readApps(ctx)
}

// askLast judges the last successes of timers.
func (a *Alerter) askLast(ctx context.Context) {
	for n := 0; len(a.unsure) > 0 && n < mostLooked; n++ {
		if err := a.readSuccess(ctx, a.unsure[0]); err != nil {
			a.cannotRead(ctx, err)
			return
		}
		a.unsure = a.unsure[1:]
	}
}

// readSuccess judges the last success of a timer since the due of its last failure. The last record
// of the timer may be of another due, which was skipped while that of the success was being called.
func (a *Alerter) readSuccess(ctx context.Context, id engine.TimerID) error {
	a.mu.Lock()
	f := engine.TaskFilter{Timer: id, From: a.judge.lastDue(id), Statuses: []engine.TaskStatus{engine.Succeeded}}
	a.mu.Unlock()
	for before := (engine.Key{}); ; {
		page, next, err := a.cfg.Cold.Tasks(ctx, f, before, 1)
		if err != nil {
			return unavailable(err)
		}
		if len(page) > 0 {
			ev := eventOf(page[0])
			a.mu.Lock()
			defer a.mu.Unlock()
			a.judgeOne(&ev, nil)
			return nil
		}
		if before = next; next == (engine.Key{}) {
			return nil
		}
	}
}
