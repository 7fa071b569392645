package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// pageSize of the lists that are read whole.
const pageSize = 500

// Create makes a timer; the result is Unchanged when there is one of that app
// and name with the same definition already. Without an IdempotencyKey it mints
// one, so that it may be repeated.
func (c *Client) Create(ctx context.Context, d Definition, options ...CallOption) (*PutResult, error) {
	q := request{method: http.MethodPost, path: "/v1/timers", body: d, twice: true}
	q.header = http.Header{"Idempotency-Key": {rand.Text()}}
	a, err := c.do(ctx, q, options)
	if err != nil {
		return nil, err
	}
	out := &PutResult{Result: Created}
	if a.status == http.StatusOK {
		out.Result = Unchanged
	}
	return out, a.read(&q, &out.Timer)
}

// Put creates the timer of that app and name, or replaces its definition.
func (c *Client) Put(ctx context.Context, d Definition, options ...CallOption) (*PutResult, error) {
	if d.App == "" || d.Name == "" {
		return nil, fmt.Errorf("cannot put a timer without app and name")
	}
	q := request{method: http.MethodPut, path: byName(d.App, d.Name), body: d, twice: true}
	return send[PutResult](ctx, c, q, options...)
}

func byName(app, name string) string { return path("/v1/apps/%s/timers/%s", app, name) }

// Get is the timer with that id.
func (c *Client) Get(ctx context.Context, id string) (*Timer, error) {
	return get[Timer](ctx, c, path("/v1/timers/%s", id), nil)
}

// GetByName is the timer of that app and name.
func (c *Client) GetByName(ctx context.Context, app, name string) (*Timer, error) {
	return get[Timer](ctx, c, byName(app, name), nil)
}

// TimerPage is one page of the timers that f selects: up to limit (0: the
// server's 100) after the cursor of the page before ("": the first).
func (c *Client) TimerPage(ctx context.Context, f TimerFilter, limit int, cursor string, options ...CallOption) (*TimerList, error) {
	return send[TimerList](ctx, c, request{method: http.MethodGet, path: "/v1/timers", query: page(f.query(), limit, cursor), twice: true}, options...)
}

func (f *TimerFilter) query() url.Values {
	q := make(url.Values)
	set(q, "app", f.App)
	set(q, "name_prefix", f.NamePrefix)
	set(q, "q", f.Search)
	set(q, "status", f.Status)
	set(q, "label", f.Label)
	return q
}

func set(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}

func page(q url.Values, limit int, cursor string) url.Values {
	if limit > 0 {
		q.Set("limit", strconv.Itoa(limit))
	}
	set(q, "cursor", cursor)
	return q
}

// Timers are all timers that f selects. An error is the last thing it yields.
func (c *Client) Timers(ctx context.Context, f TimerFilter, options ...CallOption) iter.Seq2[Timer, error] {
	return pages(func(cursor string) ([]Timer, string, error) {
		l, err := c.TimerPage(ctx, f, pageSize, cursor, options...)
		if err != nil {
			return nil, "", err
		}
		return l.Timers, l.NextCursor, nil
	})
}

// pages yields the items of all pages.
func pages[T any](next func(cursor string) ([]T, string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for cursor := ""; ; {
			items, after, err := next(cursor)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, t := range items {
				if !yield(t, nil) {
					return
				}
			}
			if cursor = after; cursor == "" {
				return
			}
		}
	}
}

// Patch changes a timer by a JSON merge patch (RFC 7396) of its definition: any
// value that becomes JSON; null brings a default back.
func (c *Client) Patch(ctx context.Context, id string, patch any, options ...CallOption) (*Timer, error) {
	q := request{method: http.MethodPatch, path: path("/v1/timers/%s", id), body: patch, kind: "application/merge-patch+json"}
	return send[Timer](ctx, c, q, options...)
}

// Delete removes a timer, and says Cancelled, InFlight or Finished; or Unknown.
func (c *Client) Delete(ctx context.Context, id string, options ...CallOption) (string, error) {
	return c.delete(ctx, path("/v1/timers/%s", id), options)
}

// DeleteByName is Delete of the timer of that app and name.
func (c *Client) DeleteByName(ctx context.Context, app, name string, options ...CallOption) (string, error) {
	return c.delete(ctx, byName(app, name), options)
}

