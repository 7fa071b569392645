package alert

import (
	"cmp"
	"context"
	"slices"

	"xtimer/engine"
)

// Bounds of a preview: the failures that are looked at, the newest; and how often it looks for a
// success between two of them. Beyond that, none is found.
const (
	mostPreviewed = 100_000
	mostBetween   = 10_000
)

// preview judges failures as if a rule had been in force.
type preview struct {
	*Alerter
	judge   *judge
	rule    *ruleAt
	between int // how often it looked between failures
}

// Preview counts how many incidents a rule would have opened from an instant on, by the failures
// in history and the successes between them, and how many failures the rule is about.
func (a *Alerter) Preview(ctx context.Context, app string, r Rule, from int64) (opened, failed int, err error) {
	events, err := a.failuresOf(ctx, app, from)
	if err != nil {
		return 0, 0, err
	}
	p := preview{Alerter: a, judge: newJudge(func() string { return "" }), rule: newRuleAt(app, "preview", r)}
	p.judge.rules[app] = []*ruleAt{p.rule}
	for page := range slices.Chunk(events, pageSize) {
		needs := map[engine.TimerID]bool{}
		for k := range page {
			if p.judge.needsTimer(&page[k]) {
				needs[page[k].Key.Timer] = true
			}
		}
		timers := map[engine.TimerID]*engine.Timer{}
		if len(needs) > 0 {
			if timers, err = a.load(ctx, needs); err != nil {
				return 0, 0, err
			}
		}
		for k := range page {
			ev, t := &page[k], timers[page[k].Key.Timer]
			if !p.rule.wants(ev) || !p.rule.Match.matches(ev.Name, t) {
				continue
			}
			failed += int(ev.dues())
			if err := p.recover(ctx, p.judge.group(p.rule, ev, t), ev); err != nil {
				return 0, 0, err
			}
			opened += len(p.judge.failed(ev, t, 0))
		}
	}
	return opened, failed, nil
}

// failuresOf are the failures of an app whose dues are from an instant on, by their ends.
func (a *Alerter) failuresOf(ctx context.Context, app string, from int64) (events []event, err error) {
	for _, f := range failures {
		if f.From = from; app != "*" {
			f.App = app
		}
		for before := (engine.Key{}); len(events) < mostPreviewed; {
			page, next, err := a.cfg.Cold.Tasks(ctx, f, before, 1000)
			if d := engine.DamagedRecord(err, before); d != nil {
				next, err = d.Key, nil
			}
			if err != nil {
				return nil, err
			}
			for _, t := range page {
				events = append(events, eventOf(t))
			}
			if before = next; next == (engine.Key{}) {
				break
			}
		}
	}
	slices.SortStableFunc(events, func(x, y event) int { return cmp.Compare(x.Ended, y.Ended) })
	return events, nil
}

// recover ends what a group has counted if a success before the next failure does.
func (p *preview) recover(ctx context.Context, g *group, next *event) (err error) {
	if g.open == nil && g.streak == 0 || p.between >= mostBetween {
		return nil
	}
	is := false
	switch {
	case g.timer != 0:
		p.between++
		is, err = p.succeededBetween(ctx, g.timer, g.last.Due, next.Key.Due)
	case next.Ended-g.open.Last > g.rule.Within.Milliseconds():
		p.between++
		f := engine.TaskFilter{From: g.open.Last, To: next.Ended + 1, Statuses: []engine.TaskStatus{engine.Succeeded}}
		if g.app != "*" {
			f.App = g.app
		}
		var page []*engine.Task
		page, _, err = p.cfg.Cold.Tasks(ctx, f, engine.Key{}, 1)
		is = len(page) > 0
	}
	if !is {
		return err
	}
	if g.streak = 0; g.open != nil {
		g.close(next.Ended, "recovered")
	}
	return nil
}
