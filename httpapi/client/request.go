package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	maxTries = 5
	// firstWait doubles with each try.
	firstWait = 100 * time.Millisecond
	// longestWait bounds a Retry-After; who asks for more gets no second try.
	longestWait = 30 * time.Second
)

// request is one request, to be made once or more.
type request struct {
	method, path string // the path is escaped
	query        url.Values
	header       http.Header
	body         any    // what becomes JSON; []byte is sent as it is; nil: none
	kind         string // Content-Type; "": application/json
	twice        bool   // making it twice does what making it once does
}

// answer is what came back, whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// CallOption is something about one request.
type CallOption func(*request)

// IfMatch has the server make a change only if the timer still has that version.
func IfMatch(version int) CallOption {
	return func(q *request) { q.header.Set("If-Match", strconv.Quote(strconv.Itoa(version))) }
}

// IdempotencyKey names a Create: another with the same key and the same
// definition answers what the first one did, within 24 hours.
func IdempotencyKey(key string) CallOption {
	return func(q *request) { q.header.Set("Idempotency-Key", key) }
}

// DryRun changes nothing: of a bulk operation it counts what would be done, of a
// Put it says what the Result would be, without a Timer, or why it is refused.
func DryRun() CallOption { return func(q *request) { q.query.Set("dry_run", "true") } }

// Force has a Run skip the limits of flow keys and of the target. A pause holds it still.
func Force() CallOption {
	return func(q *request) { q.body = map[string]bool{"force": true} }
}

// LastTasks has a list of timers say the LastTask of each: it costs the server a read
// of the history for each timer of a page.
func LastTasks() CallOption { return func(q *request) { q.query.Set("last_task", "true") } }

// WithTotal has a list of timers say how many there are.
func WithTotal() CallOption { return func(q *request) { q.query.Set("total", "true") } }

// path puts escaped names into a path: path("/v1/timers/%s/run", id).
func path(format string, names ...any) string {
	for i, n := range names {
		names[i] = url.PathEscape(n.(string))
	}
	return fmt.Sprintf(format, names...)
}

// get reads the resource at a path.
func get[T any](ctx context.Context, c *Client, path string, query url.Values) (*T, error) {
	return send[T](ctx, c, request{method: http.MethodGet, path: path, query: query, twice: true})
}

// send makes a request and reads its answer.
func send[T any](ctx context.Context, c *Client, q request, options ...CallOption) (*T, error) {
	a, err := c.do(ctx, q, options)
	if err != nil {
		return nil, err
	}
	out := new(T)
	if err := a.read(&q, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (a *answer) read(q *request, out any) error {
	if err := json.Unmarshal(a.body, out); err != nil {
		return fmt.Errorf("cannot read the response to %s %s: %w", q.method, q.path, err)
	}
	return nil
}

// do makes a request, again where that helps and does no harm. The answer is
// one of the good ones; all else is an error.
func (c *Client) do(ctx context.Context, q request, options []CallOption) (*answer, error) {
	body, err := q.prepare(options)
	if err != nil {
		return nil, err
	}
	wait, lost := firstWait, false
	for try := 1; ; try++ {
		a, err := c.once(ctx, &q, body)
		var problem *Error
		if err == nil {
			if a.status < 300 {
				return a, nil
			}
			problem = errorOf(a)
			// A DELETE before this one may have come through, and its answer not.
			if q.method == http.MethodDelete && a.status == http.StatusNotFound && lost {
				return &answer{body: []byte(`{"result":"` + Unknown + `"}`)}, nil
			}
			if err = problem; !problem.passes() {
				return nil, err
			}
		}
		lost = lost || problem == nil
		if !q.twice || try == maxTries || ctx.Err() != nil {
			return nil, err
		}
		pause := wait/2 + rand.N(wait/2)
		if problem != nil && problem.RetryAfter > 0 {
			if problem.RetryAfter > longestWait {
				return nil, err
			}
			pause = problem.RetryAfter + rand.N(wait)
		}
		if sleep(ctx, pause) != nil {
			return nil, err
		}
		wait *= 2
	}
}

// prepare applies the options, and writes the body.
func (q *request) prepare(options []CallOption) ([]byte, error) {
	if q.header == nil {
		q.header = make(http.Header)
	}
	if q.query == nil {
		q.query = make(url.Values)
	}
	for _, o := range options {
		o(q)
	}
	body, err := q.encode()
	if err != nil {
		return nil, fmt.Errorf("cannot write %s %s: %w", q.method, q.path, err)
	}
	return body, nil
}

func (q *request) encode() ([]byte, error) {
	switch b := q.body.(type) {
	case nil:
		return nil, nil
	case []byte:
		return b, nil
	}
	return marshal(q.body)
}

// once makes a request once, and reads the whole of its answer.
func (c *Client) once(ctx context.Context, q *request, body []byte) (*answer, error) {
	resp, err := c.open(ctx, q, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read the response to %s %s: %w", q.method, q.path, err)
	}
	return &answer{resp.StatusCode, resp.Header, b}, nil
}

// open makes a request, and leaves the body of its answer to be read.
func (c *Client) open(ctx context.Context, q *request, body []byte) (*http.Response, error) {
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("cannot make the request: %w", err)
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	if body != nil {
		kind := q.kind
		if kind == "" {
			kind = "application/json"
		}
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("User-Agent", "xtimer-client")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(r)
}

// retryAfter reads Retry-After: seconds, or a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
