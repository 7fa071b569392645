package console

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// appsOfPage is how many apps a page has.
const appsOfPage = 100

// listApps is GET /apps: how the calls of each app went. With ?app= it shows that app and
// its targets.
func listApps(v *visit) error {
	p, err := v.api.Apps(v.ctx, v.query("app"), appsOfPage, v.query("cursor"))
	if err != nil {
		return err
	}
	d := appsData{AppPage: *p, App: v.query("app")}
	if p.NextCursor != "" {
		d.NextPage = withQuery(v.r.URL, "cursor", p.NextCursor)
	}
	if d.App != "" && len(p.Apps) == 1 {
		d.One = &p.Apps[0]
	}
	title := v.T("Apps")
	if d.App != "" {
		title = d.App
	}
	return v.show("apps", title, &d)
}

// flowsOfPage is how many flow keys a page lists.
const flowsOfPage = 500

// waitingOfPage is how many of the tasks that wait for a key a page lists.
const waitingOfPage = 100

// IsPattern reports whether a flow is that of many keys, each with its own queue.
func (v *visit) IsPattern(f client.Flow) bool { return strings.HasSuffix(f.Name, "*") }

// listFlows is GET /flows?app=&key=: the flow keys of an app that have a limit or a pause, and what
// waits for a key.
func listFlows(v *visit) error {
	d := flowsData{App: v.query("app"), All: v.AllApps()}
	if !d.All {
		d.App = v.grant.App
	}
	if d.App != "" {
		for f, err := range v.api.Flows(v.ctx, d.App) {
			if err != nil {
				return err
			}
			if len(d.Flows) == flowsOfPage {
				d.More = true
				break
			}
			d.Flows = append(d.Flows, f)
		}
	}
	if d.Key = v.query("key"); d.App != "" && d.Key != "" {
		p, err := v.api.WaitingPage(v.ctx, d.App, d.Key, waitingOfPage, v.query("cursor"))
		if err != nil {
			return err
		}
		if d.Waiting = p; p.NextCursor != "" {
			d.NextPage = withQuery(v.r.URL, "cursor", p.NextCursor)
		}
	}
	if v.MayAdmin() && (d.App == "" || d.App == client.EachApp) {
		for t, err := range v.api.Targets(v.ctx) {
			if err != nil {
				return err
			}
			if d.Targets = append(d.Targets, t); len(d.Targets) == flowsOfPage {
				break
			}
		}
	}
	switch {
	case d.App == "" && v.MayAdmin():
		d.Hold = client.EachApp
	case d.App == client.EachApp && !v.MayAdmin(), !v.MayWrite():
	default:
		d.Hold = d.App
	}
	return v.show("flows", v.T("Flow keys"), &d)
}

type flowsData struct {
	App   string // "": none was asked for
	Hold  string // the app that may be paused here, or client.EachApp; "": none
	All   bool   // the visitor may see other apps
	Flows []client.Flow
	More  bool // some are not listed
	// Waiting is a page of what waits for Key; nil: no key was asked for.
	Key      string
	Waiting  *client.TaskList
	NextPage string
	// Targets have a limit or a pause, for the calls of all apps.
	Targets []client.Target
}

// actOnFlow is POST /flows: it pauses or resumes a flow key, or an app where no key is named.
func actOnFlow(v *visit) error {
	form := v.r.PostForm
	app, key, pause := form.Get("app"), form.Get("key"), client.Pause{Reason: typed("reason", form.Get("reason"))}
	resume := client.Resume{Backlog: form.Get("backlog")}
	var err error
	switch action := form.Get("action"); {
	case app == "":
		err = &fault{http.StatusBadRequest, "The form is invalid."}
	case action == "pause" && key == "":
		err = v.api.PauseApp(v.ctx, app, pause)
	case action == "pause":
		_, err = v.api.PauseFlow(v.ctx, app, key, pause)
	case action == "resume" && key == "":
		if err = v.api.ResumeApp(v.ctx, app, resume); client.IsNotFound(err) {
			err = nil // the app was never paused
		}
	case action == "resume":
		_, err = v.api.ResumeFlow(v.ctx, app, key, resume)
	default:
		err = &fault{http.StatusBadRequest, "The form is invalid."}
	}
	if err != nil {
		return err
	}
	if to := form.Get("to"); to != "" {
		return redirect(inside(to))
	}
	return redirect("/flows?app=" + url.QueryEscape(app))
}

// pauseBanner is what each page says of a pause while it lasts.
type pauseBanner struct {
	App string // client.EachApp: of all apps
	client.PauseState
	MayEnd bool // the visitor may
}

// Pauses are the pause of all apps, and that of the app that the page is about. A page whose
// pauses cannot be asked for has none.
func (v *visit) Pauses() (all []pauseBanner) {
	app := v.grant.App
	if app == client.EachApp {
		app = cmp.Or(v.app, v.query("app"), app)
	}
	if app == "" {
		return nil
	}
	p, err := v.api.AppPause(v.ctx, app)
	if err != nil {
		return nil
	}
	if p.All != nil {
		all = append(all, pauseBanner{client.EachApp, *p.All, v.MayAdmin()})
	}
	if p.Paused {
		state := client.PauseState{Since: p.PausedSince, Until: p.PausedUntil, Reason: p.Reason, By: p.PausedBy}
		all = append(all, pauseBanner{app, state, v.MayWrite() && (app != client.EachApp || v.MayAdmin())})
	}
	return all
}

// Per is the time in which the rate of a flow key counts.
func (v *visit) Per(l client.FlowLimit) string { return millis(float64(l.Per) / 1e6) }

// Endless reports whether a pause has no end that a person would wait for.
func (v *visit) Endless(until time.Time) bool { return until.Sub(v.Now) > 100*365*24*time.Hour }

type appsData struct {
	client.AppPage
	App      string
	One      *client.AppFigures // the app that was asked for; nil: it has no timers
	NextPage string
}

// span is the figures of an app in a time.
type span struct {
	Name string
	client.Outcomes
}

// Spans are the figures of an app, the longest time first.
func (v *visit) Spans(a *client.AppFigures) []span {
	return []span{{v.T("last hour"), a.LastHour}, {v.T("last minute"), a.LastMinute}}
}

// Rate writes a success rate in per cent: never 100 % if anything failed.
func (v *visit) Rate(rate *float64) string {
	switch {
	case rate == nil:
		return "–"
	case *rate == 1:
		return "100 %"
	}
	return strconv.FormatFloat(min(*rate*100, 99.99), 'f', 2, 64) + " %"
}

// Lateness writes ms that may be unknown.
func (v *visit) Lateness(ms *float64) string {
	if ms == nil {
		return "–"
	}
	return millis(*ms)
}
