package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// listDead is GET /dead: what failed or is dead, by target and error.
func listDead(v *visit) error {
	d := deadData{App: v.query("app"), TimerID: v.query("timer_id"), Since: v.query("since"), Status: v.query("status"), Dismissed: v.query("dismissed") == "yes", Back: v.Path()}
	err := together(
		func() error { return into(&d.List)(v.api.Failures(v.ctx, d.filter(v.Now))) },
		func() error { return d.findTasks(v) },
	)
	if err != nil {
		return err
	}
	for i := range d.List.Groups {
		d.Total += d.List.Groups[i].Count
	}
	return v.show("dead", v.T("Dead letters"), &d)
}

type deadData struct {
	App, TimerID, Since, Status, Back string
	Dismissed                         bool // only the dismissed ones; else only the others
	List                              client.Failures
	Total                             int64
	tasks                             map[string]client.Task // by key; not all of them have to be there
}

// mostFailures is how many failed tasks the API groups.
const mostFailures = 1000

// findTasks finds the names and the answers of the tasks in the groups.
func (d *deadData) findTasks(v *visit) error {
	f := d.filter(v.Now)
	if len(f.Statuses) == 0 {
		f.Statuses = []string{client.Failed, client.Dead}
	}
	d.tasks = make(map[string]client.Task)
	for next := ""; ; {
		l, err := v.api.TaskPage(v.ctx, f, mostFailures-len(d.tasks), next)
		if err != nil {
			return err
		}
		for _, t := range l.Tasks {
			d.tasks[t.Key] = t
		}
		if next = l.NextCursor; next == "" || len(l.Tasks) == 0 || len(d.tasks) >= mostFailures {
			return nil
		}
	}
}

// Shown are the tasks of a group that the page lists.
func (d *deadData) Shown(keys []string) []client.Task {
	shown := make([]client.Task, 0, mostShown)
	for _, key := range keys[:min(len(keys), mostShown)] {
		t, ok := d.tasks[key]
		if !ok { // it failed a moment ago, or was retried
			id, _, _ := strings.Cut(key, "_")
			t = client.Task{Key: key, TimerID: id}
		}
		shown = append(shown, t)
	}
	return shown
}

// mostShown is how many tasks of a group the page lists.
const mostShown = 50

// Response is the text that the target of a task answered to the last attempt, shortened.
func (v *visit) Response(t client.Task) string {
	if len(t.Attempts) == 0 {
		return ""
	}
	text := strings.Join(strings.Fields(t.Attempts[len(t.Attempts)-1].Response), " ")
	if r := []rune(text); len(r) > mostResponse {
		return string(r[:mostResponse]) + " …"
	}
	return text
}

// mostResponse is how many characters of an answer a list shows.
const mostResponse = 160

var sinceHours = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *deadData) filter(now time.Time) client.TaskFilter {
	f := client.TaskFilter{App: d.App, TimerID: d.TimerID, Dismissed: &d.Dismissed}
	if h, ok := sinceHours[d.Since]; ok {
		f.From = now.Add(-h)
	}
	if d.Status != "" {
		f.Statuses = []string{d.Status}
	}
	return f
}

// retryDead is POST /dead/retry: first it asks, with the count; then it retries
// at the rate asked for.
func retryDead(v *visit) error {
	return v.actOnDead("retry", func(ctx context.Context, key string) error { return v.api.Retry(ctx, key) })
}

// dismissDead is POST /dead/dismiss: first it asks, with the count.
func dismissDead(v *visit) error {
	return v.actOnDead("dismiss", func(ctx context.Context, key string) error {
		_, err := v.api.Dismiss(ctx, key)
		return err
	})
}

// actOnDead does something to the tasks that are selected, in the form of what failed.
func (v *visit) actOnDead(action string, do func(context.Context, string) error) error {
	f := v.r.PostForm
	d := retryData{
		Action: action, Keys: f["key"], Back: inside(f.Get("back")), Groups: f["group"],
		App: f.Get("app"), TimerID: f.Get("timer_id"), Since: f.Get("since"), Status: f.Get("status"), Dismissed: f.Get("dismissed") == "yes",
	}
	d.Rate, _ = strconv.Atoi(f.Get("rate"))
	if action == "dismiss" {
		d.Rate = mostRate // nothing is called
	}
	if d.Rate < 1 || d.Rate > mostRate {
		return &fault{http.StatusBadRequest, "The rate must be from 1 to 1000 a second."}
	}
	if len(d.Groups) > 0 {
		look := deadData{App: d.App, TimerID: d.TimerID, Since: d.Since, Status: d.Status, Dismissed: d.Dismissed}
		l, err := v.api.Failures(v.ctx, look.filter(v.Now))
		if err != nil {
			return err
		}
		for _, g := range l.Groups {
			if slices.Contains(d.Groups, groupName(g)) {
				d.Keys = append(d.Keys, g.Keys...)
			}
		}
		slices.Sort(d.Keys)
		d.Keys = slices.Compact(d.Keys)
	}
	if len(d.Keys) == 0 {
		return noneSelected(d.Back)
	}
	if f.Get("confirmed") != "yes" || d.MustType() && !sameNumber(f.Get("typed"), len(d.Keys)) {
		d.Mistyped = f.Get("typed") != ""
		return v.show("retry", v.T("Are you sure?"), &d)
	}
	w := &work{Title: v.Word(action), Back: d.Back, Total: len(d.Keys), gone: v.T("The task's timer was deleted: it cannot be retried.")}
	return v.start(w, func(ctx context.Context) error {
		return w.each(ctx, named(d.Keys), d.Rate, func(key string) error { return do(ctx, key) })
	})
}

type retryData struct {
	Action                            string // retry or dismiss
	Keys, Groups                      []string
	App, TimerID, Since, Status, Back string
	Dismissed                         bool
	Rate                              int
	Mistyped                          bool
}

// MustType reports whether the number has to be typed.
func (d *retryData) MustType() bool { return len(d.Keys) > mostUntyped }

// groupName names a group in a form.
func groupName(g client.FailureGroup) string {
	return url.Values{"t": {g.Target}, "e": {g.Error}}.Encode()
}

// GroupName names a group in a form.
func (d *deadData) GroupName(g client.FailureGroup) string { return groupName(g) }
