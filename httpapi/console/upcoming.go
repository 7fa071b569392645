package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// upcoming is GET /upcoming: one minute by second. Of a minute of the coming hour it
// shows what is due, and of one that has passed what became of it: a link to a minute
// stays good.
func upcoming(v *visit) error {
	at := v.Now
	if q := v.query("at"); q != "" {
		t, err := time.Parse(time.RFC3339, q)
		if err != nil {
			return &fault{http.StatusBadRequest, "The URL of this page contains an invalid time."}
		}
		at = t
	}
	now := v.Now.Truncate(time.Minute)
	d := upcomingData{Minute: at.UTC().Truncate(time.Minute), App: v.query("app")}
	d.Former, d.Next = d.Minute.Add(-time.Minute), d.Minute.Add(time.Minute)
	d.HasNext = d.Next.Before(now.Add(time.Hour))
	if !d.Minute.Before(now.Add(time.Hour)) { // minutes are known of the coming hour alone
		return redirect(withQuery(&url.URL{Path: "/upcoming/hours", RawQuery: v.r.URL.RawQuery}, "at", ""))
	}
	find := d.coming
	if d.Past = d.Minute.Before(now); d.Past {
		find = d.passed
	}
	if err := find(v); err != nil {
		return err
	}
	if d.Past {
		return v.show("upcoming", v.T("Tasks of this minute"), &d)
	}
	return v.show("upcoming", v.T("Next dues"), &d)
}

type upcomingData struct {
	Minute, Former, Next time.Time
	App                  string
	Past                 bool
	Seconds              []heatCell
	Total                int64 // of timers; in the past, of tasks
	Partial              bool  // there are more than are shown
	Dues                 []client.ComingDue
	Tasks                []client.Task // in the past
	HasNext              bool
}

// How many timers or tasks of a minute are counted by second, and how many tasks are
// listed: a row of a task takes 80 µs of a core.
const (
	mostInMinute = 500
	mostListed   = 200
)

// coming finds what is due in a minute of the coming hour.
func (d *upcomingData) coming(v *visit) error {
	c, err := v.api.Coming(v.ctx, d.App, d.Minute, mostInMinute)
	if err != nil {
		return err
	}
	d.Dues, d.Partial, d.Seconds = c.Dues, c.Partial, cells(d.Minute, time.Second, c.DueBySecond)
	for _, n := range c.DueBySecond {
		d.Total += n
	}
	return nil
}

// passed finds the tasks that were due in a minute that has passed.
func (d *upcomingData) passed(v *visit) error {
	l, err := v.api.TaskPage(v.ctx, client.TaskFilter{App: d.App, From: d.Minute, To: d.Next}, mostInMinute, "")
	if err != nil {
		return err
	}
	d.Total, d.Partial = int64(len(l.Tasks)), l.NextCursor != "" || len(l.Tasks) > mostListed
	d.Tasks = l.Tasks[:min(len(l.Tasks), mostListed)]
	counts := make([]int64, 60)
	for i := range l.Tasks {
		if s := int(l.Tasks[i].Due.Sub(d.Minute) / time.Second); s >= 0 && s < len(counts) {
			counts[s]++
		}
	}
	d.Seconds = cells(d.Minute, time.Second, counts)
	return nil
}

// previewData is what a schedule would do.
type previewData struct {
	client.Preview
	Error string
}

// preview asks what the schedule in the form would do.
func (v *visit) preview(f *form) *previewData {
	var s client.Schedule
	p := &previewData{}
	err := json.Unmarshal([]byte(text(f.document()["schedule"])), &s)
	if err == nil {
		v.timer = s.TimeZone
		d := client.Definition{Schedule: s}
		if d.App = f.Values["app"]; d.App != "" {
			d.Flow = strings.Fields(f.Values[flowInput])
		}
		err = into(&p.Preview)(v.api.PreviewTimer(v.ctx, d, 10, v.Now))
	}
	if err != nil {
		p.Error = detail(err)
	}
	return p
}

// preview is POST /timers/preview: the part of the form that shows it.
func preview(v *visit) error {
	f := readForm(v)
	f.Preview = v.preview(f)
	f.Errors = nil
	title := v.T("Edit")
	if f.Version == "" {
		title = v.T("New timer")
	}
	return v.show("edit", title, f)
}
