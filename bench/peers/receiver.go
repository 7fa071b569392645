package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	receiverEnv  = "XTIMER_PEERS_RECEIVER"
	storeEnv     = "XTIMER_PEERS_STORE"
	numberHeader = "X-Number"
	dueHeader    = "X-Due"
)

// caller is the handler of a peer that has no HTTP of its own: the call that
// xtimer makes, with the same client library.
func caller(url string) func(task) {
	c := &fasthttp.Client{MaxConnsPerHost: 512, MaxIdemponentCallAttempts: 1, MaxConnWaitTimeout: time.Minute}
	return func(t task) {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		defer fasthttp.ReleaseRequest(req)
		defer fasthttp.ReleaseResponse(resp)
		req.SetRequestURI(url)
		req.Header.SetMethod(fasthttp.MethodPost)
		req.Header.Set(numberHeader, strconv.Itoa(t.Number))
		req.Header.Set(dueHeader, strconv.FormatInt(t.Due, 10))
		if err := c.DoTimeout(req, resp, 15*time.Second); err != nil {
			fmt.Fprintln(os.Stderr, "peers: a call failed:", err)
		}
	}
}

// receiver takes all calls over HTTP.
type receiver struct {
	url   string
	delay atomic.Int64 // of its answers, ns
	heard
}

func startReceiver() (*receiver, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + ln.Addr().String() + "/call"}
	s := &fasthttp.Server{Handler: r.serve, NoDefaultDate: true, NoDefaultServerHeader: true}
	go func() { _ = s.Serve(ln) }()
	return r, nil
}

func (r *receiver) serve(c *fasthttp.RequestCtx) {
	number, err1 := strconv.Atoi(string(c.Request.Header.Peek(numberHeader)))
	due, err2 := strconv.ParseInt(string(c.Request.Header.Peek(dueHeader)), 10, 64)
	if err1 != nil || err2 != nil {
		c.SetStatusCode(fasthttp.StatusBadRequest)
		return
	}
	r.note(task{number, due})
	if d := r.delay.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
}

// numbers counts the tasks of the whole run, so that a straggler of a former
// step is not taken for one of this.
var numbers atomic.Int64

// newNumbers are n numbers that nothing had before; it tells the first.
func newNumbers(n int) int { return int(numbers.Add(int64(n))) - n }
