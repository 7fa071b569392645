package bench

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// numberHeader tells the receiver which timer calls.
const numberHeader = "X-Bench-Timer"

// benchReceiver takes the calls of a run and notes when each arrived. It trusts
// nothing that the server says: a call names its timer, and when that is due is
// known here.
type benchReceiver struct {
	start time.Time // the first due
	shape *benchShape
	// arrived of each timer: Unix ns of its first call, 0 for none.
	arrived []atomic.Int64

	calls, early, repeats, strange atomic.Int64
	firsts                         atomic.Int64 // timers that called
	worst                          atomic.Int64 // lateness since it was last read, ns; for the live line

	servers []*http.Server
}

func newBenchReceiver(n int, start time.Time, s *benchShape) *benchReceiver {
	return &benchReceiver{start: start, shape: s, arrived: make([]atomic.Int64, n)}
}

func (r *benchReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	now := time.Now()
	i, err := strconv.Atoi(req.Header.Get(numberHeader))
	if err != nil || i < 0 || i >= len(r.arrived) {
		r.strange.Add(1)
		http.Error(w, "the request is not a call of this run", http.StatusBadRequest)
		return
	}
	r.calls.Add(1)
	late := now.Sub(r.shape.due(r.start, i))
	if late < 0 {
		r.early.Add(1)
	}
	if !r.arrived[i].CompareAndSwap(0, now.UnixNano()) {
		r.repeats.Add(1)
		return
	}
	r.firsts.Add(1)
	for {
		w := r.worst.Load()
		if int64(late) <= w || r.worst.CompareAndSwap(w, int64(late)) {
			return
		}
	}
}

// listen opens the targets and tells their addresses as the server has to call
// them.
func (r *benchReceiver) listen(ctx context.Context, addr string, targets int, server string) (urls []string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("--receiver-addr: %w", err)
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("--receiver-addr: the port must be a number: %w", err)
	}
	called := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if called, err = addressTowards(ctx, server); err != nil {
			return nil, err
		}
	}
	for i := range targets {
		if first > 0 {
			port = strconv.Itoa(first + i)
		}
		ln, err := net.Listen("tcp", net.JoinHostPort(host, port))
		if err != nil {
			r.close()
			return nil, fmt.Errorf("cannot listen for the calls: %w", err)
		}
		s := &http.Server{Handler: r, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
		r.servers = append(r.servers, s)
		go func() { _ = s.Serve(ln) }()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		urls = append(urls, "http://"+net.JoinHostPort(called, port)+"/call")
	}
	return urls, nil
}

// addressTowards is the address of this machine that the server sees.
func addressTowards(ctx context.Context, server string) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("--server: %w", err)
	}
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return "", fmt.Errorf("cannot reach the server: %w", err)
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}

func (r *benchReceiver) close() {
	for _, s := range r.servers {
		_ = s.Close()
	}
}

// await waits until all that was made has called, or, after the last due,
// nothing has arrived for as long as patience.
func (r *benchReceiver) await(ctx context.Context, made func() int64, lastDue time.Time) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	calls, quiet := int64(0), lastDue
	for r.firsts.Load() < made() || time.Now().Before(lastDue) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if n := r.calls.Load(); n != calls || time.Now().Before(lastDue) {
			calls, quiet = n, time.Now()
		}
		if time.Since(quiet) > patience {
			return
		}
	}
}
