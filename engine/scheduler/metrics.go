package scheduler

import (
	"fmt"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/engine/resident"
)

// counters are what the engine counts; names and units are API.md's.
type counters struct {
	lateness      *vm.PrometheusHistogram
	early         *vm.Counter    // must stay 0
	attempts      [7]*vm.Counter // by code class: none, 1xx … 5xx, other
	inFlight      *vm.Gauge
	settleSeconds *vm.PrometheusHistogram
	panics        *vm.Counter
	clockSteps    *vm.Counter
	audit         *vm.Counter
	redelivered   [resident.Comes]*vm.Counter        // by how the shard came
	holds         map[string]*vm.PrometheusHistogram // by what held a task
	unwritten     *vm.Counter                        // successes left out of history, the disk being all but full
}

func newCounters(set *vm.Set) *counters {
	c := &counters{
		lateness: set.NewPrometheusHistogramExt("xtimer_lateness_seconds", []float64{
			.0001, .0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60,
		}),
		early: set.NewCounter("xtimer_fired_early_total"),
		settleSeconds: set.NewPrometheusHistogramExt("xtimer_settle_seconds", []float64{
			.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10,
		}),
		inFlight:   set.NewGauge("xtimer_calls_in_flight", nil),
		panics:     set.NewCounter("xtimer_call_panics_total"),
		clockSteps: set.NewCounter("xtimer_clock_steps_total"),
		audit:      set.NewCounter("xtimer_audit_violations_total"),
		unwritten:  set.NewCounter("xtimer_history_left_out_total"),
	}
	c.holds = map[string]*vm.PrometheusHistogram{}
	for by := range flow.Causes {
		if by != flow.ByNone {
			c.holds[by.String()] = set.NewPrometheusHistogramExt(fmt.Sprintf("xtimer_hold_seconds{by=%q}", by), []float64{
				.01, .1, 1, 10, 60, 600, 3600, 86_400,
			})
		}
	}
	for how := range c.redelivered {
		c.redelivered[how] = set.NewCounter(fmt.Sprintf("xtimer_redelivered_total{cause=%q}", resident.Came(how)))
	}
	for i, class := range [...]string{"none", "1xx", "2xx", "3xx", "4xx", "5xx", "other"} {
		c.attempts[i] = set.NewCounter(fmt.Sprintf("xtimer_attempts_total{code_class=%q}", class))
	}
	return c
}

// gaugeHolds shows what holds tasks now.
func gaugeHolds(set *vm.Set, queue *fair.Queue[*resident.Task]) {
	for by := range flow.Causes {
		if by != flow.ByNone {
			set.NewGauge(fmt.Sprintf("xtimer_held_tasks{by=%q}", by), func() float64 { return float64(queue.HeldItems()[by]) })
		}
	}
	set.NewGauge("xtimer_breakers_open", func() float64 { return float64(queue.OpenBreakers()) })
}

func (c *counters) fired(late time.Duration) {
	if late < 0 {
		c.early.Inc() // the histogram would drop it without a word
		late = 0
	}
	c.lateness.Update(late.Seconds())
}

// held counts for how long a task was held before an attempt.
func (c *counters) held(by string, took time.Duration) {
	if h := c.holds[by]; h != nil {
		h.Update(took.Seconds())
	}
}

func (c *counters) attempt(code int) {
	i := code / 100
	if i > 5 {
		i = 6
	}
	c.attempts[i].Inc()
}

// Gate is how a flow key or a target stands. Waiting has what is not in memory too, and oldest is
// since when the oldest task of all waits (Unix ms; 0: not known), both as counted of late. Next and
// Closed are by Unix time.
func (e *Scheduler) Gate(n flow.Name) (s fair.GateStats, oldest int64, ok bool) {
	q := e.memory.Queue
	s, ok = q.Gate(n)
	unix := func(at time.Duration) time.Duration {
		return time.Duration(e.now())*time.Millisecond + max(0, at-q.Now())
	}
	if ok && s.Next != flow.Never {
		s.Next = unix(s.Next)
	}
	if s.Closed > 0 {
		s.Closed = unix(s.Closed)
	}
	stored, oldest := e.HeldBy(n)
	s.Waiting += int(stored)
	return s, oldest, ok
}

// Resuming is what becomes of the dues that a pause of a name held; see resident.Memory.Deciding.
func (e *Scheduler) Resuming(n flow.Name) string { return e.memory.Deciding(n) }

// BrokenFlows are the names of the keys and targets whose breaker holds calls now.
func (e *Scheduler) BrokenFlows() []flow.Name { return e.memory.Queue.Broken() }
