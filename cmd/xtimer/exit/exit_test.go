package exit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"

	api "xtimer/httpapi/client"
)

// TestStatusOf: each kind of failure has an exit status of its own, however deep it is wrapped.
func TestStatusOf(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "http://127.0.0.1:1/", Err: syscall.ECONNREFUSED}
	for _, x := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("any"), StatusFailed},
		{Usage("any"), StatusUsage},
		{NotFound("any"), StatusNotFound},
		{&api.Error{Status: 404}, StatusNotFound},
		{&api.Error{Status: 409}, StatusConflict},
		{&api.Error{Status: 412}, StatusConflict},
		{&api.Error{Status: 400}, StatusRefused},
		{&api.Error{Status: 422}, StatusRefused},
		{&api.Error{Status: 413}, StatusRefused},
		{&api.Error{Status: 401}, StatusDenied},
		{&api.Error{Status: 403}, StatusDenied},
		{&api.Error{Status: 429}, StatusUnavailable},
		{&api.Error{Status: 429, Code: "rate_limited"}, StatusUnavailable},
		{&api.Error{Status: 429, Code: "quota_exceeded"}, StatusExceeded},
		{&api.Error{Status: 503}, StatusUnavailable},
		{&api.Error{Status: 507}, StatusUnavailable},
		{&api.Error{Status: 500}, StatusFailed},
		{refused, StatusUnavailable},
		{&url.Error{Op: "Get", Err: context.Canceled}, StatusInterrupted},
		{context.DeadlineExceeded, StatusUnavailable},
		{Partly(2, 1, errors.New("any")), StatusPartly},
		{Partly(2, 2, &api.Error{Status: 403}), StatusDenied},
		{Partly(1, 1, &api.Error{Status: 403}), StatusDenied},
	} {
		if got := StatusOf(x.err); got != x.want {
			t.Errorf("%v: %d, want %d", x.err, got, x.want)
		}
		if x.err != nil {
			if got := StatusOf(fmt.Errorf("cannot: %w", x.err)); got != x.want {
				t.Errorf("wrapped: %v: %d, want %d", x.err, got, x.want)
			}
		}
	}
}

// TestTopic: the help lists every status once.
func TestTopic(t *testing.T) {
	seen := map[int]bool{}
	for _, s := range Statuses {
		if seen[s.Status] {
			t.Errorf("%d is listed twice", s.Status)
		}
		seen[s.Status] = true
		if !strings.Contains(Topic(), fmt.Sprintf("  %-4d %s\n", s.Status, s.Meaning)) {
			t.Errorf("the help does not list %d", s.Status)
		}
	}
}
