package alert

import (
	"slices"
	"strings"

	"xtimer/engine"
)

// A channel that fails so often in a row is an incident of the app "*", until it takes a
// message. If no rule of that app is about channels, the built-in one is, which tells nobody.
const failsInRow = 10

// builtIn is a name that no object has.
const builtIn = "(built in)"

// inForce are the rules in force, with the built-in one if nothing stands for it.
func (a *Alerter) inForce() map[string][]*ruleAt {
	all := a.rules()
	about := func(r *ruleAt) bool { return slices.Contains(r.On, "channel") }
	if !slices.ContainsFunc(all["*"], about) {
		r := NewRule()
		r.On, r.Severity, r.Repeat = []string{"channel"}, "critical", 0
		all["*"] = append(all["*"], newRuleAt("*", builtIn, r))
	}
	return all
}

// attempted notes what came of an attempt to send a message to a channel.
func (o *outbox) attempted(k engine.ObjectKey, delivered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case delivered:
		delete(o.failed, k)
	default:
		o.failed[k]++
	}
}

// failing are the channels that fail, as states.
func (o *outbox) failing() (all []State) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, n := range o.failed {
		if o.a.cfg.Objects.Get(k) == nil {
			delete(o.failed, k)
		} else if n >= failsInRow {
			all = append(all, State{Word: "channel", App: "*", Of: k.App + "/" + k.Name})
		}
	}
	return all
}

// fails has a channel fail that failed in a former process, by its name in an incident.
func (o *outbox) fails(of string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if app, name, ok := strings.Cut(of, "/"); ok {
		o.failed[engine.ObjectKey{Kind: ChannelKind, App: app, Name: name}] = failsInRow
	}
}
