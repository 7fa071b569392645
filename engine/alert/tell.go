package alert

import (
	"cmp"
	"slices"
	"time"

	"xtimer/engine"
)

// closed notes the end of an incident. a.mu is held.
func (a *Alerter) closed(i *Incident) {
	delete(a.open, i.ID)
	a.ending[i.ID] = i
	i.Next, i.changed = 0, true
	if r := a.rule(i); r != nil && r.Recovered {
		a.tell(i, "incident.recovered")
	}
	i.Ending = i.Sent < i.Told
}

// renew has the incident repeated as its rule says now.
func (i *Incident) renew(was, repeat time.Duration, now int64) {
	i.changed = true
	switch {
	case repeat == 0:
		i.Next = 0
	case i.Next == 0:
		i.Next = now + repeat.Milliseconds()
	default:
		i.Next += (repeat - was).Milliseconds()
	}
}

func (a *Alerter) rule(i *Incident) *Rule {
	o := a.cfg.Objects.Get(engine.ObjectKey{Kind: RuleKind, App: i.RuleApp, Name: i.Rule})
	if o == nil {
		return i.was
	}
	r, _ := read[Rule](o)
	return &r
}

// tell has the channels of an incident's rule told. a.mu is held.
func (a *Alerter) tell(i *Incident, what string) {
	i.changed = true
	r := a.rule(i)
	if r == nil {
		return
	}
	i.Next = 0
	if r.Repeat > 0 && i.Closed == 0 {
		i.Next = a.now() + r.Repeat.Milliseconds()
	}
	if i.Muted {
		return
	}
	i.Told++
	l := i.letter(what, i.Told, a.cfg.Link)
	if i.fresh {
		a.unsaved = append(a.unsaved, unsaved{i.ID, l, r})
		return
	}
	a.box.put(i.RuleApp, l, r.Channels)
}

// isFormer reports whether a message is a repeat that another message about its incident has followed.
func (a *Alerter) isFormer(l letter) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := cmp.Or(a.open[l.incident], a.ending[l.incident])
	return l.Type == "incident.repeated" && i != nil && l.n < i.Told
}

// sent notes that all channels have a message, or that it was given up.
func (a *Alerter) sent(id string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.noteSent(id, n)
}

// noteSent is sent while a.mu is held.
func (a *Alerter) noteSent(id string, n int) {
	i := a.open[id]
	if i == nil {
		i = a.ending[id]
	}
	if i != nil && i.Sent < n {
		i.Sent, i.changed = n, true
		i.Ending = i.Closed != 0 && n < i.Told
	}
}

// digestOf counts the incidents of letters, and of those that were replaced, and names the largest as
// they stood last.
func digestOf(letters []letter, over map[string]bool) Message {
	m := Message{Type: "digest", ID: "al_digest_" + letters[0].ID + "_" + letters[len(letters)-1].ID, Link: letters[0].Link}
	last := map[string]int{}
	for n, l := range letters {
		last[l.incident] = n
		delete(over, l.incident)
	}
	m.Count = len(last) + len(over)
	for n, l := range letters {
		if last[l.incident] == n {
			m.Incidents = append(m.Incidents, *l.Incident)
		}
	}
	slices.SortStableFunc(m.Incidents, func(x, y Incident) int { return cmp.Compare(y.Count, x.Count) })
	m.Incidents = m.Incidents[:min(len(m.Incidents), mostNamed)]
	return m
}
