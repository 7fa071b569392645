package remote

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

// Plain speaks to the API of a running server.
type Plain struct {
	Base  string // http://127.0.0.1:8080
	Token string // "" where the server has none
}

// NewPlain takes the address as people write it, and the token from
// XTIMER_TOKEN: on a command line every user of the machine could read it.
func NewPlain(server string) *Plain {
	if !strings.Contains(server, "://") {
		server = "http://" + server
	}
	return &Plain{Base: strings.TrimRight(server, "/"), Token: os.Getenv("XTIMER_TOKEN")}
}

// Do makes one request. in and out are JSON; nil for none.
func (c *Plain) Do(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, &body)
	if err != nil {
		return fmt.Errorf("cannot ask the server: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := (&http.Client{Timeout: 5 * time.Minute}).Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the server: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return Problem(resp)
	}
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cannot read the server's answer: %w", err)
	}
	return nil
}

// Problem turns an application/problem+json into an error.
func Problem(resp *http.Response) error {
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
