package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	api "xtimer/httpapi/client"
)

// Plain makes requests to the API of a running server.
type Plain struct {
	Base  string // http://127.0.0.1:8080
	Token string // "" where the server has none
}

// Do makes one request. in and out are JSON; nil for none. Only ctx bounds the time, for a
// backup of much data takes long; TCP finds out that the server has died.
func (c *Plain) Do(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, &body)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := http.DefaultClient.Do(req)
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
		return fmt.Errorf("cannot read the server's response: %w", err)
	}
	return nil
}

// Problem turns an answer of trouble into an error.
func Problem(resp *http.Response) error {
	e := &api.Error{}
	if json.NewDecoder(resp.Body).Decode(e) != nil {
		e = &api.Error{}
	}
	e.Status = resp.StatusCode
	return e
}
