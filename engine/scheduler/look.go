package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/resident"
)

// The looks that a person takes: none changes anything, each is bounded.

// AppOf is the app of a timer, or of a deleted one while a version of it is kept. It
// takes the same steps whether the timer is there or not.
func (e *Scheduler) AppOf(ctx context.Context, id engine.TimerID) (string, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return "", err
	}
	former, err := e.cfg.Cold.Versions(ctx, id, 0, 1)
	switch {
	case err != nil:
		return "", err
	case t != nil:
		return t.App, nil
	case len(former) > 0:
		return former[0].App, nil
	}
	return "", engine.ErrNotFound
}

// Versions lists a timer as it is and as it was, newest first: the versions before one
// (0: all). A deleted timer has only what it was.
func (e *Scheduler) Versions(ctx context.Context, id engine.TimerID, before uint32, limit int) ([]View, error) {
	t, err := e.cfg.Cold.Timer(ctx, id)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	var vs []View
	if t != nil && (before == 0 || t.Version < before) {
		vs = append(vs, e.view(ctx, t))
	}
	former, err := e.cfg.Cold.Versions(ctx, id, before, limit-len(vs))
	if err != nil {
		return nil, err
	}
	for _, f := range former {
		vs = append(vs, View{Timer: f, Status: f.Status})
	}
	return vs, nil
}

// Coming is what is due in one minute of the coming hour: the first due that
// each timer has in it.
type Coming struct {
	Minute  int64     // its begin, Unix ms
	Seconds [60]int64 // how many, by second
	Dues    []ComingDue
	// Partial: there are more than were looked at, or named.
	Partial bool
}

// ComingDue is one of them.
type ComingDue struct {
	Key       engine.Key
	App, Name string
}

// definitionsAtOnce is how many definitions a look has in memory: each may have a body
// of 512 KiB.
const definitionsAtOnce = 32

// maxComing bounds the entries that a look at one minute takes.
const maxComing = 20_000

var errEnough = errors.New("enough was seen")

