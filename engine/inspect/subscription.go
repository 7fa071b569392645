package inspect

import (
	"context"
	"errors"
	"sort"

	"xtimer/engine"
)

// Event is one task that has ended, or a gap.
type Event struct {
	ID   EventID      // of the task
	Task *engine.Task // with its last attempt only; nil: see Gap
	Gap  Gap
}

// Gap says what a subscriber may have missed: tasks that ended in [From, To).
type Gap struct {
	From, To int64 // Unix ms
	// DueBefore bounds them further, to tasks due before it; 0: whatever their dues.
	DueBefore int64
	// Count is how many they are at most; 0: not known.
	Count int64
}

// Subscription is one reader of the tasks that end. Only one goroutine may use it.
type Subscription struct {
	s      *Subscribers
	filter engine.TaskFilter
	app    uint64
	wake   chan struct{}

	next   int64    // the next ending of the log
	passed EventID  // the last that was given or passed over
	batch  []ending // of the log, before next
	gaps   []Gap    // to be told first

	unread bool      // history is to be read first, from since on
	since  int64     // Unix ms
	replay []EventID // of history, in order
}

// tellWithin is how much later (ms) than its Ended a task may be told, so that another
// which ended later is told before it. So much of what a reader may have is told again
// when the log cannot say what the reader has.
const tellWithin = 2000

// Ready gets a value when Next may have an event.
func (w *Subscription) Ready() <-chan struct{} { return w.wake }

// Position is the ID from which on a reader that has all events so far would go on.
func (w *Subscription) Position() EventID { return w.passed }

// position is the ID of an ending as the reader may see it: of a task of another app it
// has the instant only.
func (w *Subscription) position(x *ending) EventID {
	if w.filter.App == "" || x.latest == 0 || x.app == w.app {
		return x.EventID
	}
	return EventID{Ended: x.Ended}
}

func (w *Subscription) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// resume goes back to the event after last.
func (w *Subscription) resume(last EventID) {
	s, now := w.s, w.s.history.Now()
	n, found := s.find(last)
	if !found && last.Ended > now+tellWithin { // the clock was set back since, nobody knows how far
		w.gaps = append(w.gaps, Gap{From: s.history.KeptSince(), To: last.Ended})
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	from := last.Ended - tellWithin
	switch {
	case found && n >= s.log.first:
		w.next = n + 1
	case from >= s.log.began:
		w.next = s.log.first + int64(sort.Search(int(s.log.next-s.log.first), func(i int) bool {
			return s.log.at(s.log.first+int64(i)).latest >= from
		}))
	default:
		w.next, w.unread, w.since = s.log.first, true, from
	}
	w.passed = last
	w.poke()
}

// find returns the number of an ending in the log.
func (s *Subscribers) find(id EventID) (n int64, ok bool) {
	s.mu.Lock()
	n = s.log.next
	s.mu.Unlock()
	for more := id.Key != (engine.Key{}); more && !ok; {
		n, ok, more = s.findBefore(n, id)
	}
	return n, ok
}

// findBefore looks at a chunk of endings before one: nobody who tells waits for long.
func (s *Subscribers) findBefore(n int64, id EventID) (at int64, ok, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for least := max(s.log.first, n-chunkSize); n > least; {
		if n--; s.log.at(n).EventID == id {
			return n, true, true
		}
	}
	return n, false, n > s.log.first
}

// Next gives the next event, if there is one; else Ready gets a value when there is.
// After an error the subscription is over: a reader that comes back goes on where it was.
func (w *Subscription) Next(ctx context.Context) (e Event, ok bool, err error) {
	if w.unread {
		if err := w.readHistory(ctx); err != nil {
			return Event{}, false, err
		}
		w.unread = false
	}
	for {
		if len(w.replay) == 0 && len(w.batch) == 0 {
			w.fetch()
		}
		if len(w.gaps) > 0 {
			e.Gap, w.gaps = w.gaps[0], w.gaps[1:]
			return e, true, nil
		}
		x, ok := w.take()
		if !ok {
			return Event{}, false, nil
		}
		t, err := w.taskOf(ctx, &x)
		if err != nil {
			return Event{}, false, err
		}
		w.passed = w.position(&x)
		if t != nil {
			return Event{ID: x.EventID, Task: t}, true, nil
		}
	}
}

// take takes the next ending: of history, then of what was fetched from the log.
func (w *Subscription) take() (x ending, ok bool) {
	if len(w.replay) > 0 {
		x.EventID, w.replay = w.replay[0], w.replay[1:]
		return x, true
	}
	if len(w.batch) == 0 {
		return ending{}, false
	}
	x, w.batch = w.batch[0], w.batch[1:]
	return x, true
}

// fetched is how many endings are copied from the log at a time.
const fetched = 256

// fetch copies the next endings of the log.
func (w *Subscription) fetch() {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if lost := s.log.first - w.next; lost > 0 {
		w.gaps = append(w.gaps, Gap{From: w.passed.Ended, To: s.log.began, Count: lost})
		w.next = s.log.first
	}
	w.batch = w.batch[:0]
	for ; w.next < s.log.next && len(w.batch) < fetched; w.next++ {
		w.batch = append(w.batch, *s.log.at(w.next))
	}
}

// taskOf is the task of an ending, if it is selected. A task that was called again since
// is told when it has ended again, and not as it was; one that history does not have any
// more is a gap.
func (w *Subscription) taskOf(ctx context.Context, x *ending) (*engine.Task, error) {
	t := x.task
	if t == nil {
		if !w.mayMatch(x) {
			return nil, nil
		}
		var err error
		if t, err = w.s.history.Task(ctx, x.Key); errors.Is(err, engine.ErrNotFound) {
			w.missed(x.Ended)
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if !t.Status.Final() || t.Ended != x.Ended {
			return nil, nil
		}
		t = Listed(t)
	}
	if !w.filter.Matches(t) {
		return nil, nil
	}
	return t, nil
}

// mayMatch reports whether the filter may select the task of an ending; of history all
// are selected.
func (w *Subscription) mayMatch(x *ending) bool {
	if x.latest == 0 {
		return true
	}
	known := engine.Task{Key: x.Key, Status: x.status, Origin: x.origin}
	if w.filter.App != "" {
		if x.app != w.app {
			return false
		}
		known.App = w.filter.App
	}
	return w.filter.Matches(&known)
}

// missed adds a task to the last gap.
func (w *Subscription) missed(ended int64) {
	if len(w.gaps) == 0 {
		w.gaps = append(w.gaps, Gap{From: ended, To: ended + 1})
	}
	g := &w.gaps[len(w.gaps)-1]
	g.From, g.To, g.Count = min(g.From, ended), max(g.To, ended+1), g.Count+1
}
