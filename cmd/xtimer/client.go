package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

// client speaks to the API of a running server.
type client struct {
	base  string // http://127.0.0.1:8080
	token string // "" where the server has none
}

// newClient takes the address as people write it, and the token from
// XTIMER_TOKEN: on a command line every user of the machine could read it.
func newClient(server string) *client {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return &client{base: strings.TrimRight(server, "/"), token: os.Getenv("XTIMER_TOKEN")}
}

// do makes one request. in and out are JSON; nil for none.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, &body)
	if err != nil {
		return fmt.Errorf("cannot ask the server: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := (&http.Client{Timeout: 5 * time.Minute}).Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return problem(resp)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the server's answer: %w", err)
	}
	return nil
}

// problem turns an application/problem+json into an error.
func problem(resp *http.Response) error {
	var p struct {
		Title, Detail string
		Errors        []struct{ Field, Detail string }
	}
	if json.NewDecoder(resp.Body).Decode(&p) != nil || p.Title+p.Detail == "" {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	if p.Detail == "" {
		p.Detail = p.Title
	}
	return fmt.Errorf("the server answered %d: %s", resp.StatusCode, p.Detail)
}
