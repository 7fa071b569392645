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
	if v.query("only") != "incidents" { // an update of the page asks for these alone
		if err := p.Objects(v.ctx, v.api); err != nil {
			return err
		}
	}
	d := alertsData{Page: p, All: v.AllApps(), Test: test}
	d.Updates = "/alerts?" + url.Values{"app": {app}, "only": {"incidents"}}.Encode()
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
	Updates   string       // where the open incidents are as they stand then
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
	case "delete":
		return deleteAlert(v, of, form.Get("kind"), name)
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

// deleteAlert deletes a rule or a channel, once that is confirmed.
func deleteAlert(v *visit, of, kind, name string) error {
	back := "/alerts?" + url.Values{"app": {of}}.Encode()
	if kind != "rules" && kind != "channels" {
		return &fault{http.StatusBadRequest, "The form is invalid."}
	}
	if v.r.PostForm.Get("confirmed") == "" {
		q := v.T("Delete the rule %s", name)
		if kind == "channels" {
			q = v.T("Delete the channel %s", name)
		}
		return v.show("sure", v.T("Are you sure?"), &sure{
			Path: "/alerts", Question: q, Label: v.T("Delete"), Back: back,
			Values: map[string]string{"action": "delete", "of": of, "kind": kind, "name": name},
		})
	}
	if err := v.api.DeleteAlert(v.ctx, of, kind, name); err != nil && !client.IsNotFound(err) {
		return err
	}
	return redirect(back)
}

// sure asks whether an action is meant.
type sure struct {
	Path, Back       string
	Question, Effect string
	Label            string            // of the button
	Values           map[string]string // of the form
}

// editRule and editChannel are GET /alerts/rule and /alerts/channel?app=&name=; without a name,
// the form is for a new one.
func editRule(v *visit) error    { return v.editAlert("rules") }
func editChannel(v *visit) error { return v.editAlert("channels") }

func (v *visit) editAlert(kind string) error {
	if !v.MayWrite() {
		return errLooks
	}
	app, name := v.query("app"), v.query("name")
	if !v.AllApps() {
		app = v.grant.App
	}
	f := alerts.NewForm(kind, app)
	if name != "" {
		var err error
		f, err = alerts.Open(v.ctx, v.api, kind, f.App, name)
		switch {
		case client.IsNotFound(err):
			return &fault{http.StatusNotFound, "The rule or channel does not exist: it was deleted."}
		case err != nil:
			return err
		}
	}
	return v.alertForm(f)
}

func (v *visit) alertForm(f *alerts.Form) error {
	if f.Kind == "channels" {
		if f.Version == 0 {
			return v.show("alertchannel", v.T("New channel"), f)
		}
		return v.show("alertchannel", v.T("Channel"), f)
	}
	if err := f.Channels(v.ctx, v.api); err != nil {
		return err
	}
	if f.Version == 0 {
		return v.show("alertrule", v.T("New rule"), f)
	}
	return v.show("alertrule", v.T("Rule"), f)
}

// saveRule and saveChannel are POST of the same paths.
func saveRule(v *visit) error    { return v.saveAlert("rules") }
func saveChannel(v *visit) error { return v.saveAlert("channels") }

func (v *visit) saveAlert(kind string) error {
	f := alerts.ReadForm(kind, v.r.PostForm.Get("app"), v.r.PostForm)
	switch saved, err := f.Save(v.ctx, v.api); {
	case err != nil:
		return err
	case !saved:
		v.status = http.StatusUnprocessableEntity
		return v.alertForm(f)
	}
	return redirect("/alerts?" + url.Values{"app": {f.App}}.Encode())
}
