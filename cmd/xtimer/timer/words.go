package timer

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

// viewTimers shows timers in each form.
func viewTimers(timers []api.Timer, z remote.Zone) terminal.View {
	var names []string
	for i := range timers {
		names = append(names, timers[i].App+"/"+timers[i].Name)
	}
	return terminal.View{Value: api.TimerList{Timers: timers}, Names: names, Table: func(out io.Writer, wide bool) error {
		return tableTimers(out, timers, z, wide)
	}}
}

// tableTimers lists timers.
func tableTimers(out io.Writer, timers []api.Timer, z remote.Zone, wide bool) error {
	g := terminal.Grid{Head: timerHead(wide)}
	for _, i := range itemsOf(timers, z, wide) {
		g.Paint(i.Colours, i.Cells...)
	}
	return g.Print(out)
}

func timerHead(wide bool) []string {
	head := []string{"TIMER", "STATUS", "SCHEDULE", "NEXT DUE", "LAST TASK", "ID"}
	if wide {
		head = append(head, "CALLS", "LABELS", "VERSION", "UPDATED", "REASON")
	}
	return head
}

// itemsOf are the rows of a list of timers.
func itemsOf(timers []api.Timer, z remote.Zone, wide bool) (items []remote.Item) {
	for i := range timers {
		t := &timers[i]
		last := ""
		if t.LastTask != nil {
			last = t.LastTask.Status
		}
		name := t.App + "/" + t.Name
		cells := []string{name, t.Status, remote.ScheduleWords(&t.Schedule), z.Instant(t.NextDue, t.Schedule.TimeZone), last, t.ID}
		if wide {
			cells = append(cells, t.Callback.Method+" "+t.Callback.URL, labelWords(t.Labels), strconv.Itoa(t.Version), z.Instant(t.UpdatedAt, t.Schedule.TimeZone), t.Reason)
		}
		colours := []string{terminal.Plain, remote.StatusColours[t.Status], terminal.Plain, terminal.Plain, remote.StatusColours[last]}
		items = append(items, remote.Item{Name: name, Value: t, Cells: cells, Colours: colours})
	}
	return items
}

// sheetTimer shows all of one timer that is not as it is by default.
func sheetTimer(out io.Writer, t *api.Timer, z remote.Zone) error {
	var s terminal.Sheet
	s.Add("timer", "%s/%s", t.App, t.Name)
	s.Add("id", "%s", t.ID)
	s.Add("status", "%s", t.Status)
	s.Has("reason", t.Reason)
	s.Has("until", z.Instant(t.DisabledUntil, t.Schedule.TimeZone))
	s.Add("schedule", "%s", remote.ScheduleWords(&t.Schedule))
	s.Has("start at", z.Instant(t.Schedule.StartAt, t.Schedule.TimeZone))
	s.Has("end at", z.Instant(t.Schedule.EndAt, t.Schedule.TimeZone))
	if t.Schedule.MaxRuns > 0 {
		s.Add("max runs", "%d", t.Schedule.MaxRuns)
	}
	if t.Schedule.Jitter > 0 {
		s.Add("jitter", "%s", span.Format(t.Schedule.Jitter))
	}
	s.Add("calls", "%s %s", t.Callback.Method, t.Callback.URL)
	s.Add("timeout", "%s, success is %s", span.Format(t.Callback.Timeout), t.Callback.Success)
	if b := t.Callback.Batch; b != nil {
		s.Add("batch", "up to %d tasks, waits %s", b.Max, span.Format(time.Duration(b.Wait)))
	}
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
	s.Has("flow", strings.Join(t.Flow, ", "))
	s.Has("labels", labelWords(t.Labels))
	s.Add("version", "%d of %s, created %s", t.Version, z.Instant(t.UpdatedAt, t.Schedule.TimeZone), z.Instant(t.CreatedAt, t.Schedule.TimeZone))
	s.Has("next due", z.Instant(t.NextDue, t.Schedule.TimeZone))
	if l := t.LastTask; l != nil {
		s.Add("last task", "%s, %s", l.Key, l.Status)
	}
	return s.Print(out)
}

func labelWords(labels map[string]string) string {
	var words []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, k+"="+labels[k])
	}
	return strings.Join(words, ", ")
}
