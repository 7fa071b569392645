package remote

import (
	"strings"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// instantLayout is how instants are shown: as the API writes them, to be copied.
const instantLayout = "2006-01-02T15:04:05.000Z"

func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantLayout)
}

// ScheduleWords is a schedule in a few words.
func ScheduleWords(s *api.Schedule) string {
	switch {
	case s.Cron != "" && s.TimeZone != "":
		return s.Cron + " " + s.TimeZone
	case s.Cron != "":
		return s.Cron
	case s.Every != 0:
		return "every " + span.Format(s.Every)
	case s.Delay != nil:
		return "after " + span.Format(*s.Delay)
	}
	return "at " + Instant(s.At)
}

var StatusColours = map[string]string{
	api.Disabled: terminal.Yellow, api.Finished: terminal.Dim,
	api.Succeeded: terminal.Green, api.Failed: terminal.Red, api.Dead: terminal.Red, api.Unknown: terminal.Red,
	api.Retrying: terminal.Yellow, api.Skipped: terminal.Yellow, api.Missed: terminal.Yellow, api.Cancelled: terminal.Dim,
}

// PauseWords says of a pause since when, until when, by whom and why.
func PauseWords(p *api.PauseState, instant func(time.Time) string) string {
	words := []string{"paused since " + instant(p.Since)}
	if !p.Until.IsZero() {
		words = append(words, "until "+instant(p.Until))
	}
	if p.By != "" {
		words = append(words, "by "+p.By)
	}
	text := strings.Join(words, " ")
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
