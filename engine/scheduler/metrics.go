package scheduler

import (
	"fmt"
	"time"

	"xtimer/engine"

	vm "github.com/VictoriaMetrics/metrics"
)

// counters are what the engine counts; names and units are API.md's.
type counters struct {
	set           *vm.Set
	lateness      *vm.PrometheusHistogram
	early         *vm.Counter // must stay 0
	results       [10]*vm.Counter
	attempts      [7]*vm.Counter // by code class: none, 1xx … 5xx, other
	inFlight      *vm.Gauge
	settleSeconds *vm.PrometheusHistogram
	panics        *vm.Counter
	clockSteps    *vm.Counter
	audit         *vm.Counter
	created       *vm.Counter
	redelivered   *vm.Counter
	unwritten     *vm.Counter // successes left out of history, the disk being all but full
}

func newCounters(e *Scheduler, set *vm.Set) *counters {
	c := &counters{
		set: set,
		lateness: set.NewPrometheusHistogramExt("xtimer_lateness_seconds", []float64{
			.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60,
		}),
		early: set.NewCounter("xtimer_fired_early_total"),
		settleSeconds: set.NewPrometheusHistogramExt("xtimer_settle_seconds", []float64{
			.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10,
		}),
		inFlight:    set.NewGauge("xtimer_calls_in_flight", nil),
		panics:      set.NewCounter("xtimer_call_panics_total"),
		clockSteps:  set.NewCounter("xtimer_clock_steps_total"),
		audit:       set.NewCounter("xtimer_audit_violations_total"),
		created:     set.NewCounter("xtimer_timers_created_total"),
		redelivered: set.NewCounter("xtimer_redelivered_total"),
		unwritten:   set.NewCounter("xtimer_history_left_out_total"),
	}
	for s := engine.Succeeded; s <= engine.Unknown; s++ {
		c.results[s] = set.NewCounter(fmt.Sprintf("xtimer_fires_total{result=%q}", s))
	}
	for s := range engine.Succeeded {
		c.results[s] = &vm.Counter{}
	}
	for i, class := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"} {
		c.attempts[i] = set.NewCounter(fmt.Sprintf("xtimer_attempts_total{code_class=%q}", class))
	}
	set.NewGauge("xtimer_wheel_tasks", func() float64 { return float64(e.memory.Wheel.Len()) })
	set.NewGauge("xtimer_warm_entries", func() float64 { return float64(e.cfg.Warm.Len()) })
	set.NewGauge("xtimer_migrator_lag_seconds", func() float64 {
		loaded := e.memory.Loaded.Load()
		if loaded == 0 {
			return 0 // it has not begun
		}
		return float64(max(0, e.now()-loaded)) / 1000
	})
	set.NewGauge("xtimer_settle_backlog", func() float64 {
		n, _ := e.memory.Unsettled()
		return float64(n)
	})
	set.NewGauge("xtimer_tasks_overdue", func() float64 {
		return float64(e.countOverdue())
	})
	set.NewGauge("xtimer_clock_behind_seconds", func() float64 { return e.ClockBehind().Seconds() })
	set.NewGauge("xtimer_calls_limit", func() float64 { return float64(e.memory.Queue.Stats(0).Places) })
	set.NewGauge("xtimer_targets_limited", func() float64 { return float64(e.memory.Queue.Stats(0).Limited) })
	up := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	set.NewGauge(`xtimer_tier_up{tier="cold"}`, func() float64 { return up(e.coldUp()) })
	set.NewGauge(`xtimer_tier_up{tier="warm"}`, func() float64 { return up(e.warmUp()) })
	for _, s := range [...]engine.Status{engine.Enabled, engine.Disabled, engine.Finished} {
		set.NewGauge(fmt.Sprintf("xtimer_timers{status=%q}", s), func() float64 { return float64(e.countOf(s)) })
	}
	return c
}

func (c *counters) fired(late time.Duration) {
	if late < 0 {
		c.early.Inc() // the histogram would drop it without a word
		late = 0
	}
	c.lateness.Update(late.Seconds())
}

func (c *counters) ended(s engine.TaskStatus)              { c.results[s].Inc() }
func (c *counters) endedMany(s engine.TaskStatus, n int64) { c.results[s].Add(int(n)) }
func (c *counters) timerMade()                             { c.created.Inc() }

func (c *counters) attempt(code int) {
	i := code / 100
	if i > 5 {
		i = 6
	}
	c.attempts[i].Inc()
}

// taskEnded counts a task that has ended, and tells those who watch.
func (e *Scheduler) taskEnded(t *engine.Task) {
	e.metrics.ended(t.Status)
	e.tell(t)
}
