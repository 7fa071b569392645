package remote

import (
	"time"

	"xtimer/cmd/xtimer/exit"
)

// zone is where times are shown: timer, local or utc. With timer they are in the zone of
// the timer that they belong to, and in UTC where it has none, or in lists of tasks.
// Each is written as RFC 3339, with its offset, to be copied.
type zone string

const zoneHelp = "show times in the zone of the `timer`, local or utc"

func (z zone) check() error {
	switch z {
	case "timer", "local", "utc":
		return nil
	}
	return exit.Usage("--zone: %q is none of timer, local and utc", string(z))
}

// instant is "" for the zero time; timer is the zone of the timer, "" for none.
func (z zone) instant(t time.Time, timer string) string {
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
