package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Target is a target that has a limit or a pause, and how it stands. It holds for the calls
// of all apps: only an admin of all apps sees and changes it.
type Target struct {
	Target string `json:"target"` // scheme://host:port, in lower case
	FlowLimit
	FlowState
}

// targetPath is the path of the target of a URL.
func targetPath(of, verb string) (string, error) {
	u, err := url.Parse(of)
	if err != nil {
		return "", fmt.Errorf("cannot read the URL of a target: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if u.Hostname() == "" || port == "" {
		return "", fmt.Errorf("%q is no URL of a target: want http://HOST or https://HOST, with or without :PORT", of)
	}
	return path("/v1/targets/%s/%s/%s", u.Scheme, u.Hostname(), port) + verb, nil
}

// PutTarget sets the limit of the target of a URL, for the calls of all apps, and says
// Created, Updated or Unchanged.
func (c *Client) PutTarget(ctx context.Context, url string, limit FlowLimit, options ...CallOption) (string, error) {
	at, err := targetPath(url, "")
	if err != nil {
		return "", err
	}
	out, err := send[struct{ Result string }](ctx, c, request{method: http.MethodPut, path: at, body: limit, twice: true}, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// Target is the target of a URL.
func (c *Client) Target(ctx context.Context, url string) (*Target, error) {
	at, err := targetPath(url, "")
	if err != nil {
		return nil, err
	}
	return get[Target](ctx, c, at, nil)
}

// Targets are all targets that have a limit or a pause, in the order of their names. An error
// is the last thing it yields.
func (c *Client) Targets(ctx context.Context) iter.Seq2[Target, error] {
	return pages(func(cursor string) ([]Target, string, error) {
		out, err := get[struct {
			Targets    []Target `json:"targets"`
			NextCursor string   `json:"next_cursor"`
		}](ctx, c, "/v1/targets", page(make(url.Values), pageSize, cursor))
		if err != nil {
			return nil, "", err
		}
		return out.Targets, out.NextCursor, nil
	})
}

// DeleteTarget deletes the limit and the pause of the target of a URL.
func (c *Client) DeleteTarget(ctx context.Context, url string, options ...CallOption) error {
	at, err := targetPath(url, "")
	if err == nil {
		_, err = c.delete(ctx, at, options)
	}
	return err
}

// PauseTarget holds the calls of all apps to the target of a URL.
func (c *Client) PauseTarget(ctx context.Context, url string, p Pause) (*Target, error) {
	return c.toTarget(ctx, url, "/pause", p)
}

// ResumeTarget ends a pause and a cooldown.
func (c *Client) ResumeTarget(ctx context.Context, url string, r Resume) (*Target, error) {
	return c.toTarget(ctx, url, "/resume", r)
}

// CoolTarget closes the target of a URL until an instant.
func (c *Client) CoolTarget(ctx context.Context, url string, until time.Time) (*Target, error) {
	return c.toTarget(ctx, url, "/cooldown", Pause{Until: until})
}

func (c *Client) toTarget(ctx context.Context, url, verb string, body any) (*Target, error) {
	at, err := targetPath(url, verb)
	if err != nil {
		return nil, err
	}
	return send[Target](ctx, c, request{method: http.MethodPost, path: at, body: body, twice: true})
}
