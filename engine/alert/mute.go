package alert

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// Mute has incidents recorded and not sent until an instant. One that is open then is sent.
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

// mutes are the mutes as they were decoded, and when the muted incidents are to be looked at.
type mutes struct {
	// By app; the mute of an app that ends last is the first. Nil: none was read yet.
	of      atomic.Pointer[map[string][]Mute]
	renewed atomic.Bool // mutes were changed since
	next    int64       // when (Unix ms) the next of those ends that held then; Run's own
}

// mutesChanged decodes the mutes, and has the muted incidents looked at. Who judges a failure decodes
// nothing: an app may have thousands of mutes, and those that have ended stay until people delete them.
func (a *Alerter) mutesChanged(k engine.ObjectKey) {
	of, apps := map[string][]Mute{}, a.cfg.Objects.Apps(MuteKind)
	if was := a.mutes.of.Load(); was != nil && k.App != "" {
		of, apps = maps.Clone(*was), []string{k.App}
		delete(of, k.App)
	}
	for _, app := range apps {
		for _, o := range a.cfg.Objects.List(MuteKind, app) {
			if m, ok := read[Mute](o); ok {
				of[app] = append(of[app], m)
			}
		}
		slices.SortFunc(of[app], func(x, y Mute) int { return cmp.Compare(y.Until, x.Until) })
	}
	a.mutes.of.Store(&of)
	a.mutes.renewed.Store(true)
	a.ring.poke()
}

// Opener is the timer whose task has opened an incident.
type Opener struct {
	Timer engine.TimerID `json:"timer,string"`
	App   string         `json:"app"`
	Name  string         `json:"name"`
}

// opener is what mutes match for an incident. Former builds did not store it.
func (i *Incident) opener() Opener {
	switch {
	case i.Opener != nil:
		return *i.Opener
	case i.Timer != 0:
		return Opener{i.Timer, i.App, i.By}
	}
	return Opener{App: i.App} // a state
}

// unmute tells of the open incidents for which no mute holds any more.
func (a *Alerter) unmute(ctx context.Context) {
	now := a.now()
	if !a.mutes.renewed.Swap(false) && now < a.mutes.next {
		return
	}
	a.mutes.next = math.MaxInt64
	for _, app := range a.cfg.Objects.Apps(MuteKind) {
		for _, m := range a.mutesOf(app) {
			a.mutes.next = min(a.mutes.next, m.Until)
		}
	}
	var some []*Incident
	a.mu.Lock()
	for _, i := range a.open {
		if i.Muted && i.Acked == 0 {
			some = append(some, i)
		}
	}
	a.mu.Unlock()
	for page := range slices.Chunk(some, pageSize) {
		if !a.unmuteSome(ctx, page) {
			a.mutes.renewed.Store(true) // it is tried again
			return
		}
	}
}

// unmuteSome reports whether the definitions could be read that mutes need.
func (a *Alerter) unmuteSome(ctx context.Context, some []*Incident) bool {
	needs := map[engine.TimerID]bool{}
	a.mu.Lock()
	for _, i := range some {
		if of := i.opener(); of.Timer != 0 && a.mutesNeedTimer(of.App) {
			needs[of.Timer] = true
		}
	}
	a.mu.Unlock()
	timers, ok := a.definitions(ctx, needs)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range some {
		if of := i.opener(); a.open[i.ID] == i && i.Acked == 0 && !a.muted(of.App, of.Name, timers[of.Timer]) {
			i.Muted, i.Opener = false, nil
			a.tell(i, "incident.opened")
		}
	}
	return true
}

// mutesOf are the mutes of an app that hold now. An end is compared with the clock each time, for
// the clock may be set back.
func (a *Alerter) mutesOf(app string) []Mute {
	of := a.mutes.of.Load()
	if of == nil {
		return nil
	}
	all, now := (*of)[app], a.now()
	n, _ := slices.BinarySearchFunc(all, now, func(m Mute, now int64) int { return cmp.Compare(now, m.Until) })
	return all[:n]
}

// muting reports whether a mute that holds in an app now is so.
func (a *Alerter) muting(app string, is func(Mute) bool) bool {
	return slices.ContainsFunc(a.mutesOf(app), is) || slices.ContainsFunc(a.mutesOf("*"), is)
}

func (a *Alerter) mutesNeedTimer(app string) bool {
	return a.muting(app, func(m Mute) bool { return m.Match.needsTimer() })
}

// muted reports whether a mute holds for an incident that a timer opens; a state is of no
// timer, and only a mute of all timers holds for it.
func (a *Alerter) muted(app, name string, t *engine.Timer) bool {
	return a.muting(app, func(m Mute) bool { return m.Match.matches(name, t) })
}
