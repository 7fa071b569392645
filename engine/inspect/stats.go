package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/resident"
)

// Minute is how the last 60 s went.
type Minute struct {
	FiresPerSec float64
	Lateness    [3]float64 // p50, p99, p99.9 in ms
	Ended       [10]int64  // since the start, by final TaskStatus
}

// Stats is the state of the service for GET /v1/stats.
type Stats struct {
	Minute
	Timers        engine.Counts
	Wheel         int   // timers and retries in the wheel
	Warm          int   // entries in the warm tier
	Open          int64 // tasks not finished, in memory
	InFlight      int64
	Overdue       int64         // due, and not started yet; those not in memory as counted of late
	OldestOverdue time.Duration // 0: none
	DueByMinute   [60]int64     // the coming hour; a timer faster than a minute counts once a minute
	SettleBacklog int64         // results not yet settled
	Journal       int64         // records not yet forgotten
	Uptime        time.Duration
	Watermark     int64           // the lowest of all shards, Unix ms
	Tiers         map[string]bool // up or not, by name
	Warnings      []Warning
}

// Memory returns how many unfinished tasks are in memory, and how many bytes of headers
// and bodies the timers in memory have and the calls under way need.
func (r *Reader) Memory() (tasks, payload int64) {
	return r.memory.Lanes.Resident.Load(), r.memory.Bodies.Bytes()
}

// Stats takes a look at everything.
func (r *Reader) Stats(ctx context.Context) (Stats, error) {
	now := r.now()
	s := Stats{Minute: r.LastMinute(), DueByMinute: r.cfg.Minutes.Look(r.memory.Owned(), now), Wheel: r.memory.Wheel.Len(), Warm: r.cfg.Warm.Len(), Journal: r.cfg.Journal.Len()}
	s.Uptime = time.Duration(now-r.memory.StartedAt) * time.Millisecond
	unsettled, _ := r.memory.Unsettled()
	lowest, _ := r.memory.Watermarks()
	s.SettleBacklog, s.Watermark = int64(unsettled), min(now, lowest)
	spilled := r.overdue.spilled()
	r.memory.EachTask(func(t *resident.Task) {
		s.add(t, now)
		spilled.takeOut(t)
	})
	s.addStored(spilled.sum(nil), now)
	s.Tiers, s.Warnings = r.Tiers(), r.Warnings()
	var err error
	s.Timers, err = r.cfg.Cold.Counts(ctx)
	return s, err
}

// AppStats are the Stats of one app: its tasks, and what belongs to no app. The rest
// stays zero.
func (r *Reader) AppStats(app string) (s Stats) {
	now := r.now()
	s.Minute, s.Tiers = r.AppMinute(app), r.Tiers()
	s.Uptime = time.Duration(now-r.memory.StartedAt) * time.Millisecond
	if w, ok := r.clockWarning(); ok {
		s.Warnings = append(s.Warnings, w)
	}
	lanes := map[engine.Lane]bool{} // of which some of the app is in memory
	spilled := r.overdue.spilled()
	r.memory.EachTask(func(t *resident.Task) {
		if t.App != app {
			return
		}
		if s.add(t, now); t.IsOverdue() {
			lanes[t.Lane.ID] = true
		}
		spilled.takeOut(t)
	})
	s.addStored(spilled.sum(func(l engine.Lane) bool { return lanes[l] }), now)
	return s
}

// add counts a task in memory. mu of its shard is held.
func (s *Stats) add(t *resident.Task, now int64) {
	if t.IsOver() {
		return
	}
	s.Open++
	switch {
	case t.InFlight():
		s.InFlight++
	case t.IsOverdue():
		s.Overdue++
		s.OldestOverdue = max(s.OldestOverdue, time.Duration(now-t.Key.Due)*time.Millisecond)
	}
}

// addStored adds rows of tasks that are not in memory.
func (s *Stats) addStored(w waiting, now int64) {
	if w.tasks > 0 {
		s.Overdue += w.tasks
		s.OldestOverdue = max(s.OldestOverdue, time.Duration(now-w.oldest)*time.Millisecond)
	}
}

// LastMinute looks at it; it is cheap.
func (r *Reader) LastMinute() (m Minute) {
	m.FiresPerSec, m.Lateness = r.tally.recent.Look(r.now())
	m.Ended = r.tally.ended()
	return m
}

// AppMinute is LastMinute of one app: its tasks count when they end.
func (r *Reader) AppMinute(app string) (m Minute) {
	x := r.apps.Figures.Of(app, r.now())
	m.FiresPerSec, m.Lateness, m.Ended = x.Minute.FiresPerSec, x.Minute.Lateness, x.SinceStart
	return m
}

// register adds gauges of the service to a set.
func (r *Reader) register(set *metrics.Set) {
	count := func(name string, of func() int64) {
		set.NewGauge(name, func() float64 { return float64(of()) })
	}
	count("xtimer_wheel_tasks", func() int64 { return int64(r.memory.Wheel.Len()) })
	count("xtimer_warm_entries", func() int64 { return int64(r.cfg.Warm.Len()) })
	count("xtimer_settle_backlog", func() int64 {
		n, _ := r.memory.Unsettled()
		return int64(n)
	})
	count("xtimer_tasks_overdue", r.countOverdue)
	count("xtimer_calls_limit", func() int64 { return int64(r.Calls(0).Places) })
	count("xtimer_targets_limited", func() int64 { return int64(r.Calls(0).Limited) })
	for s, of := range map[engine.Status]func(*engine.Counts) int64{
		engine.Enabled:  func(c *engine.Counts) int64 { return c.Enabled },
		engine.Disabled: func(c *engine.Counts) int64 { return c.Disabled },
		engine.Finished: func(c *engine.Counts) int64 { return c.Finished },
	} {
		count(fmt.Sprintf("xtimer_timers{status=%q}", s), func() int64 { return of(r.cfg.Tiers.Counts.Load()) })
	}
	for _, tier := range [...]string{"cold", "warm"} {
		count(fmt.Sprintf("xtimer_tier_up{tier=%q}", tier), func() int64 {
			if r.Tiers()[tier] {
				return 1
			}
			return 0
		})
	}
	set.NewGauge("xtimer_clock_behind_seconds", func() float64 { return r.ClockBehind().Seconds() })
	set.NewGauge("xtimer_migrator_lag_seconds", func() float64 {
		loaded := r.memory.Loaded.Load()
		if loaded == 0 {
			return 0 // it has not begun
		}
		return float64(max(0, r.now()-loaded)) / 1000
	})
}
