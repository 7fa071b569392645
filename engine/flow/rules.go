package flow

import (
	"strings"
	"time"

	"xtimer/engine"
)

// Kind is what a name is the name of.
type Kind uint8

// The kinds of names.
const (
	OfApp    Kind = iota // all calls of an app, or of EachApp
	OfTarget             // all calls to a target, of all apps: App is "", Key is of TargetOf
	OfFlow               // the calls of an app that name a key
	OfQuota              // all calls of an app, likewise: what its quota allows
)

// EachApp is the App of what holds for all apps together.
const EachApp = "*"

// Name names a gate, or the rule of one; that of a rule may end in *.
type Name struct {
	Kind     Kind
	App, Key string
}

// Text is the name for people: the key, or the app.
func (n Name) Text() string {
	if n.Kind == OfApp || n.Kind == OfQuota {
		return n.App
	}
	return n.Key
}

// Rule is what somebody has said of a name, or of all that match a pattern.
type Rule struct {
	Limit            *Limit        // nil: none
	Paused, Cooldown time.Duration // until when; 0: not
	// Opened (Unix ms) is when somebody has last ended the cooldown: for how long responses have asked before
	// that a gate be closed does not count.
	Opened int64
	// Started: the limit was in force before the process started, see Gate.Started. It stays so
	// in a rule that takes the place of another with the same rate.
	Started bool
	// Backlog says what becomes of what was held, and PausedSince (Unix ms; 0: not known) when the
	// pause began. They are no matter of the gate.
	Backlog     engine.Backlog
	PausedSince int64
}

// Rules are the rules in force. The zero value has none.
type Rules struct {
	byName map[Name]*Rule
	// prefixes are how many patterns of an app have a length.
	prefixes map[string]map[int]int
}

// equals reports whether two rules say the same, nil for none. Their limits may be two copies.
func (r *Rule) equals(o *Rule) bool {
	if r == nil || o == nil || r.Limit == nil || o.Limit == nil {
		return r == o || r != nil && o != nil && *r == *o
	}
	same := *o
	same.Limit = r.Limit
	return *r == same && *r.Limit == *o.Limit
}

// Set puts a rule into force, in place of a former one of its name; nil removes that. It reports whether the rule
// is another one: what was made of an equal one stays.
func (r *Rules) Set(n Name, rule *Rule) bool {
	if r.byName == nil {
		r.byName, r.prefixes = map[Name]*Rule{}, map[string]map[int]int{}
	}
	was, change := r.byName[n], 0
	if rule != nil && was != nil && was.Started && rule.Limit.hasRateOf(was.Limit) { // as after a pause
		next := *rule
		next.Started, rule = true, &next
	}
	if rule.equals(was) {
		return false
	}
	if was != nil {
		change--
	}
	if delete(r.byName, n); rule != nil {
		r.byName[n] = rule
		change++
	}
	if prefix, is := strings.CutSuffix(n.Key, "*"); is && change != 0 {
		lengths := r.prefixes[n.App]
		if lengths == nil {
			lengths = map[int]int{}
			r.prefixes[n.App] = lengths
		}
		if lengths[len(prefix)] += change; lengths[len(prefix)] == 0 {
			delete(lengths, len(prefix))
		}
	}
	return true
}

// Of is the rule in force of a name itself, nil for none.
func (r *Rules) Of(n Name) *Rule { return r.byName[n] }

// IsEmpty reports whether there is no rule.
func (r *Rules) IsEmpty() bool { return len(r.byName) == 0 }

// Match is what is in force for a name: the limit of the longest match that has one, and
// the longest pause and cooldown of all, and what is said of its backlog.
func (r *Rules) Match(n Name) (m Rule) {
	if len(r.byName) == 0 {
		return m
	}
	longest := -1
	take := func(rule *Rule, length int) {
		if rule == nil {
			return
		}
		if rule.Paused > m.Paused {
			m.Paused, m.PausedSince = rule.Paused, rule.PausedSince
		}
		m.Cooldown, m.Opened = max(m.Cooldown, rule.Cooldown), max(m.Opened, rule.Opened)
		m.Backlog = m.Backlog.And(rule.Backlog)
		if rule.Limit != nil && length > longest {
			m.Limit, m.Started, longest = rule.Limit, rule.Started, length
		}
	}
	take(r.byName[n], len(n.Key)+1)
	for length := range r.prefixes[n.App] {
		if length <= len(n.Key) {
			take(r.byName[Name{n.Kind, n.App, n.Key[:length] + "*"}], length)
		}
	}
	return m
}
