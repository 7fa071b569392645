package alert

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
)

// event is the end of a task: 64 bytes.
type event struct {
	Key       engine.Key
	App, Name string
	Ended     int64 // Unix ms
	Code      uint16
	Class     uint8 // the place in engine.ErrorClasses, from 1 on; 0: none
	Status    engine.TaskStatus
}

func eventOf(t *engine.Task) event {
	ev := event{Key: t.Key, App: t.App, Name: t.Name, Ended: t.Ended, Status: t.Status}
	if n := len(t.Attempts); n > 0 {
		ev.Code = uint16(t.Attempts[n-1].Code)
		for i, c := range engine.ErrorClasses {
			if c == t.Attempts[n-1].ErrorClass {
				ev.Class = uint8(i + 1)
			}
		}
	}
	return ev
}

func (ev *event) class() string {
	if ev.Class == 0 {
		return ""
	}
	return engine.ErrorClasses[ev.Class-1]
}

// statusSet is a set of final statuses.
type statusSet uint32

func (s statusSet) has(st engine.TaskStatus) bool { return s&(1<<st) != 0 }

// matcher is what the engine's goroutines look at: which ends of tasks matter to some rule.
type matcher struct {
	apps map[string]statusSet // "*": of every app
}

func (m *matcher) wants(app string, st engine.TaskStatus) bool {
	return m.apps[app].has(st) || m.apps["*"].has(st)
}

// ringSize is how many events wait for the alerter.
const ringSize = 1 << 16

// ring is where events wait.
type ring struct {
	mu     sync.Mutex
	events []event
	// From when to when (Unix ms) events ended that found no room; 0: none.
	lostFrom, lostTo int64
	lost             *metrics.Counter // how many, of all time
	wake             chan struct{}    // holds one
}

func (r *ring) put(ev event) {
	r.mu.Lock()
	if len(r.events) >= ringSize {
		if r.lostFrom == 0 {
			r.lostFrom = ev.Ended
		}
		r.lostFrom, r.lostTo = min(r.lostFrom, ev.Ended), max(r.lostTo, ev.Ended)
		r.lost.Inc()
	} else {
		r.events = append(r.events, ev)
	}
	r.mu.Unlock()
	r.poke()
}

func (r *ring) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns what waits, and from when to when events were lost since.
func (r *ring) take() (events []event, from, to int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	events, from, to = r.events, r.lostFrom, r.lostTo
	r.events, r.lostFrom, r.lostTo = nil, 0, 0
	return events, from, to
}

// watch is the timers and apps with an open incident, or a streak, whose successes matter.
type watch struct {
	any    atomic.Bool
	mu     sync.RWMutex
	timers map[engine.TimerID]bool
	apps   map[string]bool // true: a success was seen since it is watched
}

// succeeded notes a success, and reports whether the alerter must be told.
func (w *watch) succeeded(t *engine.Task) bool {
	if !w.any.Load() {
		return false
	}
	w.mu.RLock()
	timer := w.timers[t.Key.Timer]
	news := false
	for _, app := range [...]string{t.App, "*"} {
		seen, is := w.apps[app]
		news = news || is && !seen
	}
	w.mu.RUnlock()
	if news {
		w.mu.Lock()
		for _, app := range [...]string{t.App, "*"} {
			if _, is := w.apps[app]; is {
				w.apps[app] = true
			}
		}
		w.mu.Unlock()
	}
	return timer
}

// replace watches others; what was seen of an app that stays is kept.
func (w *watch) replace(timers map[engine.TimerID]bool, apps map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for app := range apps {
		apps[app] = w.apps[app]
	}
	w.timers, w.apps = timers, apps
	w.any.Store(len(timers)+len(apps) > 0)
}

func (w *watch) sawSuccess(app string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.apps[app]
}

// Ended is told of each task that got its final status. It never blocks.
func (a *Alerter) Ended(t *engine.Task) {
	m := a.matcher.Load()
	if m == nil {
		return
	}
	if t.Status == engine.Succeeded {
		if a.watch.succeeded(t) {
			a.ring.put(eventOf(t))
		}
		return
	}
	if m.wants(t.App, t.Status) {
		ev := eventOf(t)
		if ev.Ended == 0 {
			ev.Ended = time.Now().UnixMilli()
		}
		a.ring.put(ev)
	}
}
