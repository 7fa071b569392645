package alert

import (
	"slices"
	"time"

	"xtimer/engine"
)

// Mute has incidents recorded and not sent until an instant.
type Mute struct {
	Match  Match  `json:"match,omitzero"`
	Until  int64  `json:"until"` // Unix ms
	Reason string `json:"reason,omitempty"`
}

// maxMute is for how long a mute may be.
const maxMute = 30 * 24 * time.Hour

// Check returns an error for a mute that cannot be in force.
func (m *Mute) Check(now time.Time) error {
	if until := time.UnixMilli(m.Until); !until.After(now) || until.After(now.Add(maxMute)) {
		return engine.Invalid("until", "out_of_range", "must be a time within the next 30 days")
	}
	return m.Match.check()
}

// mutes are the mutes that hold in an app now. a.mu is held.
func (a *Alerter) mutes(app string) (all []Mute) {
	now := a.now()
	for _, of := range [...]string{app, "*"} {
		for _, o := range a.cfg.Objects.List(MuteKind, of) {
			if m, ok := read[Mute](o); ok && m.Until > now {
				all = append(all, m)
			}
		}
	}
	return all
}

func (a *Alerter) mutesNeedTimer(app string) bool {
	return slices.ContainsFunc(a.mutes(app), func(m Mute) bool { return m.Match.needsTimer() })
}

// muted reports whether a mute holds for an incident that a timer opens; a state is of no
// timer, and only a mute of all timers holds for it. a.mu is held.
func (a *Alerter) muted(app, name string, t *engine.Timer) bool {
	return slices.ContainsFunc(a.mutes(app), func(m Mute) bool { return m.Match.matches(name, t) })
}
