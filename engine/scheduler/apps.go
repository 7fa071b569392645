package scheduler

import (
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/resident"
)

// watchedApps counts by app what ends, for readers who may see one app only. Tasks count
// when they end, also those that were never called.
type watchedApps struct {
	of atomic.Pointer[map[string]*appCount] // replaced as a whole; the map never changes
}

type appCount struct {
	ended  [10]atomic.Int64 // by final TaskStatus
	recent recent
}

// WatchApps counts these apps from now on, each in some 60 KB; it is called once.
func (e *Scheduler) WatchApps(apps []string) {
	of := make(map[string]*appCount, len(apps))
	for _, app := range apps {
		of[app] = &appCount{}
	}
	e.watched.of.Store(&of)
}

// find is nil for an app that is not watched.
func (w *watchedApps) find(app string) *appCount {
	of := w.of.Load()
	if of == nil {
		return nil
	}
	return (*of)[app]
}

// ended counts a task that has ended.
func (w *watchedApps) ended(t *engine.Task) {
	c := w.find(t.App)
	if c == nil {
		return
	}
	c.ended[t.Status].Add(max(t.Count, 1))
	if len(t.Attempts) > 0 && t.Lateness >= 0 {
		c.recent.add(t.Ended, t.Lateness)
	}
}

// AppMinute is LastMinute of one app that is watched: its tasks count when they end.
func (e *Scheduler) AppMinute(app string) (m Minute) {
	c := e.watched.find(app)
	if c == nil {
		return m
	}
	m.FiresPerSec, m.Lateness = c.recent.look(e.now())
	for i := range m.Ended {
		m.Ended[i] = c.ended[i].Load()
	}
	return m
}

// AppStats are the Stats of one app that is watched: its tasks, and what belongs to no
// app. The rest stays zero.
func (e *Scheduler) AppStats(app string) (s Stats) {
	now, m := e.now(), e.AppMinute(app)
	s.Uptime = time.Duration(now-e.memory.StartedAt) * time.Millisecond
	s.FiresPerSec, s.Lateness, s.Ended, s.Tiers = m.FiresPerSec, m.Lateness, m.Ended, e.Tiers()
	if w, ok := e.clockWarning(); ok {
		s.Warnings = append(s.Warnings, w)
	}
	lanes := map[engine.Lane]bool{} // of which some of the app is in memory
	e.memory.EachTask(func(t *resident.Task) {
		if t.App != app {
			return
		}
		if s.add(t, now); t.IsOverdue() {
			lanes[t.Lane.ID] = true
		}
	})
	s.addStored(e.overdue.stored(func(l engine.Lane) bool { return lanes[l] }), now)
	return s
}
