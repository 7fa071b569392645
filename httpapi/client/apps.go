package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// AppPage is a page of apps, by name.
type AppPage struct {
	Now        time.Time    `json:"now"`
	Since      time.Time    `json:"since"`          // outcomes before are not counted
	AsOf       time.Time    `json:"as_of,omitzero"` // when the timers were counted; zero: not yet
	Exact      bool         `json:"exact"`          // false: Timers are lower bounds
	Apps       []AppFigures `json:"apps"`
	NextCursor string       `json:"next_cursor,omitempty"`
	Partial    bool         `json:"partial,omitempty"` // a node of the cluster did not respond: its figures are missing
}

// AppFigures is what an app has, and what became of its tasks.
type AppFigures struct {
	App    string      `json:"app"`
	Pause  *PauseState `json:"pause,omitempty"` // nil: the app is not paused
	Timers struct {
		Enabled  int64 `json:"enabled"`
		Disabled int64 `json:"disabled"`
		Finished int64 `json:"finished"`
	} `json:"timers"`
	Waiting     int64           `json:"waiting"` // due and not begun
	InFlight    int64           `json:"in_flight"`
	LastMinute  Outcomes        `json:"last_minute"`
	LastHour    Outcomes        `json:"last_hour"`
	Targets     []TargetFigures `json:"targets"`                // most attempts first
	MoreTargets int64           `json:"more_targets,omitempty"` // that are not listed
}

// Outcomes are the tasks that ended in some time.
type Outcomes struct {
	Succeeded      int64    `json:"succeeded"`
	Failed         int64    `json:"failed"`
	Dead           int64    `json:"dead"`
	Skipped        int64    `json:"skipped"`
	Missed         int64    `json:"missed"`
	Cancelled      int64    `json:"cancelled"`
	Unknown        int64    `json:"unknown"`
	SuccessRate    *float64 `json:"success_rate,omitempty"` // of those that were called; nil: none was
	FiresPerSecond float64  `json:"fires_per_second"`
	LatenessP50MS  *float64 `json:"lateness_ms_p50,omitempty"` // nil: none was called
	LatenessP99MS  *float64 `json:"lateness_ms_p99,omitempty"`
}

// TargetFigures is the work of an app for one target.
type TargetFigures struct {
	Target         string   `json:"target"` // scheme://host:port
	Limit          int64    `json:"limit"`  // of calls in flight, for all apps
	InFlight       int64    `json:"in_flight"`
	Waiting        int64    `json:"waiting"`
	Answering      bool     `json:"answering"`
	AttemptsOK     int64    `json:"attempts_ok"` // of the last hour
	AttemptsFailed int64    `json:"attempts_failed"`
	TookP50MS      *float64 `json:"took_ms_p50,omitempty"` // nil: no attempts
	TookP99MS      *float64 `json:"took_ms_p99,omitempty"`
}

// Apps is a page of apps: that app ("": all that the token may see), up to limit (0: the
// server's 100) after the cursor of the page before ("": the first).
func (c *Client) Apps(ctx context.Context, app string, limit int, cursor string) (*AppPage, error) {
	q := page(make(url.Values), limit, cursor)
	set(q, "app", app)
	return get[AppPage](ctx, c, "/v1/apps", q)
}

// Forecast is the number of dues in each of the next hours.
type Forecast struct {
	AsOf   time.Time      `json:"as_of,omitzero"` // when they were counted; zero: not yet
	Exact  bool           `json:"exact"`          // false: lower bounds
	Timers int64          `json:"timers"`         // enabled timers that were counted
	Hours  []ForecastHour `json:"hours"`          // the present one first: its dues after AsOf
}

// ForecastHour is one hour of a Forecast.
type ForecastHour struct {
	Hour time.Time `json:"hour"` // its beginning
	Dues int64     `json:"dues"`
}

// UpcomingHours counts the dues of an app ("": of all) in the next hours (0: the
// server's 168).
func (c *Client) UpcomingHours(ctx context.Context, app string, hours int) (*Forecast, error) {
	q := make(url.Values)
	set(q, "app", app)
	if hours > 0 {
		q.Set("hours", strconv.Itoa(hours))
	}
	return get[Forecast](ctx, c, "/v1/upcoming/hours", q)
}

// QuotaLimits is what an app may do. A zero field limits nothing.
type QuotaLimits struct {
	Timers           int `json:"timers,omitempty"`             // that have a due to come or are disabled; more are refused
	Bytes            int `json:"bytes,omitempty"`              // of their bodies, headers and labels; more are refused
	CreatesPerSecond int `json:"creates_per_second,omitempty"` // timers created in any second; more are refused
	FiresPerSecond   int `json:"fires_per_second,omitempty"`   // calls begun in any second; more are held
	InFlight         int `json:"in_flight,omitempty"`          // calls in flight; more are held
}

// Quota is the quota of an app, and what is used of it.
type Quota struct {
	App string `json:"app"`
	QuotaLimits
	Use       QuotaUse  `json:"use"`
	Version   int       `json:"version"` // counts every change; for IfMatch
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by,omitempty"` // the name of the token that set it
}

// QuotaUse is what an app uses of its quota, on the node that answers.
type QuotaUse struct {
	Timers   int `json:"timers,omitempty"` // only if the quota limits timers or bytes
	Bytes    int `json:"bytes,omitempty"`  // likewise
	InFlight int `json:"in_flight"`        // calls
	Held     int `json:"held"`             // tasks in memory that the quota holds
}

func quotaPath(app string) string { return path("/v1/apps/%s/quota", app) }

// PutQuota sets the quota of an app, and says Created, Updated or Unchanged. Only an admin of
// all apps may.
func (c *Client) PutQuota(ctx context.Context, app string, limits QuotaLimits, options ...CallOption) (string, error) {
	q := request{method: http.MethodPut, path: quotaPath(app), body: limits, twice: true}
	out, err := send[struct{ Result string }](ctx, c, q, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// Quota is the quota of an app.
func (c *Client) Quota(ctx context.Context, app string) (*Quota, error) {
	return get[Quota](ctx, c, quotaPath(app), nil)
}

// DeleteQuota deletes the quota of an app. Only an admin of all apps may.
func (c *Client) DeleteQuota(ctx context.Context, app string, options ...CallOption) error {
	_, err := c.delete(ctx, quotaPath(app), options)
	return err
}
