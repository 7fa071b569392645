package remote

import (
	"testing"
	"time"
)

// TestZone: each time has its offset, in the zone that was asked for.
func TestZone(t *testing.T) {
	at := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)
	for _, x := range []struct{ zone, timer, want string }{
		{"timer", "Asia/Shanghai", "2026-11-20T09:00:00.000+08:00"},
		{"timer", "", "2026-11-20T01:00:00.000Z"},
		{"timer", "Mars/Olympus", "2026-11-20T01:00:00.000Z"},
		{"utc", "Asia/Shanghai", "2026-11-20T01:00:00.000Z"},
		{"local", "Asia/Shanghai", at.Local().Format("2006-01-02T15:04:05.000Z07:00")},
	} {
		if got := Zone(x.zone).Instant(at, x.timer); got != x.want {
			t.Errorf("%+v: %s", x, got)
		}
	}
	if new(Zone).Set("mine") == nil || new(Zone).Set("local") != nil {
		t.Error("the zones that are known")
	}
}
