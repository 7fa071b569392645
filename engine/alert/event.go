package alert

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
)

// firstAttempt is the status of an event that is no end of a task: the first attempt of one
// was made, or waits.
const firstAttempt engine.TaskStatus = 30

// event is the end of a task, or a first attempt: 64 bytes.
type event struct {
	Key       engine.Key
	App, Name string
	Ended     int64 // Unix ms
	Code      uint16
	Class     uint8 // the place in engine.ErrorClasses, from 1 on; 0: none
	Status    engine.TaskStatus
	Late      uint32 // of a first attempt: its own lateness (ms)
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

// word is what a rule calls the event.
func (ev *event) word() string {
	if ev.Status == firstAttempt {
		return "late"
	}
	return ev.Status.String()
}

// wordSet is a set of words.
type wordSet uint32

func (s wordSet) has(st engine.TaskStatus) bool { return s&(1<<st) != 0 }

// matcher is what the engine's goroutines look at: which ends of tasks matter to some rule.
type matcher struct {
	apps map[string]wordSet       // "*": of every app
	late map[string]time.Duration // the least lateness that matters; nil: none does
}

// isLate reports whether a lateness matters to some rule.
func (m *matcher) isLate(app string, late time.Duration) bool {
	for _, of := range [...]string{app, "*"} {
		if over, is := m.late[of]; is && late > over {
			return true
		}
	}
	return false
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

// offer is put for what need not be seen: it is dropped while the ring is half full.
func (r *ring) offer(ev event) {
	r.mu.Lock()
	if len(r.events) < ringSize/2 {
		r.events = append(r.events, ev)
	} else {
		r.lost.Inc()
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

// expire drops the events that ended before an instant (Unix ms).
func (r *ring) expire(before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = slices.DeleteFunc(r.events, func(ev event) bool { return ev.Ended < before })
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

// saw notes a success of an app.
func (w *watch) saw(app string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, is := w.apps[app]; is {
		w.apps[app] = true
	}
}

// has reports whether the timer has an open incident.
func (w *watch) has(timer engine.TimerID) bool {
	if !w.any.Load() {
		return false
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.timers[timer]
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
	if m == nil || a.cfg.Leads != nil {
		return // of several nodes, one reads of it
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

// First is told of each first attempt, and of each that is still waited for, with its own
// lateness. It never blocks.
func (a *Alerter) First(k engine.Key, app, name string, late time.Duration) {
	m := a.matcher.Load()
	if m == nil || m.late == nil {
		return
	}
	if m.isLate(app, late) || a.watch.has(k.Timer) {
		ms := uint32(min(max(late, 0), 24*24*time.Hour).Milliseconds())
		a.ring.offer(event{Key: k, App: app, Name: name, Ended: time.Now().UnixMilli(), Status: firstAttempt, Late: ms})
	}
}
