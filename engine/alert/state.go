package alert

// State is something that is so now: a state that a rule may be about.
type State struct {
	Word string
	App  string // "*": of the service
	Of   string // what is in the state: an app, a flow key, a part of the service
	N    int64  // of backlog: how many tasks are overdue
}

// keyOf names the group of an incident of the rule.
func (r *ruleAt) keyOf(i *Incident) groupKey {
	key := r.key(i.App, i.By, i.Timer)
	key.word = i.State
	return key
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

// stateKey names the group of a state. While the judge is full, a new state goes to the group of its app, as a new
// failure does; when the judge has room again, the state gets its own group. A state of the service always has its own
// group: the service has few parts, nodes and channels, and the incident of a fault stays open under the name of its part.
func (j *judge) stateKey(r *ruleAt, st *State) groupKey {
	key := r.key(st.App, st.Of, 0)
	key.word = st.Word
	switch {
	case r.By == "rule":
		key.app, key.by = r.app, r.app+"/"+r.name
	case r.By == "app" || len(j.groups) >= mostGroups && j.groups[key] == nil && st.App != "*":
		key.by = st.App
	}
	return key
}

// state notes that a state is so, and returns the incident that this opens, if any.
func (j *judge) state(r *ruleAt, st *State, now int64) *Incident {
	if r.on&(1<<words[st.Word]) == 0 || st.Word == "backlog" && st.N <= int64(r.Over) {
		return nil
	}
	g := j.ownGroup(r, j.stateKey(r, st))
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
		ID: j.newID(), Rule: r.name, RuleApp: r.app, App: g.app, By: g.by, Severity: r.Severity,
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
