package alert

import (
	"context"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/object"
)

// lead is the state of the one of several nodes that judges for all. It reads the failures of
// all nodes from history: those of the last minutes every few seconds, and those whose due is
// longer ago less often; and it asks the other nodes, see others.go. Only Run uses the fields; any goroutine may read has.
type lead struct {
	has  atomic.Bool
	from int64 // the cursor (Unix ms) with which the node began
	// Up to when (Unix ms) failures were read, and when they are read again: of late dues, and of all.
	late, all         int64
	nextLate, nextAll time.Time
	// What the other nodes are in, by their names.
	states map[string][]State
	// Up to which number their ends of tasks were judged, by the names of their lives.
	judged map[string]uint64
}

// Times of a lead.
const (
	readEvery  = 2 * time.Second
	readAll    = time.Minute
	latestDues = 10 * time.Minute
	// settleSlack is how long after its end a task is in history, while its node can write the
	// tier; settledLate is for how long those are looked for that come later.
	settleSlack = 30 * time.Second
	settledLate = 5 * time.Minute
	readRest    = 10 // times what a read took
)

// mayJudge reports whether this process judges now.
func (a *Alerter) mayJudge() bool { return a.cfg.Leads == nil || a.lead.has.Load() }

// takeLead reports whether the node judges now; it begins where the former one ended, or
// forgets what is another's now.
func (a *Alerter) takeLead(ctx context.Context) bool {
	leads, led := a.cfg.Leads(), a.lead.has.Load()
	switch {
	case leads && !led:
		if a.cfg.Objects.Load(ctx) != nil {
			return false // it is asked again in a second
		}
		a.forgetAll()
		a.restore()
		a.mu.Lock()
		now := a.now()
		a.lead.late, a.lead.all, a.lead.from = now, now, a.last
		if a.saved == 0 {
			a.lead.from = now - 1
		}
		a.mu.Unlock()
	case !leads && led:
		a.forgetAll()
	}
	a.lead.has.Store(leads)
	return leads
}

// forgetAll forgets all that was judged.
func (a *Alerter) forgetAll() {
	a.box.drop()
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.open)
	clear(a.ending)
	a.seen, a.late = ends{seed: a.seen.seed}, recent[uint32]{}
	a.judge = newJudge(a.judge.newID)
	a.watch.replace(nil, nil)
	a.lead.states, a.lead.judged = nil, map[string]uint64{}
	a.ring.putBack(a.taken) // the node that judges now asks for it
	a.taken, a.gaps, a.unsure, a.unsaved = queue[event]{}, nil, nil, nil
}

// follow judges the failures of all nodes that are in history since it looked last, and the
// successes of the timers and apps with an incident.
func (a *Alerter) follow(ctx context.Context) {
	began := time.Now()
	if a.matcher.Load() == nil || began.Before(a.lead.nextLate) {
		return
	}
	a.mergeAcks()
	a.askOthers(ctx)
	now := a.now()
	upTo, furthest, slack := &a.lead.late, latestDues, settleSlack
	if !began.Before(a.lead.nextAll) {
		upTo, furthest, slack = &a.lead.all, furthestDue, settledLate
	}
	from := max(*upTo-slack.Milliseconds(), a.lead.from+1)
	if _, ok := a.lookBack(ctx, &gap{from: from, to: now, due: from - furthest.Milliseconds()}); ok {
		*upTo = now
	}
	a.readSuccesses(ctx)
	rest := readRest * time.Since(began)
	if a.lead.nextLate = began.Add(max(readEvery, rest)); furthest == furthestDue {
		a.lead.nextAll = began.Add(max(readAll, rest))
	}
}

// readSuccesses judges the last successes of timers with an incident or a streak, and looks at
// the apps with an incident.
func (a *Alerter) readSuccesses(ctx context.Context) {
	a.mu.Lock()
	timers, _ := a.judge.watched()
	a.mu.Unlock()
	n := 0
	for id := range timers {
		if n++; n > mostLooked {
			break // others follow: the order is another each time
		}
		_ = a.readSuccess(ctx, id) // the next look, in a few seconds, reads again
	}
	a.readApps(ctx)
}

// readApps notes the apps with an incident that had a success since.
func (a *Alerter) readApps(ctx context.Context) {
	a.mu.Lock()
	_, apps := a.judge.watched()
	since := map[string]int64{}
	for _, i := range a.open {
		if _, is := apps[i.App]; is && i.Timer == 0 {
			since[i.App] = max(since[i.App], i.Last)
		}
	}
	a.mu.Unlock()
	for app, last := range since {
		f := engine.TaskFilter{App: app, From: last, Statuses: []engine.TaskStatus{engine.Succeeded}}
		if app == "*" {
			f.App = ""
		}
		if page, _, err := a.cfg.Cold.Tasks(ctx, f, engine.Key{}, 1); err == nil && len(page) > 0 {
			a.watch.saw(app, page[0].Ended)
		}
	}
}

// ackStored acknowledges an incident that another node judges, which sees it within seconds.
func (a *Alerter) ackStored(ctx context.Context, app, id, note string) (acked Incident, err error) {
	for _, i := range a.stored(app, nil) {
		if i.ID != id {
			continue
		}
		_, _, err := a.cfg.Objects.Write(ctx, object.Write{
			Key: i.item().Key,
			When: func(stands *engine.Object) error {
				if stands != nil {
					acked, _ = read[Incident](stands)
				}
				if stands == nil || acked.Closed != 0 {
					return engine.ErrNotFound
				}
				return nil
			},
			Keep: func(*engine.Object, []byte) ([]byte, error) {
				acked.Acked, acked.AckedBy, acked.Note, acked.Next = a.now(), engine.Author(ctx), note, 0
				return acked.item().Body, nil
			},
		})
		return acked, err
	}
	return Incident{}, engine.ErrNotFound
}

// keepAck is the body of an incident with the acknowledgement of what stands, which another node
// may have stored.
func keepAck(stands *engine.Object, body []byte) ([]byte, error) {
	was, _ := read[Incident](stands)
	i, ok := read[Incident](&engine.Object{Body: body})
	if !ok || was.Acked == 0 || i.Acked != 0 {
		return body, nil
	}
	i.Acked, i.AckedBy, i.Note, i.Next = was.Acked, was.AckedBy, was.Note, 0
	return i.item().Body, nil
}

// mergeAcks takes over what other nodes have acknowledged.
func (a *Alerter) mergeAcks() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.open {
		o := a.cfg.Objects.Get(engine.ObjectKey{Kind: incidentKind, App: i.App, Name: i.ID})
		if o == nil || o.Version == i.version || i.Acked != 0 {
			continue
		}
		i.version = o.Version
		if was, ok := read[Incident](o); ok && was.Acked != 0 {
			i.Acked, i.AckedBy, i.Note, i.Next, i.changed = was.Acked, was.AckedBy, was.Note, 0, true
		}
	}
}
