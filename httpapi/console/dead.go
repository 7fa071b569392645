package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"xtimer/httpapi/client"
)

// listDead is GET /dead: what failed or is dead, by target and error.
func listDead(v *visit) error {
	d := deadData{App: v.query("app"), TimerID: v.query("timer_id"), Since: v.query("since"), Status: v.query("status"), Back: v.Path()}
	err := into(&d.List)(v.api.Failures(v.ctx, d.filter(v.Now)))
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
	List                              client.Failures
	Total                             int64
}

// Shown bounds the tasks that a group lists on the page.
func (d *deadData) Shown(keys []string) []string { return keys[:min(len(keys), 50)] }

var sinceHours = map[string]time.Duration{"1h": time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour}

func (d *deadData) filter(now time.Time) client.TaskFilter {
	f := client.TaskFilter{App: d.App, TimerID: d.TimerID}
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
	f := v.r.PostForm
	d := retryData{
		Keys: f["key"], Back: inside(f.Get("back")), Groups: f["group"],
		App: f.Get("app"), TimerID: f.Get("timer_id"), Since: f.Get("since"), Status: f.Get("status"),
	}
	d.Rate, _ = strconv.Atoi(f.Get("rate"))
	if d.Rate < 1 || d.Rate > mostRate {
		return &fault{http.StatusBadRequest, "The rate has to be from 1 to 1000 a second."}
	}
	if len(d.Groups) > 0 {
		look := deadData{App: d.App, TimerID: d.TimerID, Since: d.Since, Status: d.Status}
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
	w := &work{Title: v.T("Retry"), Back: d.Back, Total: len(d.Keys), gone: v.T("The task's timer was deleted: it cannot be retried.")}
	return v.start(w, func(ctx context.Context) error {
		return w.each(ctx, named(d.Keys), d.Rate, func(key string) error { return v.api.Retry(ctx, key) })
	})
}

type retryData struct {
	Keys, Groups                      []string
	App, TimerID, Since, Status, Back string
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
