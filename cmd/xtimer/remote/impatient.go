package remote

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"syscall"
)

// impatient makes the requests of a command. It gives the command up when the first
// connection is refused: the client would try again for seconds, and no server is there.
// That is the error of all requests that it ends.
type impatient struct {
	giveUp   context.CancelCauseFunc
	answered atomic.Bool
}

// connections keeps those of many requests at once; the standard 2 would not.
var connections = func() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}()

// RoundTrip makes one request.
func (i *impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := connections.RoundTrip(r)
	switch {
	case err == nil:
		i.answered.Store(true)
	case errors.Is(err, syscall.ECONNREFUSED) && !i.answered.Load():
		i.giveUp(err) // net/http returns the cause
	}
	return resp, err
}
