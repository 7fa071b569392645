package alert

import (
	"cmp"
	"context"
	"slices"

	"xtimer/engine"
)

// Preview counts how often a rule would have opened an incident from an instant on, by the
// failures in history. What ends an incident is not looked at: a value counts once in Repeat.
func (a *Alerter) Preview(ctx context.Context, app string, r Rule, from int64) (opened, failed int, err error) {
	var events []event
	const most = 100_000
	for _, f := range failures {
		if f.From = from; app != "*" {
			f.App = app
		}
		for before := (engine.Key{}); len(events) < most; {
			page, next, err := a.cfg.Cold.Tasks(ctx, f, before, 1000)
			if err != nil {
				return 0, 0, err
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
	j := newJudge(func() string { return "" })
	at := newRuleAt(app, "preview", r)
	j.rules[app] = []*ruleAt{at}
	for k := range events {
		ev := &events[k]
		if !at.on.has(ev.Status) {
			continue
		}
		failed += int(ev.dues())
		var t *engine.Timer
		if j.needsTimer(ev) {
			t, _ = a.cfg.Cold.Timer(ctx, ev.Key.Timer)
		}
		opened += len(j.failed(ev, t, 0))
	}
	return opened, failed, nil
}
