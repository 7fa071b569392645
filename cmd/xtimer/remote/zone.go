package remote

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"xtimer/cmd/xtimer/span"
)

// Zone is the time zone in which times are shown: local, utc or timer. With timer they are
// in the zone of the timer that they belong to; in UTC if the timer has none, and in lists
// of tasks. Each time is written as RFC 3339 with its offset.
type Zone string

const zoneHelp = "show times in this `ZONE`: local (the zone of this machine), utc, or timer (the zone of each timer)"

var zones = []string{"local", "utc", "timer"}

func (z *Zone) String() string { return string(*z) }

// Type names the value in the help of a flag.
func (z *Zone) Type() string { return "zone" }

// Set takes one of the zones.
func (z *Zone) Set(s string) error {
	if !slices.Contains(zones, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(zones, ", "))
	}
	*z = Zone(s)
	return nil
}

// Instant is "" for the zero time; timer is the zone of the timer, "" for none.
func (z Zone) Instant(t time.Time, timer string) string {
	if t.IsZero() {
		return ""
	}
	at := time.UTC
	switch z {
	case "local":
		at = time.Local
	case "timer":
		// One that this program does not know is shown in UTC, and says so.
		if l, err := time.LoadLocation(timer); err == nil && timer != "Local" {
			at = l
		}
	}
	return t.In(at).Format("2006-01-02T15:04:05.000Z07:00")
}

// Ahead reads a time: RFC 3339, Unix ms, or how far ahead it is. "" is none.
func Ahead(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if err := span.CheckSeconds(s); err != nil {
		return time.Time{}, err
	}
	if d, err := span.Parse(s); err == nil && d >= 0 {
		return now.Add(d), nil
	}
	ms, err := span.Moment(s, now)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time like 2026-11-20T17:00:00Z, nor Unix ms, nor a time from now like 30m or 7d", s)
	}
	return time.UnixMilli(ms), nil
}
