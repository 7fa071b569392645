package alert

import (
	"cmp"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Incident is something that a rule found, from its opening to its end.
type Incident struct {
	ID       string   `json:"id"`
	Rule     string   `json:"rule"`
	RuleApp  string   `json:"rule_app"` // the rule's; "*": of all apps
	App      string   `json:"app"`
	By       string   `json:"by"` // the timer's name or id, the target, the app or the rule
	Severity string   `json:"severity"`
	On       []string `json:"on"` // the statuses that were seen
	Opened   int64    `json:"opened"`
	Last     int64    `json:"last"` // the last failure
	Closed   int64    `json:"closed,omitempty"`
	Why      string   `json:"why,omitempty"` // it was closed: recovered, gone
	Count    int64    `json:"count"`
	Muted    bool     `json:"muted,omitempty"`
	Acked    int64    `json:"acked,omitempty"`
	AckedBy  string   `json:"acked_by,omitempty"`
	Note     string   `json:"note,omitempty"`
	// Told is how many messages there are of it, Sent how many all channels have, or were given up.
	Told int `json:"told"`
	Sent int `json:"sent"`
	// Ending: it was closed, and a message is still to be sent. Former builds did not store
	// this, nor what was sent after the end.
	Ending bool   `json:"ending,omitempty"`
	Next   int64  `json:"next,omitempty"`  // when it is repeated
	Tasks  []Task `json:"tasks"`           // the last, at most 5
	State  string `json:"state,omitempty"` // the word, of an incident that is a state

	Timer  engine.TimerID `json:"timer,string,omitempty"` // 0: it is of several
	Opener *Opener        `json:"opener,omitempty"`       // of one that is muted and no state

	was     *Rule  // the rule, of one that was closed because that is gone
	changed bool   // since it was stored
	version uint32 // of the object that was looked at last, of one of several nodes
	fresh   bool   // it was not stored yet
}

// Task is one task of an incident.
type Task struct {
	Key    string `json:"key"`
	Name   string `json:"name"`
	Due    int64  `json:"due"`
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	Code   int    `json:"code,omitempty"`
	Class  string `json:"error_class,omitempty"`
}

const mostTasks = 5

func (i *Incident) add(ev *event) {
	i.Count += ev.dues()
	i.Last = max(i.Last, ev.Ended)
	if s := ev.word(); !slices.Contains(i.On, s) {
		i.On = append(i.On, s)
	}
	if len(i.Tasks) == mostTasks {
		i.Tasks = i.Tasks[1:]
	}
	i.Tasks = append(slices.Clip(i.Tasks), Task{ev.Key.String(), ev.Name, ev.Key.Due, ev.status(), ev.reason(), ev.code(), ev.class()})
	i.changed = true
}

// ruleAt is a rule in force.
type ruleAt struct {
	Rule
	app, name string
	on        wordSet
}

func newRuleAt(app, name string, r Rule) *ruleAt {
	at := &ruleAt{Rule: r, app: app, name: name, on: setOf(r.On)}
	was := NewRule() // what an earlier build stored has not these
	at.Late, at.Over, at.For = cmp.Or(r.Late, was.Late), cmp.Or(r.Over, was.Over), cmp.Or(r.For, was.For)
	return at
}

// wants reports whether the rule is about an event, if the timer of the event matches.
func (r *ruleAt) wants(ev *event) bool { return r.on.has(ev.Status) && !r.inBounds(ev) }

// isAbout reports whether the rule still is about something that the incident has.
func (r *ruleAt) isAbout(i *Incident) bool { return r.on&setOf(i.On) != 0 }

// inBounds reports whether a first attempt was not late.
func (r *ruleAt) inBounds(ev *event) bool {
	return ev.Status == firstAttempt && ev.late() <= r.Late
}

// judge decides what events mean. It reads no clock and no store.
type judge struct {
	rules  map[string][]*ruleAt // by app
	groups map[groupKey]*group
	of     map[engine.TimerID][]*group
	newID  func() string

	streaks map[groupKey]int    // of groups that are not in memory yet, as history has them
	breaks  map[engine.Key]bool // failures before which their timers have succeeded since the one before
	// Of groups of which a former process had an incident: the last end (Unix ms) that was
	// counted in it, or at which it was closed. Again: failures are read from history that this
	// process may have counted.
	judged map[groupKey]int64
	again  bool
}

func newJudge(newID func() string) *judge {
	return &judge{rules: map[string][]*ruleAt{}, groups: map[groupKey]*group{}, of: map[engine.TimerID][]*group{}, newID: newID, streaks: map[groupKey]int{}, breaks: map[engine.Key]bool{}, judged: map[groupKey]int64{}}
}

// mostGroups bounds what is counted apart; beyond it, what is new is counted by app. A variable for
// tests.
var mostGroups = 10_000

func (j *judge) group(r *ruleAt, ev *event, t *engine.Timer) *group {
	app, by, timer := ev.App, r.app+"/"+r.name, engine.TimerID(0)
	switch r.By {
	case "timer":
		by, timer = ev.by(), ev.Key.Timer
	case "target":
		by = ""
		if t != nil {
			by = flow.TargetOf(t.Callback.URL)
		}
	case "app":
		by = ev.App
	case "rule":
		app = r.app
	}
	return j.groupOf(r, app, by, timer)
}

func (j *judge) groupOf(r *ruleAt, app, by string, timer engine.TimerID) *group {
	key := r.key(app, by, timer)
	if g := j.groups[key]; g != nil {
		return g
	}
	if len(j.groups) >= mostGroups && (timer != 0 || r.By == "target" && by != app) {
		if r.Streak > 0 { // a streak is of one timer: history has it, and nobody keeps it
			return &group{rule: r, app: app, by: by, timer: timer, streak: j.streaks[key]}
		}
		key = r.key(app, app, 0)
	}
	return j.ownGroup(r, key)
}

// ownGroup is the group of a key alone, however many there are.
func (j *judge) ownGroup(r *ruleAt, key groupKey) *group {
	g := j.groups[key]
	if g == nil {
		g = &group{rule: r, app: key.app, by: key.by, timer: key.timer, word: key.word, streak: j.streaks[key]}
		j.groups[key] = g
		delete(j.streaks, key)
		if key.timer != 0 {
			j.of[key.timer] = append(j.of[key.timer], g)
		}
	}
	return g
}

// needsTimer reports whether the definition of the event's timer is needed to judge it.
func (j *judge) needsTimer(ev *event) bool {
	needs := func(r *ruleAt) bool { return r.wants(ev) && (r.Match.needsTimer() || r.By == "target") }
	return slices.ContainsFunc(j.rules[ev.App], needs) || slices.ContainsFunc(j.rules["*"], needs)
}

// failed counts a failure, or a first attempt whose lateness (ms) was counted up to was, and
// returns the incidents that it opens.
func (j *judge) failed(ev *event, t *engine.Timer, was uint32) (opened []*Incident) {
	for _, app := range [...]string{ev.App, "*"} {
		for _, r := range j.rules[app] {
			if !r.wants(ev) || time.Duration(was)*time.Millisecond > r.Late || !r.Match.matches(ev.Name, t) {
				continue
			}
			g := j.group(r, ev, t)
			if j.again && ev.Ended <= j.judged[g.key()] {
				continue
			}
			if g.open != nil {
				g.count(ev)
				g.open.add(ev)
				continue
			}
			if j.breaks[ev.Key] {
				g.streak = 0
			}
			n := g.count(ev)
			if key := g.key(); j.groups[key] == nil { // the judge is full
				if n == 0 {
					j.streaks[key] = g.streak
					continue
				}
				if g = j.ownGroup(r, r.key(g.app, g.app, 0)); g.open != nil {
					g.open.add(ev)
					continue
				}
			}
			if n == 0 {
				continue
			}
			g.open = &Incident{ID: j.newID(), Rule: r.name, RuleApp: r.app, App: g.app, By: g.by, Severity: r.Severity, Opened: ev.Ended, Timer: g.timer}
			g.open.add(ev)
			g.open.Count = int64(n)
			opened = append(opened, g.open)
		}
	}
	return opened
}

// count counts a failure, and returns how many make an incident, 0 if they do not yet.
func (g *group) count(ev *event) int {
	n := int(ev.dues())
	g.last, g.ended = ev.Key, ev.Ended
	if g.rule.Streak > 0 {
		if g.streak += n; g.streak >= g.rule.Streak {
			return g.streak
		}
		return 0
	}
	was := g.recent
	for range min(n, g.rule.After) {
		g.recent = append(g.recent, ev.Ended)
	}
	if len(g.recent) > g.rule.After {
		g.recent = g.recent[len(g.recent)-g.rule.After:]
	}
	within := g.rule.Within.Milliseconds()
	if len(g.recent) < g.rule.After || ev.Ended-g.recent[0] > within {
		return 0
	}
	for _, at := range was {
		if ev.Ended-at <= within {
			n++
		}
	}
	return n
}

// succeeded ends the streaks and the incidents of a timer, and returns those. A first attempt
// in bounds ends those about late ones.
func (j *judge) succeeded(ev *event) (closed []*Incident) {
	for _, g := range j.of[ev.Key.Timer] {
		if ev.Status == firstAttempt {
			if g.open != nil && g.isLate() && g.rule.inBounds(ev) {
				closed = append(closed, g.close(ev.Ended, "recovered"))
			}
			continue
		}
		if g.open == nil && g.rule.Streak > 0 && ev.Ended >= g.ended {
			g.streak, g.ended = 0, 0
		}
		if g.open != nil && !g.isLate() && ev.Ended >= g.open.Last {
			closed = append(closed, g.close(ev.Ended, "recovered"))
		}
	}
	return closed
}

// isLate reports whether the open incident is about first attempts only.
func (g *group) isLate() bool { return len(g.open.On) == 1 && g.open.On[0] == "late" }

func (g *group) close(at int64, why string) *Incident {
	i := g.open
	i.Closed, i.Why, i.changed = at, why, true
	g.open, g.streak, g.ended, g.recent = nil, 0, 0, nil
	return i
}

// gone closes an incident of a timer that was deleted.
func (j *judge) gone(i *Incident, now int64) {
	for _, g := range j.of[i.Timer] {
		if g.open == i {
			g.close(now, "gone")
		}
	}
}

// pass closes the incidents of several timers that had no failure for a time, and a success since
// the last one.
func (j *judge) pass(now int64, sawSuccess func(app string, since int64) bool) (closed []*Incident) {
	full, removed := len(j.groups) >= mostGroups/2, false
	for key, g := range j.groups {
		if g.open == nil && full && g.isStale(now) {
			delete(j.groups, key)
			removed = true
			continue
		}
		if g.open != nil && g.timer == 0 && g.word == "" && now-g.open.Last > g.rule.Within.Milliseconds() && sawSuccess(g.app, g.open.Last) {
			closed = append(closed, g.close(now, "recovered"))
		}
	}
	if removed {
		j.index()
	}
	return closed
}

// isStale reports whether nothing that the group has counted matters any more.
// A streak that goes on is read from history.
func (g *group) isStale(now int64) bool {
	return g.word == "" && now-g.ended > g.rule.Within.Milliseconds()
}

// setRules puts rules into force, and returns the incidents of rules that are gone, or about something
// else now.
func (j *judge) setRules(rules map[string][]*ruleAt, now int64) (closed []*Incident) {
	j.rules = rules
	find := func(app, name string) *ruleAt {
		for _, r := range rules[app] {
			if r.name == name {
				return r
			}
		}
		return nil
	}
	for key, g := range j.groups {
		r := find(g.rule.app, g.rule.name)
		if r != nil && r.By == g.rule.By && (g.open == nil || r.isAbout(g.open)) {
			if i := g.open; i != nil && i.Acked == 0 && r.Repeat != g.rule.Repeat {
				i.renew(g.rule.Repeat, r.Repeat, now)
			}
			g.rule = r
			continue
		}
		if g.open != nil {
			g.open.was = &g.rule.Rule
			closed = append(closed, g.close(now, "gone"))
		}
		delete(j.groups, key)
	}
	j.index()
	return closed
}

// index makes the groups of each timer anew.
func (j *judge) index() {
	clear(j.of)
	for _, g := range j.groups {
		if g.timer != 0 {
			j.of[g.timer] = append(j.of[g.timer], g)
		}
	}
}

// watched are the timers and apps whose successes matter.
func (j *judge) watched() (timers map[engine.TimerID]bool, apps map[string]bool) {
	timers, apps = map[engine.TimerID]bool{}, map[string]bool{}
	for _, g := range j.groups {
		switch {
		case g.timer != 0 && (g.open != nil || g.streak > 0):
			timers[g.timer] = true
		case g.timer == 0 && g.word == "" && g.open != nil:
			apps[g.app] = true
		}
	}
	return timers, apps
}

// restore takes an incident of a former process. It reports whether the rule still is about the incident, and
// has no other open incident of the same: two nodes may have judged for a moment.
func (j *judge) restore(i *Incident) bool {
	for _, r := range j.rules[i.RuleApp] {
		var g *group
		switch {
		case r.name != i.Rule:
			continue
		case !r.isAbout(i):
			return false
		case r.By == "timer" || i.Timer == 0:
			g = j.ownGroup(r, r.keyOf(i))
		}
		if g == nil || g.open != nil {
			return false
		}
		g.open = i
		return true
	}
	return false
}
