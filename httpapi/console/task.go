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

// bar is one attempt on the time axis from the due to the end, in per cent.
type bar struct {
	client.Attempt
	After     float64 // ms from the due to its start
	WaitX, W  float64 // the wait before it: where it begins, how wide
	CallX, CW float64 // the call
	Label     string
	Bad       bool
}

// waterfall lays the attempts of a task out in time.
func waterfall(t *client.Task) []bar {
	if len(t.Attempts) == 0 {
		return nil
	}
	last := t.Attempts[len(t.Attempts)-1]
	span := max(float64(last.Started.Sub(t.Due))/1e6+last.TookMS, 0.001)
	if t.LatenessMS != nil && len(t.Attempts) == 1 {
		span = max(*t.LatenessMS+last.TookMS, 0.001)
	}
	bars := make([]bar, len(t.Attempts))
	before := 0.0
	for i, a := range t.Attempts {
		after := float64(a.Started.Sub(t.Due)) / 1e6
		if i == 0 && t.LatenessMS != nil {
			after = *t.LatenessMS // exact to the µs
		}
		after = max(after, 0)
		b := bar{Attempt: a, After: after, Bad: a.ErrorClass != ""}
		b.WaitX, b.W = percent(before, span), percent(max(after-before, 0), span)
		b.CallX, b.CW = percent(after, span), max(percent(a.TookMS, span), 0.4)
		b.CallX = min(b.CallX, 100-b.CW)
		switch {
		case a.ErrorClass == "status" || a.ErrorClass == "":
			b.Label = fmt.Sprint(a.Code)
		default:
			b.Label = a.ErrorClass
		}
		bars[i] = b
		before = after + a.TookMS
	}
	return bars
}

func percent(x, of float64) float64 { return min(100, float64(int(x/of*10000))/100) }

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
