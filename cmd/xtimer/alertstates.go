package main

import (
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
	"xtimer/engine/scheduler"
	"xtimer/wal"
)

// alertStates says which of the states hold that rules of alerts may be about.
type alertStates struct {
	engine  *scheduler.Scheduler
	guard   *wal.Guard
	isFull  func() bool // the memory
	counted *metrics.Set
	node    string // of several; "": the process is alone
}

// leads reports whether this one of several nodes judges.
func (s *alertStates) leads() bool { return s.engine.Leads() }

// time is that of the engine: the clock of one of several nodes may be wrong.
func (s *alertStates) time() time.Time {
	now, _ := s.engine.Now()
	return time.UnixMilli(now)
}

func (s *alertStates) now() []alert.State {
	return append(s.ofService(), s.ofApps()...)
}

// ofService are the states of this process.
func (s *alertStates) ofService() (all []alert.State) {
	add := func(is bool, word, of string) {
		if is {
			all = append(all, alert.State{Word: word, App: "*", Of: of})
		}
	}
	for name, up := range s.engine.Tiers() {
		add(!up, "tier", name+" tier")
	}
	own := func(is bool, word string) {
		of := word
		if s.node != "" {
			of += " of " + s.node
		}
		add(is, word, of)
	}
	own(s.engine.ClockBehind() > 0, "clock")
	own(s.guard.State() != wal.SpaceOK, "disk")
	own(s.isFull(), "memory")
	own(s.counted.GetOrCreateCounter("xtimer_fired_early_total").Get() > 0, "early")
	own(s.counted.GetOrCreateCounter("xtimer_audit_violations_total").Get() > 0, "audit")
	own(s.counted.GetOrCreateCounter("xtimer_verify_findings_total").Get() > 0, "verify")
	return all
}

// ofApps are the states of apps, of their flow keys and of targets.
func (s *alertStates) ofApps() (all []alert.State) {
	for app, n := range s.engine.OverdueOf() {
		all = append(all, alert.State{Word: "backlog", App: app, Of: app, N: n})
	}
	set, now, breakers := s.engine.Objects(), s.time().UnixMilli(), false
	for _, kind := range [...]string{limit.FlowKind, limit.TargetKind, limit.PauseKind} {
		for _, app := range set.Apps(kind) {
			for _, o := range set.List(kind, app) {
				x, err := limit.Read(o)
				if err != nil {
					continue
				}
				breakers = breakers || x.Limit != nil && x.Limit.Breaker.Of > 0
				if x.PausedUntil > now {
					all = append(all, alert.State{Word: "paused", App: app, Of: pausedOf(o)})
				}
			}
		}
	}
	if breakers {
		for _, n := range s.engine.BrokenFlows() {
			app, of := n.App, "flow "+n.Key
			if n.Kind == flow.OfTarget {
				app, of = limit.EachApp, "target "+n.Key
			}
			all = append(all, alert.State{Word: "breaker", App: app, Of: of})
		}
	}
	for _, app := range s.engine.RefusingQuotas() {
		all = append(all, alert.State{Word: "quota", App: app, Of: "quota"})
	}
	return all
}

func pausedOf(o *engine.Object) string {
	switch {
	case o.Kind == limit.FlowKind:
		return "flow " + o.Name
	case o.Kind == limit.TargetKind:
		return "target " + limit.NameOf(o.ObjectKey).Key
	case o.App == limit.EachApp:
		return "all apps"
	}
	return "app"
}
