package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Operation is the progress of a bulk operation.
type Operation struct {
	ID      string    `json:"id,omitempty"`
	Action  string    `json:"action"` // enable, disable, delete, retry, clock_reset
	App     string    `json:"app,omitempty"`
	DryRun  bool      `json:"dry_run"`
	Count   int64     `json:"count"` // how many are selected
	Done    int64     `json:"done"`
	Failed  int64     `json:"failed"`
	Ended   bool      `json:"ended"`
	Error   string    `json:"error,omitempty"` // the first failure
	Started time.Time `json:"started,omitzero"`
	// Partial: a node of the cluster did not respond, and its timers are not among them.
	Partial bool `json:"partial,omitempty"`
}

// EnableAll enables the timers that f selects. More than 10,000 go on after the
// answer: see Wait.
func (c *Client) EnableAll(ctx context.Context, f TimerFilter, options ...CallOption) (*Operation, error) {
	return c.bulk(ctx, "/v1/timers/enable", f.query(), f.All, nil, options)
}

// DisableAll disables the timers that f selects; see EnableAll.
func (c *Client) DisableAll(ctx context.Context, f TimerFilter, how Disabling, options ...CallOption) (*Operation, error) {
	return c.bulk(ctx, "/v1/timers/disable", f.query(), f.All, how.body(), options)
}

// DeleteAll deletes the timers that f selects; see EnableAll.
func (c *Client) DeleteAll(ctx context.Context, f TimerFilter, options ...CallOption) (*Operation, error) {
	return c.bulk(ctx, "/v1/timers/delete", f.query(), f.All, nil, options)
}

// RetryAll makes the tasks that f selects again: what failed or is dead, unless
// f.Statuses says otherwise; see EnableAll.
func (c *Client) RetryAll(ctx context.Context, f TaskFilter, options ...CallOption) (*Operation, error) {
	return c.bulk(ctx, "/v1/tasks/retry", f.query(), f.All, nil, options)
}

func (c *Client) bulk(ctx context.Context, path string, query url.Values, all bool, body any, options []CallOption) (*Operation, error) {
	if all {
		query.Set("all", "true")
	}
	return send[Operation](ctx, c, request{method: http.MethodPost, path: path, query: query, body: body}, options...)
}

// Operation is how far a bulk operation has come.
func (c *Client) Operation(ctx context.Context, id string) (*Operation, error) {
	return get[Operation](ctx, c, path("/v1/operations/%s", id), nil)
}

// Wait asks until the operation has ended; each, when not nil, sees every answer.
func (c *Client) Wait(ctx context.Context, op *Operation, each func(*Operation)) (*Operation, error) {
	for wait := 50 * time.Millisecond; !op.Ended; wait = min(2*wait, time.Second) {
		if err := sleep(ctx, wait); err != nil {
			return op, err
		}
		next, err := c.Operation(ctx, op.ID)
		if err != nil {
			return op, err
		}
		if op = next; each != nil {
			each(op)
		}
	}
	return op, nil
}
