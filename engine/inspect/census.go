package inspect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
)

// ForecastHours is how many hours a forecast has, the present one first.
const ForecastHours = 7 * 24

const (
	hour = 60 * minute
	// countedHours is how many hours a census counts: an answer may come an hour or two
	// after the census began.
	countedHours = ForecastHours + 2
	// censusPage is how many timers are in memory at a time; a tier makes a page shorter
	// if they have large bodies.
	censusPage = 256
	// A census works all the time for censusWait, during which a reader waits for it, and
	// then for a censusShare of the time. The next begins when the former is older than
	// censusRest times what that took.
	censusWait  = 100 * time.Millisecond
	censusShare = 5
	censusRest  = 20
	// censusApps is how many apps are counted one by one; the others are in the sum.
	censusApps = 10_000
)

// Timers lists all timers by keyset, as engine.Cold.Timers does.
type Timers func(ctx context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error)

// Census counts all timers, by app and status, and their dues of the next seven days by
// hour. It reads every definition, in the background, when somebody asks.
type Census struct {
	timers Timers
	now    func() int64
	begin  func(func(context.Context)) // in the background

	mu      sync.Mutex
	whole   *Count        // the last that was completed
	took    time.Duration // of that
	part    *Count        // under way
	begun   time.Time     // when that began
	done    chan struct{} // closed when that has ended; nil: none is
	nextDue time.Time     // when the next may begin
}

// Count is the result of a census.
type Count struct {
	At    int64 // when it began, Unix ms; 0: none has begun
	Whole bool  // all timers were counted; else the numbers are lower bounds
	All   AppCount
	Apps  map[string]*AppCount
}

// AppCount is the timers of an app.
type AppCount struct {
	engine.Counts
	Dues [countedHours]int64 // by hour, from the hour of Count.At on: dues after Count.At
}

// NewCensus makes a census of timers; begin runs a function in the background.
func NewCensus(timers Timers, now func() int64, begin func(func(context.Context))) *Census {
	return &Census{timers: timers, now: now, begin: begin}
}

// Look returns the last census, or what the first has counted so far, and begins the
// next one if it is due. A reader waits for it in the first censusWait only, and not if
// the last census took longer: it gets the last one then.
func (c *Census) Look(ctx context.Context) *Count {
	c.mu.Lock()
	if c.done == nil && !time.Now().Before(c.nextDue) {
		c.done, c.begun, c.part = make(chan struct{}), time.Now(), &Count{At: c.now(), Apps: map[string]*AppCount{}}
		c.begin(c.run)
	}
	done, left := c.done, time.Duration(0)
	if c.took <= censusWait {
		left = censusWait - time.Since(c.begun)
	}
	c.mu.Unlock()
	if done != nil && left > 0 {
		wait := time.NewTimer(left)
		defer wait.Stop()
		select {
		case <-done:
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.whole != nil:
		return c.whole
	case c.part != nil:
		return c.part.clone()
	}
	return &Count{}
}

func (n *Count) clone() *Count {
	m := *n
	m.Apps = maps.Clone(n.Apps)
	for app, a := range m.Apps {
		b := *a
		m.Apps[app] = &b
	}
	return &m
}

// run counts once.
func (c *Census) run(ctx context.Context) {
	err := c.count(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	took := time.Since(c.begun)
	if err == nil {
		c.part.Whole = true
		c.whole, c.part, c.took = c.part, nil, took
	}
	c.nextDue = time.Now().Add(max(time.Second, censusRest*took))
	close(c.done)
	c.done = nil
}

// count goes through all timers.
func (c *Census) count(ctx context.Context) error {
	plans := newForecaster(c.part.At)
	counts := make([]counted, censusPage)
	for after := ""; ; {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		began := time.Now()
		ts, next, err := c.timers(ctx, engine.TimerFilter{}, after, censusPage)
		if err != nil {
			return err
		}
		for i, t := range ts {
			plans.count(t, &counts[i])
		}
		c.mu.Lock()
		for i, t := range ts {
			c.part.add(t.App, &counts[i])
		}
		c.mu.Unlock()
		if after = next; next == "" {
			return nil
		}
		if time.Since(c.begun) > censusWait {
			rest := time.NewTimer((censusShare - 1) * time.Since(began))
			select {
			case <-rest.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// add counts a timer.
func (n *Count) add(app string, x *counted) {
	to := []*AppCount{&n.All}
	a := n.Apps[app]
	if a == nil && len(n.Apps) < censusApps {
		a = &AppCount{}
		n.Apps[string([]byte(app))] = a // of its own: a definition is not kept for it
	}
	if a != nil {
		to = append(to, a)
	}
	for _, to := range to {
		switch x.status {
		case engine.Enabled:
			to.Enabled++
		case engine.Disabled:
			to.Disabled++
		case engine.Finished:
			to.Finished++
		}
		for i, dues := range x.dues {
			to.Dues[i] += dues
		}
	}
}

// Of is the count of an app ("": of all), and whether it is exact.
func (n *Count) Of(app string) (c AppCount, exact bool) {
	if app == "" {
		return n.All, n.Whole
	}
	if a := n.Apps[app]; a != nil {
		return *a, n.Whole
	}
	return c, n.Whole && len(n.Apps) < censusApps
}

// Hours are the dues of so many hours of a count, from the hour of now on, and when the
// first of them begins (Unix ms).
func (n *Count) Hours(c *AppCount, now int64, hours int) (dues []int64, first int64) {
	first = now / hour * hour
	passed := int(max(0, (first-n.At/hour*hour)/hour))
	return slices.Clone(c.Dues[min(passed, countedHours):min(passed+hours, countedHours)]), first
}
