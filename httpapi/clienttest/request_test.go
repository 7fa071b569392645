package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi/client"
)

// script answers requests without a network: one step each, the last for ever.
type script struct {
	steps []step
	seen  []*http.Request
	at    []time.Time
}

type step struct {
	status int // 0: the connection breaks
	body   string
	header string // Retry-After
}

var errBroken = errors.New("the connection broke")

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	st := s.steps[min(len(s.seen), len(s.steps)-1)]
	s.seen, s.at = append(s.seen, r), append(s.at, time.Now())
	if st.status == 0 {
		return nil, errBroken
	}
	h := http.Header{}
	if st.header != "" {
		h.Set("Retry-After", st.header)
	}
	return &http.Response{StatusCode: st.status, Header: h, Body: io.NopCloser(strings.NewReader(st.body)), Request: r}, nil
}

func scripted(t *testing.T, steps ...step) (*client.Client, *script) {
	t.Helper()
	s := &script{steps: steps}
	c, err := client.New("http://xtimer.test/", client.WithHTTPClient(&http.Client{Transport: s}), client.WithToken("sesame"))
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

// TestRepeats: what may be made twice is, until it is answered or 5 times.
func TestRepeats(t *testing.T) {
	type request struct {
		name  string
		twice bool
		make  func(*client.Client, context.Context) error
	}
	for _, q := range []request{
		{"get", true, func(c *client.Client, ctx context.Context) error { _, err := c.Get(ctx, "1"); return err }},
		{"put", true, func(c *client.Client, ctx context.Context) error { _, err := c.Put(ctx, hourly("n")); return err }},
		{"delete", true, func(c *client.Client, ctx context.Context) error { _, err := c.Delete(ctx, "1"); return err }},
		{"create", true, func(c *client.Client, ctx context.Context) error { _, err := c.Create(ctx, hourly("n")); return err }},
		{"batch", true, func(c *client.Client, ctx context.Context) error { _, err := c.CreateBatch(ctx, nil); return err }},
		{"patch", false, func(c *client.Client, ctx context.Context) error { _, err := c.Patch(ctx, "1", 1); return err }},
		{"run", false, func(c *client.Client, ctx context.Context) error { _, err := c.Run(ctx, "1"); return err }},
		{"enable", false, func(c *client.Client, ctx context.Context) error { _, err := c.Enable(ctx, "1", ""); return err }},
		{"retry", false, func(c *client.Client, ctx context.Context) error { return c.Retry(ctx, "1_2") }},
		{"backup", false, func(c *client.Client, ctx context.Context) error { _, err := c.Backup(ctx); return err }},
		{"ready", false, func(c *client.Client, ctx context.Context) error { return c.Ready(ctx) }},
	} {
		for name, bad := range map[string]step{"broken": {}, "429": {status: 429}, "503": {status: 503}} {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, bad, bad, bad, bad, step{status: 200, body: "{}"})
				start := time.Now()
				err := q.make(c, t.Context())
				if q.twice && (err != nil || len(s.seen) != 5) {
					t.Errorf("%s, %s: %v after %d tries", q.name, name, err, len(s.seen))
				}
				if !q.twice && (err == nil || len(s.seen) != 1) {
					t.Errorf("%s, %s: %v after %d tries", q.name, name, err, len(s.seen))
				}
				if took := time.Since(start); took > 1500*time.Millisecond || q.twice && took < 750*time.Millisecond {
					t.Errorf("%s, %s: it took %v", q.name, name, took)
				}
				for _, r := range s.seen {
					if r.Header.Get("Idempotency-Key") != s.seen[0].Header.Get("Idempotency-Key") || q.name == "create" && r.Header.Get("Idempotency-Key") == "" {
						t.Errorf("%s: the key is another at each try, or none", q.name)
					}
					if r.Header.Get("Authorization") != "Bearer sesame" {
						t.Errorf("%s: no token", q.name)
					}
				}
			})
		}
	}
}

