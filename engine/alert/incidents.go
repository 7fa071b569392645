package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/object"
)

// restore reads the incidents of a former process, and has that judged what ended since it
// stored its cursor.
func (a *Alerter) restore() {
	a.mu.Lock()
	a.renewed.Store(false)
	a.mutes.renewed.Store(true)
	a.judge.setRules(a.inForce(), a.now())
	for _, app := range a.cfg.Objects.Apps(incidentKind) {
		for _, o := range a.cfg.Objects.List(incidentKind, app) {
			i, ok := read[Incident](o)
			if ok {
				a.judge.stored(&i)
			}
			switch {
			case !ok || i.Closed != 0 && !i.Ending:
				continue
			case i.Closed != 0:
				a.ending[i.ID] = &i
				a.tellAgain(&i)
			case a.judge.restore(&i):
				a.open[i.ID] = &i
				if i.State == "channel" {
					a.box.fails(i.By)
				}
				a.tellAgain(&i)
			default: // the former process was killed after its rule was deleted or changed
				a.tellAgain(&i)
				i.Closed, i.Why = a.now(), "gone"
				a.closed(&i)
			}
		}
	}
	a.watch.replace(a.judge.watched())
	cursor := int64(0)
	if o := a.cfg.Objects.Get(cursorKey); o != nil {
		cursor, _ = read[int64](o)
	}
	a.last, a.saved = cursor, cursor
	newest := cursor
	for _, i := range a.open {
		newest = max(newest, i.Last)
	}
	if now := a.now(); newest > now { // the clock was set back since
		a.setBack(now, newest-now)
		cursor = a.last
	}
	a.mu.Unlock()
	if cursor != 0 && a.matcher.Load() != nil {
		now := time.Now()
		from := cursor + 1 - a.judge.longest().Milliseconds()
		a.gaps = append(a.gaps[:0], gap{from: from, to: a.now(), due: from - furthestDue.Milliseconds(), past: cursor, since: now, next: now})
	}
}

// tellAgain has the messages sent, under the ids that they had, that not all channels may have. Messages of a rule
// that is gone, or of an incident that is muted, go to nobody: the incident counts as told. a.mu is held.
func (a *Alerter) tellAgain(i *Incident) {
	r := a.rule(i)
	if r == nil || i.Muted {
		i.Sent, i.Ending, i.changed = i.Told, false, true
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
	a.mu.Lock()
	last, saved := a.cursor(), a.saved
	a.mu.Unlock()
	stored = a.saveOf(ctx, func(*Incident) bool { return true })
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

// skipFormer moves the cursor past all that ended before a change of the rules: newer rules do not count
// earlier failures, in the next process either. a.mu is held.
func (a *Alerter) skipFormer() {
	upTo := a.now() - 1
	if a.cfg.Leads != nil {
		upTo -= settleSlack.Milliseconds() // history may not have all of them yet
	}
	if a.matcher.Load() != nil {
		a.last = max(a.last, upTo)
	}
}

// cursor is the instant (Unix ms) up to which all failures were judged. Failures that wait, and those that
// are still to be read from history, ended later. a.mu is held.
func (a *Alerter) cursor() int64 {
	last := a.last
	if at, waits := a.oldest(); waits {
		last = min(last, at-1)
	}
	for _, g := range a.gaps {
		last = min(last, cmp.Or(g.past, g.from-1))
	}
	return last
}

// saveNews stores the incidents that were opened or closed, for people are told of those, and not
// those that only count; the first time all and a cursor. It reports whether they are stored.
func (a *Alerter) saveNews(ctx context.Context) (stored bool) {
	a.mu.Lock()
	first := a.saved == 0
	a.mu.Unlock()
	if first {
		return a.save(ctx)
	}
	return a.saveOf(ctx, func(i *Incident) bool { return i.fresh || i.Closed != 0 })
}

// saveOf stores what has changed of the incidents that are selected.
func (a *Alerter) saveOf(ctx context.Context, selects func(*Incident) bool) (stored bool) {
	a.mu.Lock()
	var changed []*Incident
	for _, of := range [...]map[string]*Incident{a.open, a.ending} {
		for _, i := range of {
			if i.changed && selects(i) {
				changed = append(changed, i)
			}
		}
	}
	a.mu.Unlock()
	stored = true
	for some := range slices.Chunk(changed, storedAtOnce) { // a message does not wait for all
		stored = a.storeAll(ctx, some) == nil && stored
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.ending, func(_ string, i *Incident) bool { return !i.changed && !i.Ending })
	return stored
}

// storedAtOnce is how many incidents are stored before the messages about them are sent.
const storedAtOnce = 250

// storeAll stores incidents as they are, and has those messages sent that waited for them. Those
// that it cannot store are stored with the next save; it returns why the first of them was not.
func (a *Alerter) storeAll(ctx context.Context, some []*Incident) (first error) {
	a.storing.Lock() // one that was copied later is stored later
	defer a.storing.Unlock()
	items, of := make([]object.Item, len(some)), make(map[string]bool, len(some))
	copies := make([]Incident, len(some))
	a.mu.Lock()
	for n, i := range some {
		i.changed, i.fresh = false, false
		copies[n] = *i
	}
	a.mu.Unlock()
	for n := range copies {
		items[n] = copies[n].item()
		if a.cfg.Leads != nil {
			items[n].Keep = keepAck
		}
		of[copies[n].ID] = true
	}
	for n, err := range a.cfg.Objects.PutAll(ctx, items) {
		if err == nil {
			continue
		}
		if first == nil && ctx.Err() == nil {
			a.cfg.Log.Warn("cannot store incidents", "incident", copies[n].ID, "error", err)
		}
		first = cmp.Or(first, err)
		delete(of, copies[n].ID)
		a.storeAgain(copies[n].ID)
	}
	a.release(of)
	return first
}

// item is the object of an incident.
func (i *Incident) item() object.Item {
	body, err := json.Marshal(i)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return object.Item{Key: engine.ObjectKey{Kind: incidentKind, App: i.App, Name: i.ID}, Body: body}
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

// forgetOld deletes old incidents until ctx ends, each minute, and soon after too many are stored: timers
// that fail and succeed in turns may close thousands a second. To delete many takes its time.
func (a *Alerter) forgetOld(ctx context.Context) {
	for forgot := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(saveEvery):
		}
		if a.mayJudge() && (time.Since(forgot) >= forgetEvery || a.closedStored() > mostClosed) {
			a.forget(ctx, a.now()-keptClosed.Milliseconds())
			forgot = time.Now()
		}
	}
}

// closedStored is how many closed incidents are stored, or fewer: some open ones may not be stored yet.
func (a *Alerter) closedStored() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cfg.Objects.Count(incidentKind) - len(a.open) - len(a.ending)
}

