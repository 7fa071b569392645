package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// A request that ends because another one was refused says that nobody listens, and not that it
// was interrupted.
func TestRequestThatAnotherEnds(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	i := &impatient{giveUp: cancel}
	ask := func(addr net.Addr) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr.String(), nil)
		if err != nil {
			t.Error(err)
		}
		resp, err := i.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	ended := make(chan error)
	go func() { ended <- ask(mute.Addr()) }()
	if err := ask(nobody.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the first: %v", err)
	}
	if err := <-ended; !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the other: %v", err)
	}
	if err := ask(mute.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a later one: %v", err)
	}
}