func TestRepeatsEnd(t *testing.T) {
	get := func(c *client.Client, ctx context.Context) error { _, err := c.Get(ctx, "1"); return err }
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, step{})
		if err := get(c, t.Context()); !errors.Is(err, errBroken) || len(s.seen) != 5 {
			t.Errorf("%v after %d tries", err, len(s.seen))
		}

		c, s = scripted(t, step{status: 503, header: "7"}, step{status: 200, body: "{}"})
		if err := get(c, t.Context()); err != nil || s.at[1].Sub(s.at[0]) < 7*time.Second || s.at[1].Sub(s.at[0]) > 8*time.Second {
			t.Errorf("%v, Retry-After is not kept: %v", err, s.at)
		}
		in := time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)
		c, s = scripted(t, step{status: 429, header: in}, step{status: 200, body: "{}"})
		if err := get(c, t.Context()); err != nil || s.at[1].Sub(s.at[0]) < 8*time.Second {
			t.Errorf("%v, a date is not kept: %v", err, s.at)
		}
		c, s = scripted(t, step{status: 429, header: "3600"})
		var e *client.Error
		if err := get(c, t.Context()); !errors.As(err, &e) || e.RetryAfter != time.Hour || len(s.seen) != 1 {
			t.Errorf("%v: it waits for an hour", err)
		}

		for _, status := range []int{400, 401, 403, 404, 409, 412, 422, 500, 502, 507} {
			c, s = scripted(t, step{status: status})
			if err := get(c, t.Context()); !errors.As(err, &e) || e.Status != status || len(s.seen) != 1 {
				t.Errorf("%d: %v after %d tries", status, err, len(s.seen))
			}
		}

		c, s = scripted(t, step{status: 503, header: "20"})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if err := get(c, ctx); err == nil || len(s.seen) != 1 || time.Since(start) != 5*time.Second {
			t.Errorf("%v after %d tries and %v: the context is not obeyed", err, len(s.seen), time.Since(start))
		}
	})
}

// TestDeleteTwice: 404 means that it was never there, unless an answer was lost.
func TestDeleteTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(t, step{}, step{status: 503}, step{status: 404})
		if got, err := c.Delete(t.Context(), "1"); got != client.Unknown || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		c, _ = scripted(t, step{status: 503}, step{status: 404})
		if _, err := c.Delete(t.Context(), "1"); !client.IsNotFound(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestErrors(t *testing.T) {
	c, _ := scripted(t, step{status: 422, body: `{"title":"T","status":422,"detail":"a: b (and 1 more)","code":"bad","errors":[{"field":"a","detail":"b"},{"field":"c","detail":"d"}]}`})
	_, err := c.Put(t.Context(), hourly("n"))
	var e *client.Error
	if !errors.As(err, &e) || e.Code != "bad" || len(e.Fields) != 2 || e.Fields[1].Field != "c" || err.Error() != "the server responded with 422: a: b (and 1 more)" {
		t.Errorf("%#v", err)
	}
	c, _ = scripted(t, step{status: 502, body: "<html>a gateway</html>"})
	if _, err := c.Get(t.Context(), "1"); !errors.As(err, &e) || e.Status != 502 || err.Error() != "the server responded with 502 Bad Gateway" {
		t.Errorf("%v", err)
	}
	c, _ = scripted(t, step{status: 200, body: "<html>a captive portal</html>"})
	if _, err := c.Get(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "cannot read the response to GET /v1/timers/1") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "127.0.0.1:8080", "ftp://h", "http://", "http://h/?a=b", "http://h:port"} {
		if _, err := client.New(bad); err == nil {
			t.Errorf("%q passes for a URL", bad)
		}
	}
}

// TestRedirects: a redirect is an error, for the answer to the GET that would follow is
// not the answer to the POST.
func TestRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/timers" {
				http.Redirect(w, r, "/secure/v1/timers", status)
				return
			}
			io.WriteString(w, `{"timers":[]}`)
		}))
		defer s.Close()
		for _, h := range []*http.Client{nil, {}} {
			var options []client.Option
			if h != nil {
				options = append(options, client.WithHTTPClient(h))
			}
			c, err := client.New(s.URL, options...)
			if err != nil {
				t.Fatal(err)
			}
			var e *client.Error
			if made, err := c.Create(t.Context(), hourly("n")); !errors.As(err, &e) || e.Status != status {
				t.Errorf("%d: %+v, %v", status, made, err)
			}
		}
	}
}
