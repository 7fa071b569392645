package httpapi

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 3 ": 3 * time.Second, "-1": 0, "1.5": 0, "soon": 0,
		"99999999999999999999999": 365 * 24 * time.Hour, "9999999999": 365 * 24 * time.Hour,
		"Fri, 20 Nov 2026 17:00:30 GMT":   30*time.Second + 2*time.Millisecond,
		"Friday, 20-Nov-26 17:00:30 GMT":  30*time.Second + 2*time.Millisecond,
		"Fri Nov 20 17:00:30 2026":        30*time.Second + 2*time.Millisecond,
		"Fri, 20 Nov 2026 16:59:30 GMT":   0,
		"Fri, 20 Nov 2026 17:00:30 +0200": 0,
	} {
		if got := retryAfter([]byte(in), now); got != want {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}
