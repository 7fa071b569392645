package checker

// api is L10 and L11.
func (c *court) api() {
	for i := range c.logs.Asked {
		switch a := &c.logs.Asked[i]; a.Op {
		case Get:
			c.seen(a)
		case List:
			c.listed(a)
		case Audit:
			if a.Violations > 0 {
				c.broken("L11", "the auditor counted %d violations", a.Violations)
			}
		}
	}
}

func (c *court) seen(a *Asked) {
	t := c.timers[a.Timer]
	if t == nil || !a.OK && a.Status != 404 {
		return
	}
	version, gone, unsure := int64(1), false, false
	for _, x := range t.changes {
		switch {
		case x.Invoked > a.Answered:
		case !x.OK || x.Answered > a.Invoked:
			unsure = true
		case x.Op == Delete:
			gone = true
		default:
			version++
		}
	}
	switch {
	case t.born.Answered > a.Invoked:
	case gone && a.OK:
		c.broken("L10", "timer %s was read after its delete was answered", t.ID)
	case !gone && !unsure && !a.OK:
		c.broken("L10", "timer %s was not found (%d) after its create was answered", t.ID, a.Status)
	case a.OK && a.Version != 0 && (a.Version < version || a.Version > version && !unsure):
		c.broken("L10", "timer %s was read as version %d, it has %d", t.ID, a.Version, version)
	}
}

func (c *court) listed(a *Asked) {
	there := map[string]bool{}
	for _, id := range a.IDs {
		there[id] = true
		t := c.timers[id]
		if t == nil && len(c.unknown) == 0 {
			c.broken("L10", "timer %s is listed, and nobody has made it", id)
		}
		if t != nil && t.deleted != nil && t.deleted.OK && t.deleted.Answered < a.Invoked {
			c.broken("L10", "timer %s is listed, and was deleted", id)
		}
	}
	for id, t := range c.timers {
		if !there[id] && t.deleted == nil && t.born.Answered < a.Invoked {
			c.broken("L10", "timer %s is not listed", id)
		}
	}
}
