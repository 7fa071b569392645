package alert

import (
	"cmp"
	"math"
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
	Ended     int64  // Unix ms
	Code      uint16 // the HTTP status, and from codeBits on the place in engine.Reasons, from 1 on
	Class     uint8  // the place in engine.ErrorClasses, from 1 on; 0: none
	Status    engine.TaskStatus
	N         uint32 // of a first attempt: its own lateness (ms); else how many dues ended so
}

// codeBits are the bits of an HTTP status.
const codeBits = 10

func eventOf(t *engine.Task) event {
	ev := event{Key: t.Key, App: t.App, Name: t.Name, Ended: t.Ended, Status: countsAs(t), N: uint32(min(t.Count, math.MaxUint32))}
	ev.Code = uint16(slices.Index(engine.Reasons, t.Reason)+1) << codeBits
	if n := len(t.Attempts); n > 0 {
		ev.Code |= uint16(t.Attempts[n-1].Code) & (1<<codeBits - 1)
		ev.Class = uint8(slices.Index(engine.ErrorClasses, t.Attempts[n-1].ErrorClass) + 1)
	}
	return ev
}

// countsAs is the status that a rule sees: dues that were skipped as misfires count as missed.
func countsAs(t *engine.Task) engine.TaskStatus {
	if t.IsMisfire() {
		return engine.Missed
	}
	return t.Status
}

// dues is how many failures the event is: a record may be of many dues that were not called.
func (ev *event) dues() int64 {
	if ev.Status == firstAttempt {
		return 1
	}
	return max(int64(ev.N), 1)
}

// late is the own lateness of a first attempt.
func (ev *event) late() time.Duration { return time.Duration(ev.N) * time.Millisecond }

// code is the HTTP status of the last answer; 0: there was none.
func (ev *event) code() int { return int(ev.Code & (1<<codeBits - 1)) }

// reason is that of the task; "": it has none.
func (ev *event) reason() string {
	if n := int(ev.Code >> codeBits); 0 < n && n <= len(engine.Reasons) { // another node may know others
		return engine.Reasons[n-1]
	}
	return ""
}

func (ev *event) class() string {
	if n := int(ev.Class); 0 < n && n <= len(engine.ErrorClasses) {
		return engine.ErrorClasses[n-1]
	}
	return ""
}

// by is the timer in an incident of it.
func (ev *event) by() string { return cmp.Or(ev.Name, ev.Key.Timer.String()) }

// word is what a rule calls the event.
func (ev *event) word() string {
	if ev.Status == firstAttempt {
		return "late"
	}
	return ev.Status.String()
}

// status is the status of the task.
func (ev *event) status() string {
	if ev.reason() == engine.ReasonMisfire {
		return engine.Skipped.String()
	}
	return ev.word()
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

// ring is where events wait. An end of a task that finds the ring full waits behind the ring, without names. Of an
// end that finds no room there either, the ring knows only the instant.
type ring struct {
	mu     sync.Mutex
	firsts queue[event] // first attempts
	events queue[event] // ends of tasks; with the first attempts they are events.most at most
	briefs queue[brief]
	gap    gap
	// left is the number of the last end that was taken or dropped: the first that waits has the number left+1.
	// The numbers are of the life of the process, which has a random name.
	left uint64
	life string
	// timers are those of the failures that wait, or were judged lately. A success of such a timer
	// matters, although the timer is not watched yet. Guarded by mu.
	timers map[engine.TimerID]bool
	holds  atomic.Bool      // there are timers
	lost   *metrics.Counter // how many found the ring full, of all time
	wake   chan struct{}    // holds one
}

// put keeps the order: while something waits behind the ring, all that comes does.
func (r *ring) put(ev event) {
	r.mu.Lock()
	if r.briefs.len > 0 || r.firsts.len+r.events.len >= r.events.most || !r.events.put(ev) {
		r.lost.Inc()
		if b := briefOf(&ev); !r.briefs.put(b) {
			r.gap.add(b)
		}
	}
	if ev.Status != engine.Succeeded && len(r.timers) < r.briefs.most {
		if r.timers == nil {
			r.timers = map[engine.TimerID]bool{}
			r.holds.Store(true)
		}
		r.timers[ev.Key.Timer] = true
	}
	r.mu.Unlock()
	r.poke()
}

// has reports whether a failure of a timer waits.
func (r *ring) has(id engine.TimerID) bool {
	if !r.holds.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.timers[id]
}

// watched forgets the timers of failures if no failure waits: all of these timers are watched by now.
func (r *ring) watched() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events.len+r.briefs.len == 0 {
		r.timers = nil
		r.holds.Store(false)
	}
}

