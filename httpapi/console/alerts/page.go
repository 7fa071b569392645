// Package alerts reads and changes what the page Alerts shows: incidents, mutes, rules and
// channels.
package alerts

import (
	"context"
	"encoding/json"
	"time"

	"xtimer/httpapi/client"
)

// Bounds of what a page has.
const (
	mostOpen     = 100
	closedOfPage = 20
	mostListed   = 200 // rules, mutes and channels, of each
	// Previews read history: the first rules have them, and only in this time.
	mostPreviews = 20
	previewTime  = 2 * time.Second
	previewed    = 24 * time.Hour
)

// allApps is the app of what holds for all apps.
const allApps = "*"

// Page is what there is to show.
type Page struct {
	App      string // the app that was asked for; "": the incidents of all apps, and the rules of *
	Of       string // the app of the rules, mutes and channels
	Open     client.IncidentList
	Closed   client.IncidentList
	Rules    []Rule
	Mutes    []Mute
	Channels []Channel
	More     bool // more rules, mutes or channels exist than are listed
}

// Incidents reads the incidents of an app ("": of all), and of those closed the page after a
// cursor.
func Incidents(ctx context.Context, api *client.Client, app, cursor string) (*Page, error) {
	p := &Page{App: app, Of: app}
	if app == "" {
		p.Of = allApps
	}
	open, err := api.IncidentPage(ctx, client.IncidentFilter{App: app, State: "open"}, mostOpen, "")
	if err != nil {
		return nil, err
	}
	closed, err := api.IncidentPage(ctx, client.IncidentFilter{App: app, State: "closed"}, closedOfPage, cursor)
	if err != nil {
		return nil, err
	}
	p.Open, p.Closed = *open, *closed
	return p, nil
}

// Objects reads the rules, mutes and channels of the page's app.
func (p *Page) Objects(ctx context.Context, api *client.Client) error {
	var more [3]bool
	var err error
	if p.Rules, more[0], err = listed[Rule](ctx, api, p.Of, "rules"); err != nil {
		return err
	}
	if p.Mutes, more[1], err = listed[Mute](ctx, api, p.Of, "mutes"); err != nil {
		return err
	}
	if p.Channels, more[2], err = listed[Channel](ctx, api, p.Of, "channels"); err != nil {
		return err
	}
	p.More = more[0] || more[1] || more[2]
	p.preview(ctx, api)
	return nil
}

func listed[T any](ctx context.Context, api *client.Client, app, kind string) (all []T, more bool, err error) {
	for b, err := range api.Alerts(ctx, app, kind) {
		if err != nil {
			return nil, false, err
		}
		if len(all) == mostListed {
			return all, true, nil
		}
		var v T
		if err := json.Unmarshal(b, &v); err != nil {
			return nil, false, err
		}
		all = append(all, v)
	}
	return all, false, nil
}

// preview asks how often the rules would have opened an incident. What does not come in time
// is left out.
func (p *Page) preview(ctx context.Context, api *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	asked := 0
	for i := range p.Rules {
		r := &p.Rules[i]
		if !r.CountsTasks() || asked == mostPreviews {
			continue
		}
		asked++
		found, err := api.PreviewRule(ctx, r.App, r.Name, previewed)
		if err != nil {
			return
		}
		r.Preview = found
	}
}
