package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Stats are the server's figures of itself; with a token of one app those of the app,
// where Timers, DueByMinute, Wheel, Warm, SettleBacklog and Journal are not told.
type Stats struct {
	App    string      `json:"app,omitempty"`   // "": of the whole service
	Pause  *PauseState `json:"pause,omitempty"` // of all apps, or of that app; nil: there is none
	Timers struct {
		Enabled  int64 `json:"enabled"`
		Disabled int64 `json:"disabled"`
		Finished int64 `json:"finished"`
	} `json:"timers"`
	Tasks struct {
		Open            int64            `json:"open"`
		InFlight        int64            `json:"in_flight"`
		Overdue         int64            `json:"overdue"`
		OldestOverdueMS float64          `json:"oldest_overdue_ms"`
		SinceStart      map[string]int64 `json:"since_start"` // by final status
	} `json:"tasks"`
	LastMinute struct {
		FiresPerSecond float64 `json:"fires_per_second"`
		LatenessP50MS  float64 `json:"lateness_ms_p50"`
		LatenessP99MS  float64 `json:"lateness_ms_p99"`
		LatenessP999MS float64 `json:"lateness_ms_p99.9"`
	} `json:"last_minute"`
	DueByMinute   []int64         `json:"due_by_minute"` // the coming hour
	Wheel         int64           `json:"wheel"`
	Warm          int64           `json:"warm"`
	SettleBacklog int64           `json:"settle_backlog"`
	Journal       int64           `json:"journal"`
	UptimeSeconds float64         `json:"uptime_seconds"`
	Watermark     time.Time       `json:"watermark,omitzero"`
	Tiers         map[string]bool `json:"tiers"` // whether each is there
	Warnings      []Warning       `json:"warnings,omitempty"`
	Partial       bool            `json:"partial,omitempty"` // a node of the cluster did not respond
}

// Stats reads the server's figures.
func (c *Client) Stats(ctx context.Context) (*Stats, error) {
	return get[Stats](ctx, c, "/v1/stats", nil)
}

// Version is what a server was built from.
type Version struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// Version asks what the server was built from.
func (c *Client) Version(ctx context.Context) (*Version, error) {
	return get[Version](ctx, c, "/v1/version", nil)
}

// Live is nil when the process answers.
func (c *Client) Live(ctx context.Context) error { return c.probe(ctx, "/livez") }

// Ready is nil when the server serves and fires; else it says why not.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

// probe asks once: what is asked is whether it is so now.
func (c *Client) probe(ctx context.Context, path string) error {
	_, err := c.do(ctx, request{method: http.MethodGet, path: path}, nil)
	return err
}

// Metrics are the server's, as Prometheus text.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	a, err := c.do(ctx, request{method: http.MethodGet, path: "/metrics", twice: true}, nil)
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// OpenAPI is the server's description of its API.
func (c *Client) OpenAPI(ctx context.Context) (json.RawMessage, error) {
	doc, err := get[json.RawMessage](ctx, c, "/openapi.json", nil)
	if err != nil {
		return nil, err
	}
	return *doc, nil
}

// Backup is a copy that the server has written.
type Backup struct {
	Backup string  `json:"backup"` // the folder's name under --backup-dir
	TookMS float64 `json:"took_ms"`
}

// Backup has the server write a consistent copy under its --backup-dir.
func (c *Client) Backup(ctx context.Context) (*Backup, error) {
	return send[Backup](ctx, c, request{method: http.MethodPost, path: "/v1/admin/backup"})
}
