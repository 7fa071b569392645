package console

import (
	"net/http"
	"net/url"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/waterfall"
)

// showTask is GET /tasks/{key}.
func showTask(v *visit) error {
	t, err := v.api.Task(v.ctx, v.r.PathValue("key"))
	if err != nil {
		return err
	}
	v.app = t.App
	d := taskData{Task: *t, Fall: waterfall.Bars(t)}
	for i := range d.Fall {
		d.Fall[i].Phases = waterfall.Phases(v.Language, d.Fall[i].PhasesUS)
	}
	switch t.Status {
	case client.Failed, client.Dead, client.Unknown:
		d.CanRetry, d.CanDismiss = true, t.Dismissed.IsZero()
	}
	if d.Requests, err = v.requests(t); err != nil {
		return err
	}
	name := t.Name
	if name == "" {
		name = t.TimerID
	}
	return v.show("task", name+" · "+v.Stamp(t.Due), &d)
}

type taskData struct {
	Task       client.Task
	CanRetry   bool
	CanDismiss bool
	Fall       []waterfall.Bar
	Requests   []requestData
}

// Open: it is not over, and the page looks again by itself.
func (d *taskData) Open() bool { return isOpen(&d.Task) }

// Own is the lateness without the time for which the task was held; nil: it was not held.
func (d *taskData) Own() *float64 { return waterfall.Own(&d.Task) }

func isOpen(t *client.Task) bool {
	switch t.Status {
	case client.Waiting, client.Running, client.Retrying:
		return true
	}
	return false
}

// retryTask is POST /tasks/{key}/retry.
func retryTask(v *visit) error {
	key := v.r.PathValue("key")
	if err := v.api.Retry(v.ctx, key); err != nil {
		if client.IsNotFound(err) {
			return &fault{http.StatusNotFound, "The task's timer was deleted: it cannot be retried."}
		}
		return err
	}
	return redirect("/tasks/" + url.PathEscape(key))
}

// dismissTask is POST /tasks/{key}/dismiss.
func dismissTask(v *visit) error {
	key := v.r.PathValue("key")
	if _, err := v.api.Dismiss(v.ctx, key); err != nil {
		return err
	}
	return redirect("/tasks/" + url.PathEscape(key))
}
