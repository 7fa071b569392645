package simulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"xtimer/bench/checker"
	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/limit"
)

// rulesName orders the requests that write limits and pauses as those of one timer: the
// engine makes one at a time, and who waited for another at its mutex would have the
// bubble's time wait, too.
const rulesName = "rules"

// flows has timers name flow keys, sets limits of these, pauses and resumes them, in a third of
// the scripts. It draws from a source of its own, as crowd.
func (w *writer) flows() {
	if w.Seed%6 < 2 || w.Seed/6%2 == 0 {
		return
	}
	d := draw{rand.New(rand.NewPCG(w.Seed, 4))}
	for _, name := range w.names {
		keys := d.keys()
		line := d.chance(50)
		for i := range w.Steps {
			def := &w.Steps[i].Definition
			if w.Steps[i].Name != name || def.App == "" {
				continue
			}
			if d.chance(10) {
				keys = d.keys()
			}
			if def.Flow = engine.FlowOf(keys); line { // their tasks go in the order of dues
				def.Overlap, def.Priority = engine.OverlapAllow, 5
			}
		}
	}
	rule := func(at time.Duration, s Step) {
		s.At, s.Name = at, rulesName
		w.Steps = append(w.Steps, s)
	}
	for _, key := range limited {
		if d.chance(90) {
			rule(d.upTo(w.Calm/4), Step{Kind: SetLimit, Flow: key, Limit: d.limit(key)})
		}
	}
	for range d.IntN(6) {
		key := oneOf(d, limited...)
		rule(d.upTo(w.Calm), Step{Kind: SetLimit, Flow: key, Limit: d.limit(key)})
	}
	for range d.IntN(8) {
		s, at := Step{Kind: PauseFlow, Flow: oneOf(d, append(limited, "", "even-0", "line-1")...)}, d.upTo(w.Calm)
		if d.chance(30) {
			s.Until = time.Second + d.upTo(time.Minute)
		}
		rule(at, s)
		if d.chance(80) {
			s.Kind = ResumeFlow
			rule(at+d.upTo(30*time.Second), s)
		}
	}
}

// limited are the keys and patterns that have limits. "free" has none.
var limited = []string{"even-*", "burst-*", "line-*", "few-*", "even-1"}

