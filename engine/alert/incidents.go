package alert

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"xtimer/engine"
)

// restore reads the incidents of a former process, and has that judged what ended since it
// stored its cursor.
func (a *Alerter) restore() {
	a.mu.Lock()
	a.renewed.Store(false)
	a.judge.setRules(a.inForce(), time.Now().UnixMilli())
	for _, app := range a.cfg.Objects.Apps(incidentKind) {
		for _, o := range a.cfg.Objects.List(incidentKind, app) {
			i, ok := read[Incident](o)
			if ok && i.Closed != 0 {
				a.judge.ended(&i)
			}
			switch {
			case !ok || i.Closed != 0 && !i.Ending:
				continue
			case i.Closed != 0:
				a.ending[i.ID] = &i
			case a.judge.restore(&i):
				a.open[i.ID] = &i
				if i.State == "channel" {
					a.box.fails(i.By)
				}
			default:
				continue
			}
			a.tellAgain(&i)
		}
	}
	a.watch.replace(a.judge.watched())
	cursor := int64(0)
	if o := a.cfg.Objects.Get(cursorKey); o != nil {
		cursor, _ = read[int64](o)
	}
	a.last, a.saved = cursor, cursor
	a.mu.Unlock()
	if cursor != 0 && a.matcher.Load() != nil {
		now := time.Now()
		from := cursor + 1 - a.judge.longest().Milliseconds()
		a.gaps = append(a.gaps[:0], gap{from: from, to: now.UnixMilli(), due: from - furthestDue.Milliseconds(), past: cursor, since: now, next: now})
	}
}

// tellAgain has the messages sent, under the ids that they had, that not all channels may have.
// a.mu is held.
func (a *Alerter) tellAgain(i *Incident) {
	r := a.rule(i)
	if r == nil || i.Muted {
		i.Ending = false
		return
	}
	for n := i.Sent + 1; n <= i.Told; n++ {
		what := "incident.repeated"
		switch {
		case n == 1:
			what = "incident.opened"
		case n == i.Told && i.Closed != 0 && r.Recovered:
			what = "incident.recovered"
		}
		a.box.put(i.RuleApp, i.letter(what, n, a.cfg.Link), r.Channels)
	}
}

var cursorKey = engine.ObjectKey{Kind: cursorKind, App: "*", Name: "cursor"}

// save stores what has changed, and the cursor. It reports whether all incidents are stored.
func (a *Alerter) save(ctx context.Context) (stored bool) {
	stored = true
	a.mu.Lock()
	var changed []*Incident
	for _, of := range [...]map[string]*Incident{a.open, a.ending} {
		for _, i := range of {
			if i.changed {
				i.changed, i.fresh = false, false
				c := *i
				changed = append(changed, &c)
			}
		}
	}
	last, saved := a.last, a.saved
	a.mu.Unlock()
	for n, i := range changed {
		if !a.store(ctx, i) {
			a.storeAgain(i.ID)
			stored = false
		}
		if n < 100 { // of the first, a message does not wait for all
			a.release(i.ID)
		}
	}
	a.mu.Lock()
	maps.DeleteFunc(a.ending, func(_ string, i *Incident) bool { return !i.changed && !i.Ending })
	a.mu.Unlock()
	if last == saved || !stored {
		return stored
	}
	body, _ := json.Marshal(last)
	if _, _, err := a.cfg.Objects.Put(ctx, cursorKey, body, nil); err == nil {
		a.mu.Lock()
		a.saved = last
		a.mu.Unlock()
	}
	return stored
}

// storeAgain has an incident stored with the next save.
func (a *Alerter) storeAgain(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, of := range [...]map[string]*Incident{a.open, a.ending} {
		if i := of[id]; i != nil {
			i.changed = true
		}
	}
}

// store reports whether an incident is stored.
func (a *Alerter) store(ctx context.Context, i *Incident) bool {
	body, err := json.Marshal(i)
	if err == nil {
		_, _, err = a.cfg.Objects.Put(ctx, engine.ObjectKey{Kind: incidentKind, App: i.App, Name: i.ID}, body, nil)
	}
	if err != nil && ctx.Err() == nil {
		a.cfg.Log.Warn("cannot store an incident", "incident", i.ID, "error", err)
	}
	return err == nil
}

// forget deletes incidents that were closed before an instant.
func (a *Alerter) forget(ctx context.Context, before int64) {
	for _, i := range a.stored("") {
		if i.Closed != 0 && i.Closed < before {
			_ = a.cfg.Objects.Delete(ctx, engine.ObjectKey{Kind: incidentKind, App: i.App, Name: i.ID}, nil) // the next save tries again
		}
	}
}

func (a *Alerter) stored(app string) (all []Incident) {
	for _, of := range a.cfg.Objects.Apps(incidentKind) {
		if app != "" && of != app {
			continue
		}
		for _, o := range a.cfg.Objects.List(incidentKind, of) {
			if i, ok := read[Incident](o); ok {
				all = append(all, i)
			}
		}
	}
	return all
}

// Incidents lists the incidents of an app ("": of all), open ones as they stand now.
func (a *Alerter) Incidents(app string) (all []Incident) {
	by := map[string]Incident{}
	for _, i := range a.stored(app) {
		by[i.ID] = i
	}
	a.mu.Lock()
	for _, of := range [...]map[string]*Incident{a.open, a.ending} {
		for _, i := range of {
			if app == "" || i.App == app {
				by[i.ID] = *i
			}
		}
	}
	a.mu.Unlock()
	for i := range maps.Values(by) {
		all = append(all, i)
	}
	return all
}

// closeGone closes the incidents of timers that were deleted. It looks at some of them every
// few seconds.
func (a *Alerter) closeGone(ctx context.Context) {
	a.mu.Lock()
	now := time.Now().UnixMilli()
	if len(a.open) == 0 || now-a.looked < lookEvery.Milliseconds() {
		a.mu.Unlock()
		return
	}
	a.looked = now
	var some []*Incident
	for _, i := range a.open {
		if i.Timer != 0 && len(some) < mostLooked {
			some = append(some, i)
		}
	}
	a.mu.Unlock()
	for _, i := range some {
		if _, err := a.cfg.Cold.Timer(ctx, i.Timer); !errors.Is(err, engine.ErrNotFound) {
			continue
		}
		a.mu.Lock()
		if a.open[i.ID] != nil {
			a.judge.gone(i, now)
			a.closed(i)
		}
		a.mu.Unlock()
	}
}

// Ack stops the repeats of an open incident that an app ("": any) may see.
func (a *Alerter) Ack(ctx context.Context, app, id, note string) (Incident, error) {
	a.mu.Lock()
	i := a.open[id]
	if i == nil && a.cfg.Leads != nil {
		a.mu.Unlock()
		return a.ackStored(ctx, app, id, note)
	}
	if i == nil || app != "" && i.App != app {
		a.mu.Unlock()
		return Incident{}, engine.ErrNotFound
	}
	i.Acked, i.AckedBy, i.Note, i.Next, i.changed = time.Now().UnixMilli(), engine.Author(ctx), note, 0, true
	c := *i
	a.mu.Unlock()
	a.store(ctx, &c)
	return c, nil
}
