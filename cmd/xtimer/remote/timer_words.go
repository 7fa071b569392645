package remote

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// instantLayout is how instants are shown: as the API writes them, to be copied.
const instantLayout = "2006-01-02T15:04:05.000Z"

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantLayout)
}

// scheduleWords is a schedule in a few words.
func scheduleWords(s *api.Schedule) string {
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
	return "at " + instant(s.At)
}

var statusColours = map[string]string{
	api.Disabled: terminal.Yellow, api.Finished: terminal.Dim,
	api.Succeeded: terminal.Green, api.Failed: terminal.Red, api.Dead: terminal.Red, api.Unknown: terminal.Red,
	api.Retrying: terminal.Yellow, api.Skipped: terminal.Yellow, api.Missed: terminal.Yellow, api.Cancelled: terminal.Dim,
}

// tableTimers lists timers.
func tableTimers(out io.Writer, timers []api.Timer, z zone) error {
	g := terminal.Grid{Head: []string{"TIMER", "STATUS", "SCHEDULE", "NEXT DUE", "LAST TASK", "ID"}}
	for i := range timers {
		t := &timers[i]
		last := ""
		if t.LastTask != nil {
			last = t.LastTask.Status
		}
		colours := []string{terminal.Plain, statusColours[t.Status], terminal.Plain, terminal.Plain, statusColours[last]}
		g.Paint(colours, t.App+"/"+t.Name, t.Status, scheduleWords(&t.Schedule), z.instant(t.NextDue, t.Schedule.TimeZone), last, t.ID)
	}
	return g.Print(out)
}

// sheetTimer shows all of one timer that is not as it is by default.
func sheetTimer(out io.Writer, t *api.Timer, z zone) error {
	var s terminal.Sheet
	s.Add("timer", "%s/%s", t.App, t.Name)
	s.Add("id", "%s", t.ID)
	s.Add("status", "%s", t.Status)
	s.Has("reason", t.Reason)
	s.Has("until", z.instant(t.DisabledUntil, t.Schedule.TimeZone))
	s.Add("schedule", "%s", scheduleWords(&t.Schedule))
	s.Has("start at", z.instant(t.Schedule.StartAt, t.Schedule.TimeZone))
	s.Has("end at", z.instant(t.Schedule.EndAt, t.Schedule.TimeZone))
	if t.Schedule.MaxRuns > 0 {
		s.Add("max runs", "%d", t.Schedule.MaxRuns)
	}
	if t.Schedule.Jitter > 0 {
		s.Add("jitter", "%s", span.Format(t.Schedule.Jitter))
	}
	s.Add("calls", "%s %s", t.Callback.Method, t.Callback.URL)
	s.Add("timeout", "%s, success is %s", span.Format(t.Callback.Timeout), t.Callback.Success)
	s.Add("retry", "%d attempts, from %s ×%g up to %s, for %s", t.Retry.MaxAttempts,
		span.Format(t.Retry.Backoff), t.Retry.Multiplier, span.Format(t.Retry.MaxBackoff), span.Format(t.Retry.MaxAge))
	if t.Misfire.Window != nil {
		s.Add("misfire", "%s, within %s", t.Misfire.Policy, span.Format(*t.Misfire.Window))
	}
	s.Add("overlap", "%s", t.Overlap)
	s.Add("delivery", "%s", t.Delivery)
	if t.StaleAfter > 0 {
		s.Add("stale", "after %s", span.Format(time.Duration(t.StaleAfter)))
	}
	if t.Priority != nil {
		s.Add("priority", "%d", *t.Priority)
	}
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		labels = append(labels, k+"="+t.Labels[k])
	}
	s.Has("labels", strings.Join(labels, ", "))
	s.Add("version", "%d of %s, created %s", t.Version, z.instant(t.UpdatedAt, t.Schedule.TimeZone), z.instant(t.CreatedAt, t.Schedule.TimeZone))
	s.Has("next due", z.instant(t.NextDue, t.Schedule.TimeZone))
	if l := t.LastTask; l != nil {
		s.Add("last task", "%s, %s", l.Key, l.Status)
	}
	return s.Print(out)
}
