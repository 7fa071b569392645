package alert

import "slices"

// unsaved is a message about an incident that is not stored yet: it waits for that, so that a
// process which is killed after it sends it again under the same id.
type unsaved struct {
	incident string
	letter   letter
	rule     *Rule
}

// release has the messages sent that waited until incidents (nil: all) were stored.
func (a *Alerter) release(stored map[string]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unsaved = slices.DeleteFunc(a.unsaved, func(u unsaved) bool {
		if stored != nil && !stored[u.incident] {
			return false
		}
		a.box.put(u.letter.Incident.RuleApp, u.letter, u.rule.Channels)
		return true
	})
}
