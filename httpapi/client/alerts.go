package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Incident is something that a rule of alerts found, from its opening to its end.
type Incident struct {
	ID       string    `json:"id"`
	App      string    `json:"app"`
	Rule     string    `json:"rule"`
	RuleApp  string    `json:"rule_app"` // "*": of a rule of all apps
	By       string    `json:"by"`       // the timer, target, app or rule that has the incident
	Severity string    `json:"severity"`
	On       []string  `json:"on"`    // the statuses that were seen
	State    string    `json:"state"` // open, closed
	Count    int64     `json:"count"`
	Opened   time.Time `json:"opened"`
	Last     time.Time `json:"last"` // the last failure
	Closed   time.Time `json:"closed,omitzero"`
	Why      string    `json:"why,omitempty"` // recovered, gone
	Acked    time.Time `json:"acked,omitzero"`
	AckedBy  string    `json:"acked_by,omitempty"`
	Note     string    `json:"note,omitempty"`
	Muted    bool      `json:"muted"`
	Tasks    []struct {
		Key        string    `json:"key"`
		Name       string    `json:"name"`
		Due        time.Time `json:"due"`
		Status     string    `json:"status"`
		Reason     string    `json:"reason,omitempty"`
		Code       int       `json:"code,omitempty"`
		ErrorClass string    `json:"error_class,omitempty"`
	} `json:"tasks"`
}

// IncidentFilter selects incidents; zero fields select all.
type IncidentFilter struct {
	App, State string
	From, To   time.Time // when they were opened; To is excluded
}

// IncidentList is a page of incidents.
type IncidentList struct {
	Incidents  []Incident `json:"incidents"`
	Total      int        `json:"total"` // of all pages
	NextCursor string     `json:"next_cursor,omitempty"`
}

// IncidentPage is one page of the incidents that f selects, open ones first, then the newest:
// up to limit (0: the server's 100) after the cursor of the page before ("": the first).
func (c *Client) IncidentPage(ctx context.Context, f IncidentFilter, limit int, cursor string) (*IncidentList, error) {
	q := make(url.Values)
	set(q, "app", f.App)
	set(q, "state", f.State)
	setTime(q, "from", f.From)
	setTime(q, "to", f.To)
	return get[IncidentList](ctx, c, "/v1/alerts/incidents", page(q, limit, cursor))
}

// Incidents are the incidents that a filter selects: open ones first, then the newest. An
// error is the last thing it yields.
func (c *Client) Incidents(ctx context.Context, f IncidentFilter) iter.Seq2[Incident, error] {
	return pages(func(cursor string) ([]Incident, string, error) {
		l, err := c.IncidentPage(ctx, f, pageSize, cursor)
		if err != nil {
			return nil, "", err
		}
		return l.Incidents, l.NextCursor, nil
	})
}

// AckIncident acknowledges an open incident, which ends its repeats.
func (c *Client) AckIncident(ctx context.Context, id, note string) (*Incident, error) {
	body := map[string]string{"note": note}
	return send[Incident](ctx, c, request{method: http.MethodPost, path: path("/v1/alerts/incidents/%s/ack", id), body: body})
}

// PutAlert creates or replaces a channel, a rule or a mute (kind: channels, rules, mutes),
// and says Created, Updated or Unchanged.
func (c *Client) PutAlert(ctx context.Context, app, kind, name string, definition json.RawMessage, options ...CallOption) (string, error) {
	q := request{method: http.MethodPut, path: objectPath(app, "alerts/"+kind, name), body: definition, twice: true}
	out, err := send[struct{ Result string }](ctx, c, q, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// Alert reads a channel, a rule or a mute, as the server has it.
func (c *Client) Alert(ctx context.Context, app, kind, name string) (json.RawMessage, error) {
	out, err := get[json.RawMessage](ctx, c, objectPath(app, "alerts/"+kind, name), nil)
	if err != nil {
		return nil, err
	}
	return *out, nil
}

// Alerts are all channels, rules or mutes of an app, in the order of their names. An error is
// the last thing it yields.
func (c *Client) Alerts(ctx context.Context, app, kind string) iter.Seq2[json.RawMessage, error] {
	return pages(func(cursor string) ([]json.RawMessage, string, error) {
		out, err := get[struct {
			Channels, Rules, Mutes []json.RawMessage
			NextCursor             string `json:"next_cursor"`
		}](ctx, c, path("/v1/apps/%s/alerts/"+kind, app), page(make(url.Values), pageSize, cursor))
		if err != nil {
			return nil, "", err
		}
		return slices.Concat(out.Channels, out.Rules, out.Mutes), out.NextCursor, nil
	})
}

// DeleteAlert deletes a channel, a rule or a mute.
func (c *Client) DeleteAlert(ctx context.Context, app, kind, name string) error {
	_, err := c.delete(ctx, objectPath(app, "alerts/"+kind, name), nil)
	return err
}

// ChannelTest is what came of a test message.
type ChannelTest struct {
	Delivered bool   `json:"delivered"`
	Status    int    `json:"status,omitempty"` // of the answer; 0: there was none
	Answer    string `json:"answer,omitempty"`
	Error     string `json:"error,omitempty"`
}

// TestChannel sends a test message to a channel, once.
func (c *Client) TestChannel(ctx context.Context, app, name string) (*ChannelTest, error) {
	return send[ChannelTest](ctx, c, request{method: http.MethodPost, path: objectPath(app, "alerts/channels", name) + "/test"})
}

// RulePreview is how many incidents a rule would have opened.
type RulePreview struct {
	From      time.Time `json:"from"`
	Incidents int64     `json:"incidents"`
	Failures  int64     `json:"failures"`
}

// PreviewRule counts what a rule would have found since a time ago.
func (c *Client) PreviewRule(ctx context.Context, app, name string, ago time.Duration) (*RulePreview, error) {
	body := map[string]string{"from": ago.String()}
	return send[RulePreview](ctx, c, request{method: http.MethodPost, path: objectPath(app, "alerts/rules", name) + "/preview", body: body})
}
