package inspect

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

const (
	// maxApps is how many apps have figures, and appTargets how many targets each; maxTargets
	// bounds these in all. An app takes up to 15 KB and a target up to 7 KB.
	maxApps    = 1000
	appTargets = 20
	maxTargets = 2000
	// idle (ms) is after how long without an end the figures of an app may go for
	// another's, and pruneEvery how often that is looked at.
	idle       = 60 * minute
	pruneEvery = 10_000
)

// Figures count by app what becomes of its tasks and of the calls to its targets. A task
// counts when it ends, also one that was never called.
type Figures struct {
	apps    atomic.Pointer[map[string]*appFigures] // replaced as a whole
	targets atomic.Int64

	mu     sync.Mutex // guards the replacing
	pruned int64
}

type appFigures struct {
	kept bool // has a token, and figures as long as the process lives
	last atomic.Int64

	mu           sync.Mutex // guards all below
	ended        [10]int64  // since the start
	hour, minute window
	targets      map[string]*targetFigures
}

type targetFigures struct {
	last int64
	hour window // counts: succeeded and failed attempts
}

// NewFigures has figures of these apps for good; others come and go.
func NewFigures() *Figures {
	f := &Figures{}
	f.apps.Store(&map[string]*appFigures{})
	return f
}

// Keep has the figures of these apps stay.
func (f *Figures) Keep(apps []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := maps.Clone(*f.apps.Load())
	for _, app := range apps {
		a := newAppFigures()
		a.kept = true
		of[app] = a
	}
	f.apps.Store(&of)
}

func newAppFigures() *appFigures {
	return &appFigures{hour: newHour(), minute: newMinute(), targets: map[string]*targetFigures{}}
}

// of finds or makes the figures of an app; nil when there are too many apps.
func (f *Figures) of(app string, now int64) *appFigures {
	a := (*f.apps.Load())[app]
	if a == nil {
		if a = f.admit(app, now); a == nil {
			return nil
		}
	}
	if a.last.Load()/1000 != now/1000 {
		a.last.Store(now)
	}
	return a
}

// admit makes room for an app.
func (f *Figures) admit(app string, now int64) *appFigures {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := *f.apps.Load()
	if a := was[app]; a != nil {
		return a
	}
	if len(was) >= maxApps && now >= f.pruned && now-f.pruned < pruneEvery {
		return nil
	}
	of := maps.Clone(was)
	if len(of) >= maxApps {
		f.pruned = now
		maps.DeleteFunc(of, func(_ string, a *appFigures) bool {
			gone := !a.kept && now-a.last.Load() > idle
			if gone {
				f.targets.Add(-int64(a.countTargets()))
			}
			return gone
		})
		if len(of) >= maxApps {
			return nil
		}
	}
	a := newAppFigures()
	a.last.Store(now)
	of[strings.Clone(app)] = a
	f.apps.Store(&of)
	return a
}

func (a *appFigures) countTargets() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.targets)
}

// Ended counts a task that has ended now.
func (f *Figures) Ended(t *engine.Task) { f.Found(t, t.Ended) }

// Found counts a task that has ended at now (Unix ms) or before. One that ended before the
// last minute, or the last hour, is not counted there.
func (f *Figures) Found(t *engine.Task, now int64) {
	a := f.of(t.App, now)
	if a == nil {
		return
	}
	n := max(t.Count, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended[t.Status] += n
	for _, w := range [...]*window{&a.hour, &a.minute} {
		if !w.holds(t.Ended, now) {
			continue
		}
		s := w.at(t.Ended)
		s.counts[t.Status] += n
		if len(t.Attempts) > 0 && t.Lateness >= 0 {
			s.timed.add(t.OwnLateness())
		}
	}
}

// Attempt counts a call that was made, at now (Unix ms).
func (f *Figures) Attempt(app, target string, now int64, ok bool, took time.Duration) {
	a := f.of(app, now)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.targets[target]
	if x == nil {
		if x = f.admitTarget(a, target, now); x == nil {
			return
		}
	}
	x.last = now
	s := x.hour.at(now)
	s.timed.add(took)
	if ok {
		s.counts[engine.Succeeded]++
	} else {
		s.counts[engine.Failed]++
	}
}

// admitTarget makes room for a target, of one that is idle. a.mu is held.
func (f *Figures) admitTarget(a *appFigures, target string, now int64) *targetFigures {
	if len(a.targets) >= appTargets || f.targets.Load() >= maxTargets {
		before := len(a.targets)
		maps.DeleteFunc(a.targets, func(_ string, x *targetFigures) bool { return now-x.last > idle })
		f.targets.Add(int64(len(a.targets) - before))
		if len(a.targets) >= appTargets || f.targets.Load() >= maxTargets {
			return nil
		}
	}
	x := &targetFigures{hour: newHour()}
	a.targets[strings.Clone(target)] = x
	f.targets.Add(1)
	return x
}

// Target is what became of the calls of one app to one target in the last hour.
type Target struct {
	Target     string
	OK, Failed int64
	Took       [2]float64 // p50, p99 in ms
}

// Figure is what became of the tasks of one app.
type Figure struct {
	SinceStart   [10]int64 // by final TaskStatus
	Hour, Minute Outcomes
	Targets      []Target // most calls first
}

// Of gives the figures of an app; zero for one that has none.
func (f *Figures) Of(app string, now int64) (x Figure) {
	a := (*f.apps.Load())[app]
	if a == nil {
		return x
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x.SinceStart, x.Hour, x.Minute = a.ended, a.hour.outcomes(now), a.minute.outcomes(now)
	for name, t := range a.targets {
		sum, _ := t.hour.sum(now)
		y := Target{Target: name, OK: sum.counts[engine.Succeeded], Failed: sum.counts[engine.Failed]}
		if y.OK+y.Failed > 0 {
			y.Took = [2]float64{sum.timed.quantile(0.5), sum.timed.quantile(0.99)}
			x.Targets = append(x.Targets, y)
		}
	}
	slices.SortFunc(x.Targets, func(a, b Target) int {
		return cmp.Or(cmp.Compare(b.OK+b.Failed, a.OK+a.Failed), cmp.Compare(a.Target, b.Target))
	})
	return x
}

// Apps are the apps that have figures.
func (f *Figures) Apps() []string { return slices.Collect(maps.Keys(*f.apps.Load())) }
