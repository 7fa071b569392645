// Package client speaks to an xtimer server, and receives its calls.
//
//	c, err := client.New("http://127.0.0.1:8080", client.WithToken(token))
//	_, err = c.Put(ctx, client.Definition{
//		App: "billing", Name: "order-1842-expire",
//		Schedule: client.Schedule{Delay: new(30 * time.Minute)},
//		Callback: client.Callback{URL: "https://orders.example.com/expire"},
//	})
//	http.Handle("/expire", receiver) // see Receiver
//
// The types are those of the server's OpenAPI document. One file is one noun:
// timer.go and task.go are what is spoken of, timers.go, bulk.go, tasks.go,
// stream.go and admin.go the requests, request.go how one is made and repeated,
// receiver.go the other side.
//
// # What is repeated
//
// A request that may be made twice is made up to 5 times: on a broken
// connection, on 429 and on 503, after what Retry-After says, or else 0.1 s,
// 0.2 s … 1.6 s, half of it at random. Such are GET, PUT and DELETE, a Create
// (by its Idempotency-Key) and a batch (by the names in it). PATCH, run, retry,
// enable and disable are made once: an error of theirs that is not an *Error
// leaves open whether they were done. A repeat answers what it finds: a Put that
// came through, and whose answer was lost, says Unchanged; with IfMatch, 412.
//
// The timers of a batch that the quota of their app refuses for a second (rate_limited) are
// made again, as long as some of them are made each second. What is beyond the number or the
// bytes that the quota allows (quota_exceeded) is not made again.
//
// Errors are *Error when the server answered, and what net/http says when it
// did not. Redirects are not followed: a server that sends one is named wrongly.
package client

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Client of a server; safe for use by many at once.
type Client struct {
	base  string // http://127.0.0.1:8080, without a slash at its end
	token string // "" where the server has none
	http  *http.Client
}

// Option of New.
type Option func(*Client)

// WithToken sends the token with each request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient makes the requests with h. It should have no Timeout: one would
// cut the stream of tasks; a context bounds every request.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// New is a client of the server at that URL. It does not connect yet.
func New(baseURL string, options ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not a server's URL like http://127.0.0.1:8080", baseURL)
	}
	c := &Client{base: strings.TrimRight(baseURL, "/")}
	for _, o := range options {
		o(c)
	}
	if c.http == nil {
		// Many requests at once keep their connections; the standard 2 would not.
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 64
		c.http = &http.Client{Transport: t}
	}
	if c.http.CheckRedirect == nil {
		// A redirect is an error: followed, a POST would become a GET, and its answer would
		// pass for that of the POST.
		h := *c.http
		h.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		c.http = &h
	}
	return c, nil
}
