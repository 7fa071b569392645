package inspect

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/resident"
)

// Tally is told what becomes of tasks and of their calls. It counts that, and tells those
// who watch.
type Tally struct {
	results     [10]*metrics.Counter // by final TaskStatus
	recent      Recent
	figures     *Figures
	subscribers *Subscribers
	watcher     func(*engine.Task) // nil: nobody is told besides
}

func newTally(f *Figures, s *Subscribers, ended func(*engine.Task), set *metrics.Set) *Tally {
	y := &Tally{recent: newRecent(), figures: f, subscribers: s, watcher: ended}
	for status := range y.results {
		y.results[status] = &metrics.Counter{}
		if s := engine.TaskStatus(status); s.Final() {
			y.results[status] = set.NewCounter(fmt.Sprintf("xtimer_fires_total{result=%q}", s))
		}
	}
	return y
}

// Ended counts a task that has ended, and tells those who watch. Calls for one task must
// not overlap.
func (y *Tally) Ended(t *engine.Task) {
	y.results[t.Status].Inc()
	y.tell(t)
}

// Decided counts tasks that were stored as ended without a call, and tells those who
// watch.
func (y *Tally) Decided(ts []*engine.Task) {
	for _, t := range ts {
		y.count(t)
		y.tell(t)
	}
}

// Found counts tasks that a start, or a gain of shards, has stored as ended, when nobody
// watches. now is when they were stored: a start may have decided them a while before.
func (y *Tally) Found(ts []*engine.Task, now int64) {
	for _, t := range ts {
		y.count(t)
		y.figures.Found(t, now)
	}
}

// count counts a task that was not called, or several.
func (y *Tally) count(t *engine.Task) { y.results[t.Status].AddInt64(max(t.Count, 1)) }

func (y *Tally) tell(t *engine.Task) {
	y.figures.Ended(t)
	y.subscribers.Tell(t)
	if y.watcher != nil {
		y.watcher(t)
	}
}

// Attempt counts a call of a timer that was made.
func (y *Tally) Attempt(t *engine.Timer, x resident.Ended, ok bool, took time.Duration) {
	y.figures.Attempt(t.App, engine.TargetOf(t.Callback.URL), x.At, ok, took)
	if x.First {
		y.recent.Add(x.At, x.Lateness)
	}
}

// ended counts the tasks that have ended since the start, by final TaskStatus.
func (y *Tally) ended() (n [10]int64) {
	for i, c := range y.results {
		n[i] = int64(c.Get())
	}
	return n
}
