package console

import (
	"strconv"

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