func (c *Client) delete(ctx context.Context, path string, options []CallOption) (string, error) {
	out, err := send[struct{ Result string }](ctx, c, request{method: http.MethodDelete, path: path, twice: true}, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// What Enable does with the dues that passed meanwhile; All of more than 1,000
// are refused.
const (
	CatchUpNone   = "none"
	CatchUpLatest = "latest"
	CatchUpAll    = "all"
)

// Enable enables a timer.
func (c *Client) Enable(ctx context.Context, id, catchUp string, options ...CallOption) (*Timer, error) {
	body := struct {
		CatchUp string `json:"catch_up,omitempty"`
	}{catchUp}
	return send[Timer](ctx, c, request{method: http.MethodPost, path: path("/v1/timers/%s/enable", id), body: body}, options...)
}

// Disabling says why, and until when; both may be left out.
type Disabling struct {
	Reason string
	Until  time.Time
}

func (d Disabling) body() any {
	return struct {
		Reason string  `json:"reason,omitempty"`
		Until  instant `json:"until,omitzero"`
	}{d.Reason, instant(d.Until)}
}

// Disable disables a timer: once it returns, no attempt starts any more.
func (c *Client) Disable(ctx context.Context, id string, how Disabling, options ...CallOption) (*Timer, error) {
	return send[Timer](ctx, c, request{method: http.MethodPost, path: path("/v1/timers/%s/disable", id), body: how.body()}, options...)
}

// Run makes a task now, and returns its key.
func (c *Client) Run(ctx context.Context, id string, options ...CallOption) (key string, err error) {
	return c.keyOf(ctx, path("/v1/timers/%s/run", id), options)
}

func (c *Client) keyOf(ctx context.Context, path string, options []CallOption) (string, error) {
	out, err := send[struct{ Key string }](ctx, c, request{method: http.MethodPost, path: path}, options...)
	if err != nil {
		return "", err
	}
	return out.Key, nil
}

// Upcoming are the next n dues of a timer.
func (c *Client) Upcoming(ctx context.Context, id string, n int) ([]time.Time, error) {
	out, err := get[struct{ Dues []time.Time }](ctx, c, path("/v1/timers/%s/upcoming", id), url.Values{"n": {strconv.Itoa(n)}})
	if err != nil {
		return nil, err
	}
	return out.Dues, nil
}

// Preview is what a schedule means and when it is due.
type Preview struct {
	Sentence string      `json:"sentence"` // in English
	Clauses  []Clause    `json:"clauses"`  // what the sentence says, for other languages
	Dues     []time.Time `json:"dues"`
	Warnings []Warning   `json:"warnings"`
}

// Warning is something about a schedule that may surprise, or that is amiss although the
// server serves and fires.
type Warning struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	// What a warning about a schedule says in its detail; those that it has no use for
	// are zero.
	Reason      string    `json:"reason,omitempty"` // of never_fires: the code of the error
	At          time.Time `json:"at,omitzero"`      // when the schedule ends, or the clock changes
	Count       int64     `json:"count,omitempty"`  // of dues
	Zone        string    `json:"zone,omitempty"`
	ClockBefore string    `json:"clock_before,omitempty"` // what the clock of the zone shows
	ClockAfter  string    `json:"clock_after,omitempty"`
	Flow        string    `json:"flow,omitempty"`   // of flow_undefined: the key
	Secret      string    `json:"secret,omitempty"` // of secret_missing: its name
}

// Clause is one part of what a schedule means, to be said in any language. Kind is
// never, once_at, once_after, every, times, clock, every_day, days, weekdays,
// month_days, months,
// zone, from, until, at_most or spread; fields that a kind has no use for are zero.
type Clause struct {
	Kind    string   `json:"kind"`
	Times   []string `json:"times,omitempty"` // of day: 09:00, or 09:00:30
	Seconds Units    `json:"seconds,omitzero"`
	Minutes Units    `json:"minutes,omitzero"`
	Hours   Units    `json:"hours,omitzero"`
	Values  []int    `json:"values,omitempty"` // days, weekdays (1 is Monday) or months
	// MonthDays are days whose date depends on the month.
	MonthDays []MonthDay `json:"month_days,omitempty"`
	At        time.Time  `json:"at,omitzero"`
	LengthMS  int64      `json:"length_ms,omitempty"`
	Count     int64      `json:"count,omitempty"`
	Text      string     `json:"text,omitempty"` // the zone, or why never
}

// MonthDay is a day whose date depends on the month. Kind is before_last (N days before the
// last day, from 0 on), nearest (the weekday nearest to day N), last_weekday, nth (the N-th
// Weekday) or last_of (the last Weekday).
type MonthDay struct {
	Kind    string `json:"kind"`
	N       int    `json:"n,omitempty"`
	Weekday int    `json:"weekday,omitempty"` // 1 is Monday
}

// Units are seconds, minutes or hours: every so many, or the values.
type Units struct {
	Every  int   `json:"every,omitempty"`
	Values []int `json:"values,omitempty"`
}

// Preview says when a schedule is due: n dues after from (zero: now).
func (c *Client) Preview(ctx context.Context, s Schedule, n int, from time.Time) (*Preview, error) {
	return c.PreviewTimer(ctx, Definition{Schedule: s}, n, from)
}

// PreviewTimer is Preview of the schedule of a timer, and warns of its flow keys that no
// flow limits.
func (c *Client) PreviewTimer(ctx context.Context, d Definition, n int, from time.Time) (*Preview, error) {
	body := struct {
		Schedule Schedule `json:"schedule"`
		N        int      `json:"n"`
		From     instant  `json:"from,omitzero"`
		App      string   `json:"app,omitempty"`
		Flow     []string `json:"flow,omitempty"`
	}{d.Schedule, n, instant(from), d.App, d.Flow}
	return send[Preview](ctx, c, request{method: http.MethodPost, path: "/v1/schedules/preview", body: body, twice: true})
}
