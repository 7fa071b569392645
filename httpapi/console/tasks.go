package console

import (
	"net/http"
	"net/url"
	"time"

	"xtimer/httpapi/client"
)

// statusProblems selects all tasks that did not end well.
const statusProblems = "problems"

// listTasks is GET /tasks: the history, newest first.
func listTasks(v *visit) error {
	d, err := v.taskSearch()
	if err != nil {
		return err
	}
	if d.Wrong != "" {
		v.status = http.StatusBadRequest
		return v.show("tasks", v.T("Tasks"), d)
	}
	next := v.query("cursor")
	d.First = next != ""
	// The API gives short pages where a filter has no index.
	for end := time.Now().Add(searchTime); ; {
		l, err := v.api.TaskPage(v.ctx, d.filter, tasksOfPage-len(d.Tasks), next)
		if err != nil {
			return err
		}
		d.Tasks = append(d.Tasks, l.Tasks...)
		if next = l.NextCursor; next == "" || len(d.Tasks) >= tasksOfPage || time.Now().After(end) {
			break
		}
	}
	if next != "" {
		d.Older = withQuery(v.r.URL, "cursor", next)
	}
	return v.show("tasks", v.T("Tasks"), d)
}

// tasksOfPage is how many tasks a page has.
const tasksOfPage = 50

type tasksData struct {
	App, TimerID, Status string
	Code, Search         string
	From, To             string // as the inputs show them, in the zone of the page
	Wrong                string // the input that cannot be read
	Ranges               []timeRange
	Tasks                []client.Task
	First                bool // the page is not the first
	FirstPage, Older     string
	CSV                  string
	filter               client.TaskFilter
}

// timeRange is a link to the tasks of the time up to now.
type timeRange struct{ Name, URL string }

// taskSearch reads the filters in the address.
func (v *visit) taskSearch() (*tasksData, error) {
	d := &tasksData{App: v.query("app"), TimerID: v.query("timer_id"), Status: v.query("status"), From: v.query("from"), To: v.query("to"), Code: v.query("code"), Search: v.query("q")}
	d.filter = client.TaskFilter{App: d.App, TimerID: d.TimerID, Code: d.Code, Search: d.Search}
	switch d.Status {
	case "":
	case statusProblems:
		d.filter.Statuses = []string{client.Failed, client.Dead, client.Missed, client.Unknown}
	default:
		d.filter.Statuses = []string{d.Status}
	}
	for _, x := range []struct {
		name string
		text *string
		to   *time.Time
	}{{"from", &d.From, &d.filter.From}, {"to", &d.To, &d.filter.To}} {
		if *x.text == "" {
			continue
		}
		t, err := v.wall(*x.text)
		if err != nil {
			d.Wrong = x.name
			continue
		}
		*x.to, *x.text = t, v.Input(t)
	}
	here := &url.URL{Path: "/tasks", RawQuery: v.r.URL.RawQuery}
	for _, name := range []string{"1h", "24h", "7d"} {
		from := v.Now.Add(-sinceHours[name]).Format(time.RFC3339)
		d.Ranges = append(d.Ranges, timeRange{name, withQuery(here, "from", from, "to", "", "cursor", "")})
	}
	d.FirstPage = withQuery(here, "cursor", "")
	d.CSV = withQuery(&url.URL{Path: "/tasks.csv", RawQuery: v.r.URL.RawQuery}, "cursor", "")
	return d, nil
}