// mostClosed is how many incidents that were closed are kept; a variable for tests.
var mostClosed = 10_000

// forget deletes incidents that were closed before an instant, and those beyond mostClosed that
// were closed first.
func (a *Alerter) forget(ctx context.Context, before int64) {
	closed := slices.DeleteFunc(a.stored("", nil), func(i Incident) bool { return i.Closed == 0 || i.Ending })
	slices.SortFunc(closed, func(x, y Incident) int { return cmp.Compare(y.Closed, x.Closed) })
	var old []engine.ObjectKey
	for n, i := range closed {
		if n >= mostClosed || i.Closed < before {
			old = append(old, engine.ObjectKey{Kind: incidentKind, App: i.App, Name: i.ID})
		}
	}
	_ = a.cfg.Objects.DeleteAll(ctx, old) // what was not deleted is tried again in a minute
}

// stored reads the stored incidents of an app, or of all apps (""), and leaves those out that it is given.
func (a *Alerter) stored(app string, but map[string]bool) (all []Incident) {
	for _, of := range a.cfg.Objects.Apps(incidentKind) {
		if app != "" && of != app {
			continue
		}
		for _, o := range a.cfg.Objects.List(incidentKind, of) {
			if but[o.Name] {
				continue
			}
			if i, ok := read[Incident](o); ok {
				all = append(all, i)
			}
		}
	}
	return all
}

// Incidents lists the incidents of an app ("": of all), open ones as they stand now.
func (a *Alerter) Incidents(app string) (all []Incident) {
	known := map[string]bool{}
	a.mu.Lock()
	for _, of := range [...]map[string]*Incident{a.open, a.ending} {
		for _, i := range of {
			if known[i.ID] = true; app == "" || i.App == app {
				all = append(all, *i)
			}
		}
	}
	a.mu.Unlock()
	return append(all, a.stored(app, known)...)
}

// closeGone closes the incidents of timers that were deleted. It looks at some of them every
// few seconds.
func (a *Alerter) closeGone(ctx context.Context) {
	a.mu.Lock()
	if len(a.open) == 0 || time.Since(a.looked) < lookEvery {
		a.mu.Unlock()
		return
	}
	a.looked = time.Now()
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
			a.judge.gone(i, a.now())
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
	i.Acked, i.AckedBy, i.Note, i.Next, i.changed = a.now(), engine.Author(ctx), note, 0, true
	c := *i
	a.mu.Unlock()
	return c, a.storeAll(ctx, []*Incident{i})
}
