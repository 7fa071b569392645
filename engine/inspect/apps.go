package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"xtimer/engine"
	"xtimer/engine/fair"
)

// Apps answers what each app has, and what became of its tasks.
type Apps struct {
	Figures *Figures
	Census  *Census
	// Lanes describes the work of the apps that are selected, by target.
	Lanes func(selected func(app string) bool) []fair.LaneStats
	// Stored is how many tasks of a lane are due and not in memory, where so many are in memory.
	Stored func(id engine.Lane, inMemory int64) int64
	Now    func() int64
}

// App is one app.
type App struct {
	Name              string
	Timers            engine.Counts
	Waiting, InFlight int64
	Figure
	Targets []AppTarget    // at most appTargets, most calls first
	More    int            // how many are left out
	at      map[string]int // the place of each target in Targets
}

// AppTarget is the work of an app for one target.
type AppTarget struct {
	Target
	Limit, InFlight, Waiting int64
	Answering                bool
}

// AppPage is a page of apps by name, and the census that counted their timers.
type AppPage struct {
	Apps  []App
	Count *Count
	Next  string // the last name, if there are more
}

// Page lists apps with names after one, limit of them at most; only that app if one is
// given.
func (a *Apps) Page(ctx context.Context, only, after string, limit int) AppPage {
	p := AppPage{Count: a.Census.Look(ctx)}
	at := map[string]int{}
	if only != "" {
		at[only] = 0
	} else {
		names := a.names(p.Count, after)
		if len(names) > limit {
			names = names[:limit]
			p.Next = names[limit-1]
		}
		for i, name := range names {
			at[name] = i
		}
	}
	p.Apps = make([]App, len(at))
	now := a.Now()
	for name, i := range at {
		x := &p.Apps[i]
		x.Name, x.Figure = name, a.Figures.Of(name, now)
		if c := p.Count.Apps[name]; c != nil {
			x.Timers = c.Counts
		}
		x.at = map[string]int{}
		for i, t := range x.Figure.Targets {
			x.Targets, x.at[t.Target] = append(x.Targets, AppTarget{Target: t}), i
		}
	}
	lanes, inMemory := a.Lanes(func(app string) bool { _, ok := at[app]; return ok }), map[engine.Lane]int64{}
	for i := range lanes {
		inMemory[laneOf(&lanes[i])] += int64(lanes[i].Waiting)
	}
	seen := map[engine.Lane]bool{} // tasks that are called in batches have lanes of their own, and share the rows
	for _, l := range lanes {
		id, stored := laneOf(&l), int64(0)
		if !seen[id] {
			seen[id] = true
			stored = a.Stored(id, inMemory[id])
		}
		p.Apps[at[l.App]].work(&l, stored)
	}
	for i := range p.Apps {
		p.Apps[i].order()
	}
	return p
}

// Add adds the apps of a page that another node has of the same list, with more after it or
// not, and leaves at most limit of them. The timers are those that the page's own census has
// counted, if it knows the app.
func (p *AppPage) Add(apps []App, more bool, limit int) {
	at := map[string]int{}
	for i := range p.Apps {
		at[p.Apps[i].Name] = i
	}
	for i := range apps {
		if k, ok := at[apps[i].Name]; ok {
			p.Apps[k].add(&apps[i])
		} else {
			p.Apps = append(p.Apps, apps[i])
		}
	}
	slices.SortFunc(p.Apps, func(a, b App) int { return cmp.Compare(a.Name, b.Name) })
	// A page with more after it has limit apps, and so the end of all of them is not after its end.
	more = more || p.Next != "" || len(p.Apps) > limit
	p.Apps = p.Apps[:min(len(p.Apps), limit)]
	if more {
		p.Next = p.Apps[len(p.Apps)-1].Name
	}
}

// add adds the work of another node for the app. Of durations it keeps those of the worst node.
func (x *App) add(y *App) {
	x.Waiting, x.InFlight, x.More = x.Waiting+y.Waiting, x.InFlight+y.InFlight, x.More+y.More
	x.Minute.add(&y.Minute)
	x.Hour.add(&y.Hour)
	for _, t := range y.Targets {
		i := slices.IndexFunc(x.Targets, func(u AppTarget) bool { return u.Target.Target == t.Target.Target })
		if i < 0 {
			x.Targets = append(x.Targets, t)
			continue
		}
		u := &x.Targets[i]
		switch {
		case u.Limit == 0:
			u.Answering = t.Answering
		case t.Limit > 0:
			u.Answering = u.Answering && t.Answering
		}
		u.Limit, u.InFlight, u.Waiting = u.Limit+t.Limit, u.InFlight+t.InFlight, u.Waiting+t.Waiting
		u.OK, u.Failed = u.OK+t.OK, u.Failed+t.Failed
		for k := range u.Took {
			u.Took[k] = max(u.Took[k], t.Took[k])
		}
	}
	x.order()
}

func laneOf(l *fair.LaneStats) engine.Lane {
	return engine.LaneOf(l.App, l.Target, engine.Flow(l.Flow))
}

// names are the apps after one: those with timers, with tasks that ended, or with work.
func (a *Apps) names(n *Count, after string) []string {
	all := map[string]struct{}{}
	for app := range n.Apps {
		all[app] = struct{}{}
	}
	for _, app := range a.Figures.Apps() {
		all[app] = struct{}{}
	}
	for _, l := range a.Lanes(func(string) bool { return true }) {
		all[l.App] = struct{}{}
	}
	maps.DeleteFunc(all, func(app string, _ struct{}) bool { return app <= after })
	return slices.Sorted(maps.Keys(all))
}

// work adds the work of a lane to that for its target. There may be very many lanes: an app
// has one for each target and set of flow keys.
func (x *App) work(l *fair.LaneStats, stored int64) {
	i, ok := x.at[l.Target]
	if !ok {
		i = len(x.Targets)
		x.Targets, x.at[l.Target] = append(x.Targets, AppTarget{Target: Target{Target: l.Target}}), i
	}
	t := &x.Targets[i]
	inFlight, waiting := int64(l.InFlight), int64(l.Waiting)+stored
	t.Limit, t.Answering = int64(l.Limit), l.Answering
	t.InFlight += inFlight
	t.Waiting += waiting
	x.InFlight += inFlight
	x.Waiting += waiting
}

// order sorts the targets, and leaves those out that are too many.
func (x *App) order() {
	slices.SortStableFunc(x.Targets, func(a, b AppTarget) int {
		return cmp.Or(cmp.Compare(b.OK+b.Failed, a.OK+a.Failed), cmp.Compare(b.Waiting+b.InFlight, a.Waiting+a.InFlight), cmp.Compare(a.Target.Target, b.Target.Target))
	})
	if more := len(x.Targets) - appTargets; more > 0 {
		x.Targets, x.More = x.Targets[:appTargets], x.More+more
	}
}
