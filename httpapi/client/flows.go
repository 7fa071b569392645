package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// FlowLimit is what a flow key allows. A zero field limits nothing.
type FlowLimit struct {
	Rate        int      `json:"rate,omitempty"` // at most so many calls in any window of Per
	Per         Duration `json:"per,omitzero"`   // 1s by default
	Burst       int      `json:"burst,omitempty"`
	Concurrency int      `json:"concurrency,omitempty"` // calls in flight at most
	Hold        string   `json:"hold,omitempty"`        // call, or task: a place is kept until the final status
	Cooldown    bool     `json:"cooldown,omitempty"`
	Breaker     *Breaker `json:"breaker,omitempty"`
}

// Breaker opens a key when Share of the last Of outcomes failed within Within.
type Breaker struct {
	Share   float64  `json:"share,omitempty"`
	Of      int      `json:"of,omitempty"`
	Within  Duration `json:"within,omitzero"`
	Open    Duration `json:"open,omitzero"`
	MaxOpen Duration `json:"max_open,omitzero"`
}

// Flow is a flow key of an app, or a pattern of keys, and how it stands.
type Flow struct {
	App     string `json:"app"`
	Name    string `json:"name"`
	Pattern string `json:"pattern,omitempty"` // whose limit the key has, if the key has none of its own
	FlowLimit
	FlowState
}

// FlowState is how a flow key or a target stands.
type FlowState struct {
	Paused        bool      `json:"paused,omitempty"`
	PausedUntil   time.Time `json:"paused_until,omitzero"`
	PausedSince   time.Time `json:"paused_since,omitzero"`
	PausedBy      string    `json:"paused_by,omitempty"` // the name of the token
	Reason        string    `json:"reason,omitempty"`
	Resuming      string    `json:"resuming,omitempty"` // BacklogLatest or BacklogSkip, while that is being done with the dues of a pause that has ended
	CooldownUntil time.Time `json:"cooldown_until,omitzero"`
	Waiting       int       `json:"waiting,omitempty"`
	OldestAt      time.Time `json:"oldest_at,omitzero"` // since when the oldest of them waits, as counted a few seconds ago
	InFlight      int       `json:"in_flight,omitempty"`
	BreakerState  string    `json:"breaker_state,omitempty"`
	NextAt        time.Time `json:"next_at,omitzero"`
	WaitEstimate  *Duration `json:"wait_estimate,omitempty"` // about how long a task that becomes due now waits; nil: nobody knows
	Partial       bool      `json:"partial,omitempty"`       // a node of the cluster did not respond: its tasks and calls are not counted
	Version       int       `json:"version"`                 // counts every change; for IfMatch. 0: only a pattern is about the key
	UpdatedAt     time.Time `json:"updated_at"`
	UpdatedBy     string    `json:"updated_by,omitempty"`
}

