package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"time"

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
		return "every " + formatSpan(s.Every)
	case s.Delay != nil:
		return "after " + formatSpan(*s.Delay)
	}
	return "at " + instant(s.At)
}

var statusColours = map[string]string{
	api.Enabled: green, api.Disabled: yellow, api.Finished: dim,
	api.Succeeded: green, api.Failed: red, api.Dead: red, api.Unknown: red,
	api.Skipped: yellow, api.Missed: yellow, api.Cancelled: dim,
}

// tableTimers lists timers.
func tableTimers(out io.Writer, timers []api.Timer) error {
	g := grid{head: []string{"TIMER", "STATUS", "SCHEDULE", "NEXT DUE", "LAST TASK", "ID"}}
	for i := range timers {
		t := &timers[i]
		last := ""
		if t.LastTask != nil {
			last = t.LastTask.Status
		}
		colours := []string{plain, statusColours[t.Status], plain, plain, statusColours[last]}
		g.paint(colours, t.App+"/"+t.Name, t.Status, scheduleWords(&t.Schedule), instant(t.NextDue), last, t.ID)
	}
	return g.print(out)
}

// sheetTimer shows all of one timer that is not as it is by default.
func sheetTimer(out io.Writer, t *api.Timer) error {
	var s sheet
	s.add("timer", "%s/%s", t.App, t.Name)
	s.add("id", "%s", t.ID)
	s.add("status", "%s", t.Status)
	s.has("reason", t.Reason)
	s.has("until", instant(t.DisabledUntil))
	s.add("schedule", "%s", scheduleWords(&t.Schedule))
	s.has("start at", instant(t.Schedule.StartAt))
	s.has("end at", instant(t.Schedule.EndAt))
	if t.Schedule.MaxRuns > 0 {
		s.add("max runs", "%d", t.Schedule.MaxRuns)
	}
	if t.Schedule.Jitter > 0 {
		s.add("jitter", "%s", formatSpan(t.Schedule.Jitter))
	}
	s.add("calls", "%s %s", t.Callback.Method, t.Callback.URL)
	s.add("timeout", "%s, success is %s", formatSpan(t.Callback.Timeout), t.Callback.Success)
	s.add("retry", "%d attempts, from %s ×%g up to %s, for %s", t.Retry.MaxAttempts,
		formatSpan(t.Retry.Backoff), t.Retry.Multiplier, formatSpan(t.Retry.MaxBackoff), formatSpan(t.Retry.MaxAge))
	if t.Misfire.Window != nil {
		s.add("misfire", "%s, within %s", t.Misfire.Policy, formatSpan(*t.Misfire.Window))
	}
	s.add("overlap", "%s", t.Overlap)
	s.add("delivery", "%s", t.Delivery)
	if t.StaleAfter > 0 {
		s.add("stale", "after %s", formatSpan(time.Duration(t.StaleAfter)))
	}
	if t.Priority != nil {
		s.add("priority", "%d", *t.Priority)
	}
	var labels []string
	for _, k := range slices.Sorted(maps.Keys(t.Labels)) {
		labels = append(labels, k+"="+t.Labels[k])
	}
	s.has("labels", strings.Join(labels, ", "))
	s.add("version", "%d of %s, created %s", t.Version, instant(t.UpdatedAt), instant(t.CreatedAt))
	s.has("next due", instant(t.NextDue))
	if l := t.LastTask; l != nil {
		s.add("last task", "%s, %s", l.Key, l.Status)
	}
	return s.print(out)
}
