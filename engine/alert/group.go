package alert

import "xtimer/engine"

// groupKey names what a rule counts together: the tasks of a timer, a target, an app, or all; or a
// state, by its word.
type groupKey struct {
	ruleApp, rule, kind string // kind: the rule's By
	app, by             string
	timer               engine.TimerID
	word                string
}

func (r *ruleAt) key(app, by string, timer engine.TimerID) groupKey {
	return groupKey{ruleApp: r.app, rule: r.name, kind: r.By, app: app, by: by, timer: timer}
}

// group is what a rule has counted together.
type group struct {
	rule   *ruleAt
	app    string
	by     string
	timer  engine.TimerID
	recent []int64 // when the failures within Rule.Within ended
	streak int
	last   engine.Key // the last failure
	ended  int64      // when (Unix ms) the last failure ended; 0: there is none since the last success or incident
	open   *Incident
	// Of a state: its word, since when (Unix ms) it is so, and when it was seen last.
	word        string
	since, seen int64
}

// lastDue is the due of the last failure of a timer that is watched.
func (j *judge) lastDue(id engine.TimerID) (due int64) {
	for _, g := range j.of[id] {
		last := g.last.Due
		switch i := g.open; {
		case i == nil && g.streak == 0:
			continue
		case i != nil && last == 0 && len(i.Tasks) > 0: // of a former process
			last = i.Tasks[len(i.Tasks)-1].Due
		}
		if due == 0 || last < due {
			due = last
		}
	}
	return due
}

func (g *group) key() groupKey { return g.rule.key(g.app, g.by, g.timer) }
