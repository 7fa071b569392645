package remote

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slow answers a request after so long.
type slow time.Duration

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case <-time.After(time.Duration(s)):
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(`{"backup":"x"}`)), Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// TestPlainWaits: a request takes as long as the server needs, such as that for a backup of
// much data, unless the caller says how long.
func TestPlainWaits(t *testing.T) {
	defer func(was http.RoundTripper) { http.DefaultTransport = was }(http.DefaultTransport)
	http.DefaultTransport = slow(3 * time.Hour)
	synctest.Test(t, func(t *testing.T) {
		var made struct{ Backup string }
		c := &Plain{Base: "http://server"}
		if err := c.Do(t.Context(), http.MethodPost, "/v1/admin/backup", nil, &made); err != nil || made.Backup != "x" {
			t.Errorf("%q, %v", made.Backup, err)
		}
	})
}
