package console

import (
	"net/http"
	"strings"

	"xtimer/httpapi/client"
)

// showLive is GET /live: the newest tasks; app.js adds those that end from then on.
func showLive(v *visit) error {
	d := liveData{App: v.query("app"), TimerID: v.query("timer_id"), Status: v.query("status")}
	f := client.TaskFilter{App: d.App, TimerID: d.TimerID}
	if d.Status != "" {
		f.Statuses = []string{d.Status}
	}
	if err := into(&d.List)(v.api.TaskPage(v.ctx, f, 50, v.query("cursor"))); err != nil {
		return err
	}
	if d.List.NextCursor != "" {
		d.Older = withQuery(v.r.URL, "cursor", d.List.NextCursor)
	}
	d.Events = "/live/events?" + v.r.URL.RawQuery
	return v.show("live", v.T("Live"), &d)
}

type liveData struct {
	App, TimerID, Status string
	List                 client.TaskList
	Older, Events        string
}

// liveEvents is GET /live/events: the API's stream, with the visitor's token. HEAD is that of
// the API, which opens no stream.
func liveEvents(v *visit) error {
	q := v.r.URL.Query()
	for name := range q {
		if v.query(name) == "" || !strings.Contains(" app timer_id status ", " "+name+" ") {
			q.Del(name)
		}
	}
	r, err := http.NewRequestWithContext(v.ctx, v.r.Method, "http://xtimer/v1/tasks/stream?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	if last := v.r.Header.Get("Last-Event-ID"); last != "" { // the browser comes back
		r.Header.Set("Last-Event-ID", last)
	}
	resp, err := v.c.cfg.API.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	v.w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	v.w.Header().Set("X-Accel-Buffering", "no")
	v.w.WriteHeader(resp.StatusCode)
	flush, _ := v.w.(http.Flusher)
	b := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(b)
		if n > 0 {
			if _, err := v.w.Write(b[:n]); err != nil {
				return nil // the visitor went away
			}
			flush.Flush()
		}
		if err != nil {
			return nil // the server ends: the browser will ask again
		}
	}
}
