package console

import (
	"encoding/json"
	"fmt"
	"net/url"

	"xtimer/httpapi/client"
)

// showTask is GET /tasks/{key}.
func showTask(v *visit) error {
	t, err := v.api.Task(v.ctx, v.r.PathValue("key"))
	if err != nil {
		return err
	}
	d := taskData{Task: *t, Fall: waterfall(t)}
	for i := range d.Fall {
		d.Fall[i].Phases = v.phases(d.Fall[i].PhasesUS)
	}
	switch t.Status {
	case client.Failed, client.Dead, client.Unknown:
		d.CanRetry = true
	}
	timer, err := v.api.Get(v.ctx, t.TimerID)
	if err != nil && !client.IsNotFound(err) {
		return err
	}
	if err == nil {
		d.Request = requestOf(timer)
	}
	name := t.Name
	if name == "" {
		name = t.TimerID
	}
	return v.show("task", name+" · "+stamp(t.Due), &d)
}

type taskData struct {
	Task     client.Task
	CanRetry bool
	Fall     []bar
	Request  *requestData
}

// Open: it is not over, and the page looks again by itself.
func (d *taskData) Open() bool {
	switch d.Task.Status {
	case client.Waiting, client.Running, client.Retrying:
		return true
	}
	return false
}

// requestData is the request that the timer, as it is now, makes.
type requestData struct {
	Method, URL string
	Headers     map[string]string
	Body        string
	Envelope    bool // no body was given: the default one is sent
}

const excerpt = 4096

func requestOf(t *client.Timer) *requestData {
	c := &t.Callback
	q := &requestData{Method: c.Method, URL: c.URL, Headers: hidden(c.Headers)}
	switch {
	case c.BodyText != nil:
		q.Body = *c.BodyText
	case c.BodyBase64 != nil:
		q.Body = fmt.Sprintf("%q", c.BodyBase64[:min(len(c.BodyBase64), excerpt/4)])
	case c.Body != nil:
		if raw, ok := c.Body.(json.RawMessage); ok {
			q.Body = string(raw)
		}
	default:
		q.Envelope = true
	}
	if len(q.Body) > excerpt {
		q.Body = q.Body[:excerpt] + " …"
	}
	return q
}

// retryTask is POST /tasks/{key}/retry.
func retryTask(v *visit) error {
	key := v.r.PathValue("key")
	if err := v.api.Retry(v.ctx, key); err != nil {
		return err
	}
	return redirect("/tasks/" + url.PathEscape(key))
}