// offer is put for a first attempt, which need not be seen: it is dropped while the ring is half full.
func (r *ring) offer(ev event) {
	r.mu.Lock()
	r.firsts.most = r.events.most/2 - r.events.len
	if r.briefs.len > 0 || !r.firsts.put(ev) {
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

// take returns the events that wait.
func (r *ring) take() (events queue[event]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += uint64(r.events.len)
	events.pages, events.len = append(r.firsts.pages, r.events.pages...), r.firsts.len+r.events.len
	r.firsts, r.events = queue[event]{}, queue[event]{most: r.events.most}
	return events
}

// putBack puts events back that were taken and not judged.
func (r *ring) putBack(events queue[event]) {
	for ; events.len > 0; events.drop(1) {
		if ev := events.first(1)[0]; ev.Status == firstAttempt {
			r.offer(ev)
		} else {
			r.put(ev)
		}
	}
}

// takeGap returns when those ended that found no room at all since.
func (r *ring) takeGap() (g gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	g, r.gap = r.gap, gap{}
	return g
}

// first returns the first of those that wait behind the ring, n at most, if the ring is empty; drop
// ends their wait.
func (r *ring) first(n int) []brief {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events.len > 0 {
		return nil
	}
	return r.briefs.first(n)
}

// oldest is when (Unix ms) the first of those ended that wait.
func (r *ring) oldest() (at int64, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, waits = r.gap.from, r.gap.from != 0
	if b := r.briefs.first(1); len(b) > 0 {
		at, waits = b[0].Ended, true
	}
	if ev := r.events.first(1); len(ev) > 0 {
		at, waits = ev[0].Ended, true
	}
	if ev := r.firsts.first(1); len(ev) > 0 && (!waits || ev[0].Ended < at) {
		at, waits = ev[0].Ended, true
	}
	return at, waits
}

func (r *ring) drop(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.briefs.drop(n)
	r.left += uint64(n)
}

// clear drops all that waits.
func (r *ring) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left += uint64(r.events.len + r.briefs.len)
	r.firsts, r.events, r.briefs, r.gap = queue[event]{}, queue[event]{most: r.events.most}, queue[brief]{most: r.briefs.most}, gap{}
}

// expire drops the first attempts that were made before an instant (Unix ms). An end of a task waits
// until it is judged.
func (r *ring) expire(before int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.firsts.len > 0 && r.firsts.first(1)[0].Ended < before {
		r.firsts.drop(1)
	}
}

// watch is the timers and apps with an open incident, or a streak, whose successes matter.
type watch struct {
	any    atomic.Bool
	mu     sync.RWMutex
	timers map[engine.TimerID]bool
	apps   map[string]*atomic.Int64 // when (Unix ms) the last success was, since the app is watched
}

// succeeded notes a success, and reports whether the alerter must be told.
func (w *watch) succeeded(t *engine.Task) bool {
	if !w.any.Load() {
		return false
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, app := range [...]string{t.App, "*"} {
		if last := w.apps[app]; last != nil {
			last.Store(t.Ended)
		}
	}
	return w.timers[t.Key.Timer]
}

// saw notes that an app had a success at an instant.
func (w *watch) saw(app string, at int64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if last := w.apps[app]; last != nil {
		last.Store(max(last.Load(), at))
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
	was := w.apps
	w.timers, w.apps = timers, make(map[string]*atomic.Int64, len(apps))
	for app := range apps {
		if w.apps[app] = was[app]; was[app] == nil {
			w.apps[app] = new(atomic.Int64)
		}
	}
	w.any.Store(len(timers)+len(apps) > 0)
}

// sawSuccess reports whether an app had a success since an instant.
func (w *watch) sawSuccess(app string, since int64) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	last := w.apps[app]
	return last != nil && last.Load() >= since
}

// setBack has no success lie after an instant.
func (w *watch) setBack(upTo int64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, last := range w.apps {
		last.Store(min(last.Load(), upTo))
	}
}

// Ended is told of each task that got its final status. Ended never blocks. Among several nodes the one that
// judges reads history; there Ended keeps only failures with dues before the part of history that is searched.
func (a *Alerter) Ended(t *engine.Task) {
	m, alone := a.matcher.Load(), a.cfg.Leads == nil
	switch {
	case m == nil || !alone && a.now()-t.Key.Due < furthestDue.Milliseconds():
		return
	case t.Status == engine.Succeeded:
		if alone && (a.watch.succeeded(t) || a.ring.has(t.Key.Timer)) {
			a.ring.put(eventOf(t))
		}
		return
	case !m.wants(t.App, countsAs(t)):
		return
	}
	ev := eventOf(t)
	if ev.Ended == 0 {
		ev.Ended = a.now()
	}
	a.ring.put(ev)
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
		a.ring.offer(event{Key: k, App: app, Name: name, Ended: a.now(), Status: firstAttempt, N: ms})
	}
}
