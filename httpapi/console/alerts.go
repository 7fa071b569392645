package console

import (
	"net/http"
	"net/url"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/alerts"
)

// showAlerts is GET /alerts?app=: incidents, and the rules, mutes and channels of an app.
func showAlerts(v *visit) error { return v.alerts(v.query("app"), nil) }

func (v *visit) alerts(app string, test *channelTest) error {
	if !v.AllApps() {
		app = v.grant.App
	}
	p, err := alerts.Incidents(v.ctx, v.api, app, v.query("cursor"))
	if err != nil {
		return err
	}
	if err := p.Objects(v.ctx, v.api); err != nil {
		return err
	}
	d := alertsData{Page: p, All: v.AllApps(), Test: test}
	d.MayChange = v.MayWrite() && p.Of != "*" || v.MayAdmin()
	if p.Closed.NextCursor != "" {
		d.Older = "/alerts?" + url.Values{"app": {app}, "cursor": {p.Closed.NextCursor}}.Encode()
	}
	return v.show("alerts", v.T("Alerts"), &d)
}

type alertsData struct {
	*alerts.Page
	All       bool // the visitor may see all apps
	MayChange bool // the rules, mutes and channels
	Older     string
	Test      *channelTest // one that was just made
}

type channelTest struct {
	Name string
	client.ChannelTest
}

// actOnAlerts is POST /alerts: one of the actions of the page.
func actOnAlerts(v *visit) error {
	form := v.r.PostForm
	app, of, name := form.Get("app"), form.Get("of"), form.Get("name")
	switch form.Get("action") {
	case "ack":
		if _, err := v.api.AckIncident(v.ctx, form.Get("id"), typed("note", form.Get("note"))); err != nil {
			if client.IsNotFound(err) {
				return &fault{http.StatusConflict, "The incident is closed."}
			}
			return err
		}
	case "test":
		r, err := v.api.TestChannel(v.ctx, of, name)
		if err != nil {
			return err
		}
		return v.alerts(app, &channelTest{name, *r})
	case "mute":
		if err := alerts.AddMute(v.ctx, v.api, of, form, v.Now); err != nil {
			return err
		}
	case "unmute":
		if err := v.api.DeleteAlert(v.ctx, of, "mutes", name); err != nil && !client.IsNotFound(err) {
			return err
		}
	default:
		return &fault{http.StatusBadRequest, "The form is invalid."}
	}
	return redirect("/alerts?" + url.Values{"app": {app}}.Encode())
}