// Coming looks at the minute that an instant lies in, and names the first
// limit dues of an app ("": of all) in their order.
func (e *Scheduler) Coming(ctx context.Context, at int64, app string, limit int) (Coming, error) {
	now := e.now()
	c := Coming{Minute: at / minute * minute}
	end := c.Minute + minute
	if end <= now || c.Minute >= now+e.cfg.Window.Milliseconds() {
		return c, engine.Invalid("at", "out_of_range", "must lie within the coming %v", e.cfg.Window)
	}
	es, partial, err := e.comingEntries(ctx, c.Minute, end, app)
	if err != nil {
		return c, err
	}
	c.Partial = partial
	slices.SortFunc(es, func(a, b engine.Entry) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	es = slices.CompactFunc(es, func(a, b engine.Entry) bool { return a.ID == b.ID && a.Due == b.Due })
	for _, x := range es {
		if app == "" {
			c.Seconds[(x.Due-c.Minute)/1000]++
		}
	}
	for len(es) > 0 {
		n := min(len(es), definitionsAtOnce)
		ids := make([]engine.TimerID, n)
		for i := range ids {
			ids[i] = es[i].ID
		}
		defs, err := e.cfg.Cold.Load(ctx, ids)
		if err != nil {
			return c, err
		}
		for i, x := range es[:n] {
			if defs[i] == nil {
				continue // deleted meanwhile
			}
			t, err := engine.DecodeTimer(defs[i])
			if err != nil {
				return c, fmt.Errorf("cannot read timer %s: %w", x.ID, err)
			}
			if t.Status != engine.Enabled || app != "" && t.App != app {
				continue
			}
			if app != "" {
				c.Seconds[(x.Due-c.Minute)/1000]++
			}
			if len(c.Dues) == limit {
				c.Partial = true
				if app == "" {
					return c, nil
				}
				continue
			}
			c.Dues = append(c.Dues, ComingDue{engine.Key{Timer: x.ID, Due: x.Due}, t.App, t.Name})
		}
		es = es[n:]
	}
	return c, nil
}

// comingEntries are the timers that are due in a minute: from the roster when
// it is loaded, and then of the app alone; else from the warm tier.
func (e *Scheduler) comingEntries(ctx context.Context, from, end int64, app string) (es []engine.Entry, partial bool, err error) {
	if end <= e.memory.Loaded.Load() {
		es = e.memory.Coming(from, end, app, maxComing)
		if partial = len(es) > maxComing; partial {
			es = es[:maxComing]
		}
		return es, partial, nil
	}
	err = e.cfg.Warm.Load(ctx, from, func(page []engine.Entry) error {
		for _, x := range page {
			if len(es) == maxComing {
				return errEnough
			}
			es = append(es, engine.Entry{ID: x.ID, Due: x.Due})
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough), errors.Is(err, engine.ErrGap):
		return es, true, nil
	default:
		return es, false, err
	}
}

// FailureGroup is tasks that failed at the same target in the same way.
type FailureGroup struct {
	Target string       // scheme://host:port of the timer as it is; "": it is gone
	Error  string       // "status 503", "timeout", or the reason of one without an attempt
	First  int64        // the oldest due of them, Unix ms
	Keys   []engine.Key // newest first
}

// maxFailures bounds the tasks that one look at the failures takes, and
// maxFailurePages how long it searches for them: a page is at most 5,000 rows.
const (
	maxFailures     = 1000
	maxFailurePages = 3
)

// Failures groups the newest tasks that a filter selects, the largest group
// first. partial tells that there are older ones.
func (e *Scheduler) Failures(ctx context.Context, f engine.TaskFilter) (groups []FailureGroup, partial bool, err error) {
	var ts []*engine.Task
	before := engine.Key{}
	for pages := 0; pages < maxFailurePages && len(ts) < maxFailures; pages++ {
		page, next, err := e.Tasks(ctx, f, before, maxFailures-len(ts))
		if err != nil {
			return nil, false, err
		}
		ts = append(ts, page...)
		before, partial = next, next != engine.Key{}
		if !partial {
			break
		}
	}
	targets, err := e.targetsOf(ctx, ts)
	if err != nil {
		return nil, false, err
	}
	type kind struct{ target, err string }
	places := map[kind]int{}
	for _, t := range ts {
		k := kind{targets[t.Key.Timer], t.Failure()}
		i, ok := places[k]
		if !ok {
			i = len(groups)
			places[k] = i
			groups = append(groups, FailureGroup{Target: k.target, Error: k.err})
		}
		g := &groups[i]
		g.Keys, g.First = append(g.Keys, t.Key), t.Key.Due
	}
	slices.SortStableFunc(groups, func(a, b FailureGroup) int { return len(b.Keys) - len(a.Keys) })
	return groups, partial, nil
}

// targetsOf finds where the timers of tasks call.
func (e *Scheduler) targetsOf(ctx context.Context, ts []*engine.Task) (map[engine.TimerID]string, error) {
	targets := map[engine.TimerID]string{}
	var ids []engine.TimerID
	for _, t := range ts {
		if _, ok := targets[t.Key.Timer]; !ok {
			targets[t.Key.Timer] = ""
			ids = append(ids, t.Key.Timer)
		}
	}
	for part := range slices.Chunk(ids, definitionsAtOnce) {
		defs, err := e.cfg.Cold.Load(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, b := range defs {
			if b == nil {
				continue
			}
			t, err := engine.DecodeTimer(b)
			if err != nil {
				return nil, fmt.Errorf("cannot read timer %s: %w", part[i], err)
			}
			scheme, rest, _ := strings.Cut(t.Callback.URL, "://")
			if n := strings.IndexAny(rest, "/?#"); n >= 0 {
				rest = rest[:n]
			}
			targets[part[i]] = scheme + "://" + strings.Clone(rest)
		}
	}
	return targets, nil
}

// Minute is how the last 60 s went.
type Minute struct {
	FiresPerSec float64
	Lateness    [3]float64 // p50, p99, p99.9 in ms
	Ended       [10]int64  // since the start, by final TaskStatus
}

// LastMinute looks at it; it is cheap.
func (e *Scheduler) LastMinute() (m Minute) {
	m.FiresPerSec, m.Lateness = e.recent.Look(e.now())
	for i := range m.Ended {
		m.Ended[i] = int64(e.metrics.results[i].Get())
	}
	return m
}

// Now is what the engine's clock shows, in Unix ms, and how often it was seen
// to step since the start.
func (e *Scheduler) Now() (now int64, steps uint64) { return e.now(), uint64(e.memory.Steps.Load()) }

// Node is this node's name.
func (e *Scheduler) Node() string { return e.cfg.Node }

// lastTask is the newest task of a timer, open or finished, with its last attempt only;
// nil: there is none.
func (e *Scheduler) lastTask(ctx context.Context, id engine.TimerID) (*engine.Task, error) {
	ts, _ := e.newest(&engine.TaskFilter{Timer: id}, engine.Key{}, 1) // first: what is settled meanwhile is then in both
	last, err := e.cfg.Cold.LastTask(ctx, id)
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return nil, err
	}
	if len(ts) > 0 && (last == nil || ts[0].Key.Due >= last.Key.Due) {
		return ts[0], nil
	}
	if last == nil {
		return nil, nil
	}
	return inspect.Listed(last), nil
}

// LastTasks gives each view its LastTask: one read of the history each, of one record.
// A shard's tasks in memory are looked through once for all of its timers.
func (e *Scheduler) LastTasks(ctx context.Context, vs []View) error {
	open := e.newestOf(vs)
	for i := range vs {
		id := vs[i].ID
		last, err := e.cfg.Cold.LastTask(ctx, id)
		if err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		if t := open[id]; t != nil && (last == nil || t.Key.Due >= last.Key.Due) {
			last = t
		}
		if last != nil {
			vs[i].LastTask = inspect.Listed(last)
		}
	}
	return nil
}

// newestOf copies the newest task in memory of each of these timers that has one.
func (e *Scheduler) newestOf(vs []View) map[engine.TimerID]*engine.Task {
	var wanted [engine.Shards]map[engine.TimerID]*resident.Task
	for i := range vs {
		n := vs[i].ID.Shard()
		if wanted[n] == nil {
			wanted[n] = make(map[engine.TimerID]*resident.Task)
		}
		wanted[n][vs[i].ID] = nil
	}
	copies := make(map[engine.TimerID]*engine.Task)
	for i, newest := range wanted {
		if newest == nil {
			continue
		}
		e.memory.EachTaskOf(i, func(t *resident.Task) {
			if last, ok := newest[t.Key.Timer]; ok && (last == nil || last.Key.Compare(t.Key) < 0) {
				newest[t.Key.Timer] = t
			}
		})
		for id, t := range newest {
			if t != nil {
				e.memory.Look(t, func() { copies[id] = inspect.Listed(&t.Task) })
			}
		}
		runtime.Gosched() // what is due goes first
	}
	return copies
}