// keys are those of a timer.
func (d draw) keys() (keys []string) {
	for range oneOf(d, 0, 1, 1, 1, 2) {
		key := fmt.Sprintf("%s-%d", oneOf(d, "even", "burst", "line", "line", "few", "free"), d.IntN(2))
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// limit of a key: for a minute at most, where no bucket is stored and a key waits after a start, or
// for 2 to 10 minutes.
func (d draw) limit(key string) (l flow.Limit) {
	per := oneOf(d, time.Second, 2*time.Second, 5*time.Second, time.Minute)
	switch key[:4] {
	case "even":
		l = flow.Limit{Rate: 1 + d.IntN(3), Per: per, Burst: 1}
	case "burs":
		l = flow.Limit{Rate: 2 + d.IntN(9), Per: per}
		l.Burst = 1 + d.IntN(l.Rate)
	case "line":
		l = flow.Limit{Concurrency: 1, HoldTask: true}
		if d.chance(30) {
			l.Rate, l.Per, l.Burst = 2, time.Second, 1
		}
	default:
		l = flow.Limit{Rate: 10, Per: time.Second, Burst: 5, Concurrency: 1 + d.IntN(3), HoldTask: d.chance(50)}
		if d.chance(50) {
			l.Breaker = flow.Breaker{Share: 0.5, Of: 4, Within: 30 * time.Second, Open: 5 * time.Second, MaxOpen: 20 * time.Second}
		}
	}
	if l.Per == time.Minute && l.Rate%2 == 0 {
		l.Per *= time.Duration(l.Rate)
	}
	return l
}

// writeRule writes the object of a limit or a pause, as the API does.
func (m *machine) writeRule(ctx context.Context, l *life, s Step) error {
	set, k := l.e.Objects(), limit.FlowKey("app", s.Flow)
	if s.Flow == "" {
		k = limit.AppKey("app")
	}
	if s.Kind == RemoveLimit {
		return set.Delete(ctx, k, nil)
	}
	x, err := limit.Read(set.Get(k))
	if err != nil {
		return err
	}
	m.mu.Lock()
	now := m.wallOf(l).UnixMilli()
	m.mu.Unlock()
	switch s.Kind {
	case SetLimit:
		x.Limit = &s.Limit
	case PauseFlow:
		p := limit.Pause{By: "simulator"}
		if s.Until > 0 {
			p.Until = now + s.Until.Milliseconds()
		}
		x.Pause(p, now)
	case ResumeFlow:
		x.Resume(engine.BacklogCall, now)
	}
	_, _, err = set.Put(ctx, k, x.Body(), nil)
	return err
}

// liftLimits removes what a script has said of flow keys: what was held has to be over in the end.
func (m *machine) liftLimits() {
	if before := m.last[rulesName]; before != nil {
		<-before
	}
	if !slices.ContainsFunc(m.script.Steps, func(s Step) bool { return s.Name == rulesName }) {
		return
	}
	for _, key := range append(limited, "", "even-0", "line-1") {
		m.request(Step{Kind: RemoveLimit, Name: rulesName, Flow: key})
	}
}

// mayBePaused reports whether a pause of the app, or of a key of a timer, may be in force.
func (m *machine) mayBePaused(t *timer, at time.Duration) bool {
	asked := m.asked[rulesName]
	return slices.ContainsFunc(asked, func(p *request) bool {
		if p.Kind != PauseFlow || p.state == refused || p.sent > at || !t.names(p.Flow) {
			return false
		}
		return !slices.ContainsFunc(asked, func(r *request) bool {
			ends := r.Kind == ResumeFlow || r.Kind == RemoveLimit
			return ends && r.Flow == p.Flow && r.state == done && r.sent >= p.sent && r.answered < at
		})
	})
}

// names reports whether a version of a timer names a key that matches; "" is the app.
func (t *timer) names(key string) bool {
	prefix, pattern := strings.CutSuffix(key, "*")
	return key == "" || slices.ContainsFunc(t.versions, func(v version) bool {
		return slices.ContainsFunc(v.Flow.Keys(), func(k string) bool { return k == key || pattern && strings.HasPrefix(k, prefix) })
	})
}

// rules are the requests for limits and pauses, as the checker takes them.
func (m *machine) rules() (all []checker.Asked) {
	for _, r := range m.asked[rulesName] {
		a := checker.Asked{
			App: "app", Flow: r.Flow, Invoked: m.milli(r.sent), Answered: m.milli(r.answered), OK: r.state == done, Failed: r.state == refused,
		}
		switch r.Kind {
		case SetLimit:
			a.Op, a.Limit = checker.Limits, &checker.Limit{
				Rate: r.Limit.Rate, Per: r.Limit.Per.Milliseconds(), Burst: r.Limit.Burst, Concurrency: r.Limit.Concurrency,
			}
			if r.Limit.HoldTask {
				a.Limit.Hold = "task"
			}
			if r.Limit.IsSlow() && m.ahead() { // a start takes the calls before the step for older than they are
				a.Limit.Rate = 0
			}
		case PauseFlow:
			a.Op = checker.Pause
			if r.Until > 0 {
				a.Until = a.Invoked + r.Until.Milliseconds()
			}
			if r.Until > 0 && len(m.steps) > 0 { // nobody knows when that is
				a.Until = a.Invoked
			}
		case ResumeFlow:
			a.Op = checker.Resume
		case RemoveLimit:
			all = append(all, a)
			all[len(all)-1].Op = checker.Limits
			a.Op = checker.Resume
		}
		all = append(all, a)
	}
	return all
}
