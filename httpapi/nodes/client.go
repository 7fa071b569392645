package nodes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Client asks other nodes.
//
// It is net/http's client and not fasthttp's, for two reasons. It sees at once when a node
// closes a kept connection; fasthttp's finds out by losing the next request, and then nobody
// knows whether the node has carried that out. And a request of it can be given up.
type Client struct {
	http, streams *http.Client
	own           *http.Client // of what the nodes ask for themselves: clients' requests, and items of bulk operations, do not use its connections up
	secret        func() []byte
	now           func() time.Time
}

// Bounds of a client.
const (
	mostConnections = 64 // to one node
	dialTimeout     = time.Second
	keptFor         = 30 * time.Second // less than the node keeps it
	mostAnswer      = 64 << 20
	openTimeout     = 5 * time.Second // until a stream begins
)

// NewClient returns a client that signs with a secret, at the time of the cluster.
func NewClient(secret func() []byte, now func() time.Time) *Client {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	client := func(t *http.Transport) *http.Client {
		t.DialContext, t.DisableCompression = dialer.DialContext, true
		return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Client{
		secret:  secret,
		now:     now,
		http:    client(&http.Transport{MaxConnsPerHost: mostConnections, MaxIdleConnsPerHost: mostConnections, IdleConnTimeout: keptFor}),
		own:     client(&http.Transport{MaxConnsPerHost: mostConnections, MaxIdleConnsPerHost: mostConnections, IdleConnTimeout: keptFor}),
		streams: client(&http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: openTimeout}),
	}
}

// Close closes the connections that are kept.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.own.CloseIdleConnections()
}

// Answer is what a node answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// ErrNotSent: the request did not reach the node, and was not carried out. After any other
// error of Ask it may have been.
var ErrNotSent = errors.New("the request did not reach the node")

// Ask sends a request to the node at an address. It returns with ctx.
func (c *Client) Ask(ctx context.Context, address string, r *Request) (Answer, error) {
	return c.ask(ctx, c.http, address, r)
}

func (c *Client) ask(ctx context.Context, by *http.Client, address string, r *Request) (Answer, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
		WroteRequest: func(w httptrace.WroteRequestInfo) {
			if w.Err != nil { // some of it is missing, and so the node waits for that in vain
				sent.Store(false)
			}
		},
	})
	p, err := c.send(ctx, by, address, r)
	if err != nil {
		if !sent.Load() {
			err = fmt.Errorf("%w: %w", ErrNotSent, err)
		}
		return Answer{}, err
	}
	defer p.Body.Close()
	a := Answer{Status: p.StatusCode, Header: p.Header}
	a.Body, err = io.ReadAll(io.LimitReader(p.Body, mostAnswer+1))
	if err == nil && len(a.Body) > mostAnswer {
		err = fmt.Errorf("the response is larger than %d bytes", mostAnswer)
	}
	return a, err
}

// Open opens a stream at the node at an address. It ends with ctx.
func (c *Client) Open(ctx context.Context, address string, r *Request) (io.ReadCloser, error) {
	p, err := c.send(ctx, c.streams, address, r)
	if err != nil {
		return nil, err
	}
	if p.StatusCode != http.StatusOK {
		p.Body.Close()
		return nil, fmt.Errorf("the node answers with status %d", p.StatusCode)
	}
	return p.Body, nil
}

// send signs a request and sends it.
func (c *Client) send(ctx context.Context, by *http.Client, address string, r *Request) (*http.Response, error) {
	secret := c.secret()
	if len(secret) != SecretSize {
		return nil, errNoSecret
	}
	path, query, _ := strings.Cut(r.Target, "?")
	q, err := http.NewRequestWithContext(ctx, r.Method, "http://"+address, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	q.URL = &url.URL{Scheme: "http", Host: address, Opaque: path, RawQuery: query} // not a byte of it changes
	if len(r.Body) == 0 {
		q.Body, q.GetBody = http.NoBody, nil
	}
	for name, v := range r.Header {
		q.Header[name] = v
	}
	q.Header["User-Agent"] = []string{"xtimer"}
	q.Header[Header] = []string{r.Sign(secret, c.now())}
	return by.Do(q)
}

var errNoSecret = errors.New("the secret of the nodes is not known yet")