// Pause is until when, and why. The zero one has no end.
type Pause struct {
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// Resume says which of the held dues are called: BacklogCall (the zero value) calls all of
// them, BacklogLatest of each timer the last, BacklogSkip none. Each due that is not called gets
// a record: skipped, reason paused. One-shots are left out only by BacklogSkip.
type Resume struct {
	Backlog string `json:"backlog,omitempty"`
}

// What Resume says.
const (
	BacklogCall   = "call"
	BacklogLatest = "latest"
	BacklogSkip   = "skip"
)

// PutFlow sets the limit of a flow key, or of all keys that a pattern such as user-*
// matches, and says Created, Updated or Unchanged.
func (c *Client) PutFlow(ctx context.Context, app, key string, limit FlowLimit, options ...CallOption) (string, error) {
	q := request{method: http.MethodPut, path: objectPath(app, "flows", key), body: limit, twice: true}
	out, err := send[struct{ Result string }](ctx, c, q, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// Flow is one flow key that has a limit or a pause, of its own or by a pattern that matches.
func (c *Client) Flow(ctx context.Context, app, key string) (*Flow, error) {
	return get[Flow](ctx, c, objectPath(app, "flows", key), nil)
}

// Flows are all flow keys of an app that have a limit or a pause, in the order of their
// names. An error is the last thing it yields.
func (c *Client) Flows(ctx context.Context, app string) iter.Seq2[Flow, error] {
	return pages(func(cursor string) ([]Flow, string, error) {
		out, err := get[struct {
			Flows      []Flow `json:"flows"`
			NextCursor string `json:"next_cursor"`
		}](ctx, c, path("/v1/apps/%s/flows", app), page(make(url.Values), pageSize, cursor))
		if err != nil {
			return nil, "", err
		}
		return out.Flows, out.NextCursor, nil
	})
}

// WaitingPage is a page of the tasks that are due and wait for a flow key, in the order in which
// they will be called. The NextAttempt of each is an estimate.
func (c *Client) WaitingPage(ctx context.Context, app, key string, limit int, cursor string) (*TaskList, error) {
	return get[TaskList](ctx, c, objectPath(app, "flows", key)+"/waiting", page(make(url.Values), limit, cursor))
}

// Waiting are all tasks that wait for a flow key, see WaitingPage. An error is the last thing it
// yields.
func (c *Client) Waiting(ctx context.Context, app, key string) iter.Seq2[Task, error] {
	return pages(func(cursor string) ([]Task, string, error) {
		l, err := c.WaitingPage(ctx, app, key, pageSize, cursor)
		if err != nil {
			return nil, "", err
		}
		return l.Tasks, l.NextCursor, nil
	})
}

// DeleteFlow deletes the limit and the pause of a flow key.
func (c *Client) DeleteFlow(ctx context.Context, app, key string, options ...CallOption) error {
	_, err := c.delete(ctx, objectPath(app, "flows", key), options)
	return err
}

// PauseFlow holds all calls of a flow key.
func (c *Client) PauseFlow(ctx context.Context, app, key string, p Pause) (*Flow, error) {
	return send[Flow](ctx, c, request{method: http.MethodPost, path: objectPath(app, "flows", key) + "/pause", body: p, twice: true})
}

// ResumeFlow ends a pause and a cooldown of a key. The key stays paused while a pattern is that matches.
func (c *Client) ResumeFlow(ctx context.Context, app, key string, r Resume) (*Flow, error) {
	return send[Flow](ctx, c, request{method: http.MethodPost, path: objectPath(app, "flows", key) + "/resume", body: r, twice: true})
}

// CoolFlow closes a flow key until an instant.
func (c *Client) CoolFlow(ctx context.Context, app, key string, until time.Time) (*Flow, error) {
	return send[Flow](ctx, c, request{method: http.MethodPost, path: objectPath(app, "flows", key) + "/cooldown", body: Pause{Until: until}, twice: true})
}

// AppPause says whether an app is paused.
type AppPause struct {
	App         string      `json:"app"` // EachApp: all apps together
	Paused      bool        `json:"paused"`
	PausedUntil time.Time   `json:"paused_until,omitzero"` // zero: without an end
	PausedSince time.Time   `json:"paused_since,omitzero"`
	PausedBy    string      `json:"paused_by,omitempty"` // the name of the token
	Reason      string      `json:"reason,omitempty"`
	Resuming    string      `json:"resuming,omitempty"` // as in FlowState, at the node that responds
	All         *PauseState `json:"all,omitempty"`      // the pause of all apps; nil: there is none
}

// PauseState is a pause that is in force.
type PauseState struct {
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // zero: without an end
	Reason string    `json:"reason,omitempty"`
	By     string    `json:"by,omitempty"` // the name of the token
}

// EachApp is the app whose pause is that of all apps: only an admin of all apps changes it.
const EachApp = "*"

// AppPause says whether an app is paused, or EachApp.
func (c *Client) AppPause(ctx context.Context, app string) (*AppPause, error) {
	return get[AppPause](ctx, c, path("/v1/apps/%s/pause", app), nil)
}

// PauseApp holds all calls of an app, or of EachApp. Dues are kept.
func (c *Client) PauseApp(ctx context.Context, app string, p Pause) error {
	_, err := send[struct{}](ctx, c, request{method: http.MethodPost, path: path("/v1/apps/%s/pause", app), body: p, twice: true})
	return err
}

// ResumeApp ends a pause of an app, or of EachApp.
func (c *Client) ResumeApp(ctx context.Context, app string, r Resume) error {
	_, err := send[struct{}](ctx, c, request{method: http.MethodPost, path: path("/v1/apps/%s/resume", app), body: r, twice: true})
	return err
}
