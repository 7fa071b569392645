package alert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"xtimer/engine"
)

// judgedAtOnce is how many events are judged before the alerter may rest: that takes 1 ms.
const judgedAtOnce = 250

// judgeWaiting judges what waits in the ring and behind it, for a while, in the order in which
// it came. What cannot be judged because a definition cannot be read waits until it can be.
func (a *Alerter) judgeWaiting(ctx context.Context) {
	for began := time.Now(); time.Since(began) < mostTurn; {
		if a.taken.len == 0 {
			a.taken = a.ring.take()
		}
		if page := a.taken.first(judgedAtOnce); len(page) > 0 {
			if !a.judgeEvents(ctx, page) {
				return
			}
			a.taken.drop(len(page))
			continue
		}
		page := a.ring.first(judgedAtOnce)
		if len(page) == 0 || !a.judgePage(ctx, page, nil) {
			return
		}
		a.ring.drop(len(page))
	}
	a.ring.poke()
}

// judgeEvents judges events, and reports whether it could.
func (a *Alerter) judgeEvents(ctx context.Context, page []event) bool {
	needs := map[engine.TimerID]bool{}
	a.mu.Lock()
	for i := range page {
		if ev := &page[i]; ev.Status != engine.Succeeded && (a.judge.needsTimer(ev) || a.mutesNeedTimer(ev.App)) {
			needs[ev.Key.Timer] = true
		}
	}
	a.mu.Unlock()
	timers, ok := a.definitions(ctx, needs)
	if !ok || !a.readStreaks(ctx, page, timers) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range page {
		a.judgeOne(&page[i], timers[page[i].Key.Timer])
	}
	clear(a.judge.streaks)
	return true
}

// judgePage judges events without names, and reports whether it could. Of a gap, they are from
// history, which was asked for no success; and those that ended until its past, which are the first
// of them, are only remembered.
func (a *Alerter) judgePage(ctx context.Context, page []brief, of *gap) bool {
	needs := map[engine.TimerID]bool{}
	for i := range page {
		if page[i].Status != engine.Succeeded {
			needs[page[i].Key.Timer] = true
		}
	}
	timers, ok := a.definitions(ctx, needs)
	if !ok {
		return false
	}
	events := make([]event, len(page))
	for i := range page {
		app, name, t := "", "", timers[page[i].Key.Timer]
		if t != nil {
			app, name = t.App, t.Name
		}
		events[i] = page[i].named(app, name)
	}
	news := 0
	if of != nil && of.past != 0 {
		news, _ = slices.BinarySearchFunc(events, of.past+1, func(ev event, at int64) int { return cmp.Compare(ev.Ended, at) })
	}
	if !a.readStreaks(ctx, events[news:], timers) || of != nil && !a.readBreaks(ctx, events[news:], timers) {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range events[:news] {
		a.judge.remember(&events[i], timers[events[i].Key.Timer])
	}
	a.judge.again = of != nil && of.past != 0
	for i := range events[news:] {
		a.judgeOne(&events[news+i], timers[events[news+i].Key.Timer])
	}
	a.judge.again = false
	clear(a.judge.streaks)
	clear(a.judge.breaks)
	return true
}

// definitions reads definitions, of timers that are gone the last ones that are kept; ok is
// false if the tier cannot be read now.
func (a *Alerter) definitions(ctx context.Context, of map[engine.TimerID]bool) (found map[engine.TimerID]*engine.Timer, ok bool) {
	if len(of) == 0 {
		return nil, true
	}
	found, err := a.load(ctx, of)
	if err != nil {
		a.cannotRead(ctx, err)
		return nil, false
	}
	a.trouble = false
	return found, true
}

// load reads definitions likewise.
func (a *Alerter) load(ctx context.Context, of map[engine.TimerID]bool) (found map[engine.TimerID]*engine.Timer, err error) {
	ids := make([]engine.TimerID, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	all, err := a.cfg.Cold.Load(ctx, ids)
	found = make(map[engine.TimerID]*engine.Timer, len(all))
	for i := 0; err == nil && i < len(all); i++ {
		var t *engine.Timer
		if all[i] == nil {
			t, err = a.former(ctx, ids[i])
		} else if t, _ = engine.DecodeTimer(all[i]); t != nil && t.Omitted > 0 {
			t, err = a.whole(ctx, t)
		}
		found[ids[i]] = t
	}
	return found, err
}

// former is the last definition of a timer that is gone; nil if it is not kept any more.
func (a *Alerter) former(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	kept, err := a.cfg.Cold.Versions(ctx, id, 0, 1)
	if err != nil || len(kept) == 0 {
		return nil, unavailable(err)
	}
	return kept[0], nil
}

// whole is a timer whose labels were left out.
func (a *Alerter) whole(ctx context.Context, head *engine.Timer) (*engine.Timer, error) {
	t, err := a.cfg.Cold.Timer(ctx, head.ID)
	if err != nil {
		return head, unavailable(err)
	}
	return t, nil
}

// unavailable is an error with which a tier may be asked again; one of a row that is damaged or
// gone is none.
func unavailable(err error) error {
	var damaged *engine.Damage
	if errors.Is(err, engine.ErrNotFound) || errors.As(err, &damaged) {
		return nil
	}
	return err
}

// judgeOne judges an event. a.mu is held.
func (a *Alerter) judgeOne(ev *event, t *engine.Timer) {
	if ev.Status == firstAttempt {
		for _, i := range a.judge.succeeded(ev) {
			a.closed(i)
		}
		was := a.late.of(ev.Key) // it may have been told of already, as one that waits
		a.late.put(ev.Key, max(was, ev.N))
		a.judgeNews(ev, t, was)
		return
	}
	a.last = max(a.last, ev.Ended)
	if ev.Status == engine.Succeeded {
		for _, i := range a.judge.succeeded(ev) {
			a.closed(i)
		}
		return
	}
	if a.seen.has(ev.Key, ev.Ended) {
		return
	}
	a.seen.put(ev.Key, ev.Ended)
	a.judgeNews(ev, t, 0)
}

// judgeNews judges a failure, or a first attempt whose lateness was judged up to was. a.mu is
// held.
func (a *Alerter) judgeNews(ev *event, t *engine.Timer, was uint32) {
	for _, i := range a.judge.failed(ev, t, was) {
		a.open[i.ID], i.fresh = i, true
		if i.Muted = a.muted(ev.App, ev.Name, t); i.Muted {
			i.Opener = &Opener{ev.Key.Timer, ev.App, ev.Name}
		}
		a.tell(i, "incident.opened")
	}
}
