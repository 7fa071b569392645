package client

import (
	"context"
	"net/url"
	"strconv"
	"time"
)

// Versions are a timer as it is and as it was, newest first: up to limit (0:
// 20). A deleted timer has only former ones.
func (c *Client) Versions(ctx context.Context, id string, limit int) ([]Timer, error) {
	type list struct {
		Versions   []Timer
		NextCursor string `json:"next_cursor"`
	}
	if limit == 0 {
		limit = 20
	}
	var vs []Timer
	for cursor := ""; ; {
		out, err := get[list](ctx, c, path("/v1/timers/%s/versions", id), page(make(url.Values), limit-len(vs), cursor))
		if err != nil {
			return nil, err
		}
		vs, cursor = append(vs, out.Versions...), out.NextCursor
		if cursor == "" || len(vs) >= limit {
			return vs, nil
		}
	}
}

// Coming is what is due in one minute of the coming hour.
type Coming struct {
	Minute      time.Time   `json:"minute"`
	DueBySecond []int64     `json:"due_by_second"`
	Dues        []ComingDue `json:"dues"`
	Partial     bool        `json:"partial"` // there are more, or a node of the cluster did not respond
}

// ComingDue is the first due of a timer in a minute.
type ComingDue struct {
	TimerID string    `json:"timer_id"`
	App     string    `json:"app"`
	Name    string    `json:"name,omitempty"`
	Due     time.Time `json:"due"`
}

// Coming is what is due in the minute of at (zero: now): up to limit dues (0:
// the server's 100), of that app (""; of all).
func (c *Client) Coming(ctx context.Context, app string, at time.Time, limit int) (*Coming, error) {
	q := page(make(url.Values), limit, "")
	set(q, "app", app)
	setTime(q, "at", at)
	return get[Coming](ctx, c, "/v1/upcoming", q)
}

// Failures is what failed or is dead, by target and error.
type Failures struct {
	Groups  []FailureGroup `json:"groups"`  // the largest first
	Partial bool           `json:"partial"` // there are older ones, or a node of the cluster did not respond
}

// FailureGroup is what failed in one way at one target.
type FailureGroup struct {
	Target   string    `json:"target,omitempty"` // scheme://host:port; "": the timer is gone
	Error    string    `json:"error"`            // status 503, timeout …
	Count    int64     `json:"count"`
	FirstDue time.Time `json:"first_due"`
	LastDue  time.Time `json:"last_due"`
	Keys     []string  `json:"keys"` // newest first
}

// Failures groups the newest tasks that failed or are dead, of those that f
// selects.
func (c *Client) Failures(ctx context.Context, f TaskFilter) (*Failures, error) {
	return get[Failures](ctx, c, "/v1/tasks/failures", f.query())
}

// Trend is how each of the last minutes went.
type Trend struct {
	Now        time.Time     `json:"now"`
	ClockSteps int64         `json:"clock_steps"`
	Minutes    []TrendMinute `json:"minutes"` // the present one last
	Partial    bool          `json:"partial"` // a node of the cluster did not respond: its figures are missing
}

// TrendMinute is one minute of a Trend.
type TrendMinute struct {
	End            time.Time `json:"end"`
	FiresPerSecond float64   `json:"fires_per_second"`
	LatenessP50MS  float64   `json:"lateness_ms_p50"`
	LatenessP99MS  float64   `json:"lateness_ms_p99"`
	LatenessP999MS float64   `json:"lateness_ms_p99.9"`
	Ended          int64     `json:"ended"`
	Failures       int64     `json:"failures"`
}

// Trend is how the last so many minutes went (0: the server's 180).
func (c *Client) Trend(ctx context.Context, minutes int) (*Trend, error) {
	q := make(url.Values)
	if minutes > 0 {
		q.Set("minutes", strconv.Itoa(minutes))
	}
	return get[Trend](ctx, c, "/v1/stats/trend", q)
}

// System is the settings in force, and the process.
type System struct {
	Node        string    `json:"node"`
	CPUs        int       `json:"cpus"`
	Goroutines  int64     `json:"goroutines"`
	HeapBytes   int64     `json:"heap_bytes"`
	MemoryBytes int64     `json:"memory_bytes"`
	Connections int64     `json:"connections"`
	Streams     int64     `json:"streams"`
	ClockBehind float64   `json:"clock_behind_seconds"` // 0: it is not
	Calls       Calls     `json:"calls"`
	Settings    []Setting `json:"settings"`
}

// Calls is the calls in flight and what bounds them.
type Calls struct {
	Limit          int64         `json:"limit"`
	InFlight       int64         `json:"in_flight"`
	Silent         int64         `json:"silent"` // to targets that did not answer then
	Waiting        int64         `json:"waiting"`
	LimitedTargets int64         `json:"limited_targets"`
	Targets        []TargetCalls `json:"targets"`
}

// TargetCalls is the calls in flight to a target that is limited.
type TargetCalls struct {
	Target    string `json:"target"`
	Limit     int64  `json:"limit"`
	InFlight  int64  `json:"in_flight"`
	Waiting   int64  `json:"waiting"`
	Answering bool   `json:"answering"`
}

// Setting is one setting in force.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"` // where it was set
}

// System is the settings in force, and the process.
func (c *Client) System(ctx context.Context) (*System, error) {
	return get[System](ctx, c, "/v1/system", nil)
}

// Grant is what a token may do.
type Grant struct {
	App    string `json:"app"`    // * is all apps
	Role   string `json:"role"`   // read, write, admin
	Name   string `json:"name"`   // what versions of timers keep
	Needed bool   `json:"needed"` // false: the server wants no token
}

// Grant is what the client's token may do.
func (c *Client) Grant(ctx context.Context) (*Grant, error) {
	return get[Grant](ctx, c, "/v1/token", nil)
}
