package alert

// State is something that is so now: a state that a rule may be about.
type State struct {
	Word string
	App  string // "*": of the service
	Of   string // what is in the state: an app, a flow key, a part of the service
	N    int64  // of backlog: how many tasks are overdue
}

func (j *judge) stateGroup(r *ruleAt, word, app, of string) *group {
	key := r.key(app, of, 0)
	key.word = word
	g := j.groups[key]
	if g == nil {
		g = &group{rule: r, app: app, by: of, word: word}
		j.groups[key] = g
	}
	return g
}

// hasStates reports whether some rule but the built-in one is about a state, or one is open.
func (j *judge) hasStates() bool {
	for _, list := range j.rules {
		for _, r := range list {
			if r.on&allStates != 0 && r.name != builtIn {
				return true
			}
		}
	}
	for _, g := range j.groups {
		if g.word != "" {
			return true
		}
	}
	return false
}

// states compares what is so now with the open incidents, and returns those that it opens
// and closes.
func (j *judge) states(now int64, all []State) (opened, closed []*Incident) {
	for k := range all {
		st := &all[k]
		for _, app := range [...]string{st.App, "*"} {
			for _, r := range j.rules[app] {
				if i := j.state(r, st, now); i != nil {
					opened = append(opened, i)
				}
			}
			if st.App == "*" {
				break
			}
		}
	}
	for key, g := range j.groups {
		if g.seen == 0 {
			g.seen = now // of a former process
		}
		switch {
		case g.word == "" || g.seen == now:
		case g.open == nil:
			delete(j.groups, key)
		case stays&(1<<words[g.word]) == 0 && now-g.seen >= g.patience():
			closed = append(closed, g.close(now, "recovered"))
			delete(j.groups, key)
		}
	}
	return opened, closed
}

// state notes that a state is so, and returns the incident that this opens, if any.
func (j *judge) state(r *ruleAt, st *State, now int64) *Incident {
	if r.on&(1<<words[st.Word]) == 0 || st.Word == "backlog" && st.N <= int64(r.Over) {
		return nil
	}
	app, of := st.App, st.Of
	switch r.By {
	case "app":
		of = st.App
	case "rule":
		app, of = r.app, r.app+"/"+r.name
	}
	g := j.stateGroup(r, st.Word, app, of)
	if g.since == 0 {
		g.since = now
	}
	g.seen = now
	if g.open != nil {
		g.open.Last = now
		return nil
	}
	if now-g.since < g.patience() {
		return nil
	}
	g.open = &Incident{
		ID: j.newID(), Rule: r.name, RuleApp: r.app, App: app, By: of, Severity: r.Severity,
		On: []string{st.Word}, Opened: g.since, Last: now, Count: 1, State: st.Word, changed: true,
	}
	return g.open
}

// patience is for how long (ms) a state is so, or not any more, before that counts.
func (g *group) patience() int64 {
	if g.word == "backlog" {
		return g.rule.For.Milliseconds()
	}
	return 0
}
