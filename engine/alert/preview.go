package alert

import (
	"context"

	"xtimer/engine"
)

// Preview counts how often a rule would have opened an incident from an instant on, by the
// failures in history. What ends an incident is not looked at: a value counts once in Repeat.
func (a *Alerter) Preview(ctx context.Context, app string, r Rule, from int64) (opened, failures int, err error) {
	var events []event
	f := engine.TaskFilter{From: from, Statuses: []engine.TaskStatus{engine.Failed, engine.Dead, engine.Unknown, engine.Missed}}
	if app != "*" {
		f.App = app
	}
	const most = 100_000
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
	j := newJudge(func() string { return "" })
	at := newRuleAt(app, "preview", r)
	j.rules[app] = []*ruleAt{at}
	for k := len(events) - 1; k >= 0; k-- { // the oldest first
		ev := &events[k]
		if !at.on.has(ev.Status) {
			continue
		}
		failures++
		var t *engine.Timer
		if j.needsTimer(ev) {
			t, _ = a.cfg.Cold.Timer(ctx, ev.Key.Timer)
		}
		opened += len(j.failed(ev, t, 0))
	}
	return opened, failures, nil
}
