package scheduler

import (
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/inspect"
	"xtimer/engine/resident"
)

// Apps are the apps as readers see them.
func (e *Scheduler) Apps() *inspect.Apps { return &e.apps }

// Started is when the scheduler began, in Unix ms.
func (e *Scheduler) Started() int64 { return e.memory.StartedAt }

// watchApps makes what counts by app.
func (e *Scheduler) watchApps() {
	e.apps = inspect.Apps{
		Figures: inspect.NewFigures(), Now: e.now,
		Census: inspect.NewCensus(e.cfg.Cold.Timers, e.now, e.process.Go),
		Lanes:  func(selected func(string) bool) []fair.LaneStats { return e.memory.Queue.Lanes(selected) },
		Stored: e.overdue.storedIn,
	}
}

// AppMinute is LastMinute of one app: its tasks count when they end.
func (e *Scheduler) AppMinute(app string) (m Minute) {
	x := e.apps.Figures.Of(app, e.now())
	m.FiresPerSec, m.Lateness, m.Ended = x.Minute.FiresPerSec, x.Minute.Lateness, x.SinceStart
	return m
}

// AppStats are the Stats of one app: its tasks, and what belongs to no app. The rest
// stays zero.
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
