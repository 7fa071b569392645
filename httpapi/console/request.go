package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"xtimer/httpapi/client"
)

// The requests of a task: each attempt was sent what the timer said at that time.
// A task does not tell its version, so it is found by the time: the one that was
// in force when the attempt was sent. A change takes a moment to be stored, and
// what was sent within that moment may still be the former's: it is said.

// requestData is what some attempts of a task sent: all of one version.
type requestData struct {
	Version  int // of the timer; 0: it is not known any more
	From, To int // attempts; 0: none was made yet
	Maybe    int // the version it may have been as well; 0: none
	Since    int // the version that is in force now, if that is another; 0: it is not
	Same     bool
	Gone     bool // the timer is

	Method, URL string
	Headers     []header
	Hidden      bool   // the values of some headers
	Curl        string // a command that sends the same; "": the body is not a text, or cut
	Body        string // as it was sent, up to excerpt
	Cut         int    // the size of the whole body in bytes, if Body is a part of it
	Envelope    bool   // the timer has no body: the default one was sent
}

// storing is how long a change may take to be stored.
const storing = time.Second

// requests finds what the attempts of a task sent, the last one's first.
func (v *visit) requests(t *client.Task) ([]requestData, error) {
	timer, err := v.api.Get(v.ctx, t.TimerID)
	if err != nil && !client.IsNotFound(err) {
		return nil, err
	}
	if timer != nil {
		v.timer = timer.Schedule.TimeZone // in which the page shows its times
	}
	if len(t.Attempts) == 0 {
		if timer == nil || !isOpen(t) {
			return nil, nil
		}
		return []requestData{requestOf(timer, t, 1)}, nil
	}
	// Few versions tell it in most cases; each can be 1 MiB.
	var versions []client.Timer
	for _, most := range []int{5, 100} {
		versions, err = v.api.Versions(v.ctx, t.TimerID, most)
		if err != nil && !client.IsNotFound(err) {
			return nil, err
		}
		if len(versions) < most || inForce(versions, t.Attempts[0].Started) >= 0 {
			break
		}
	}
	var found []requestData
	for i := len(t.Attempts) - 1; i >= 0; i-- {
		q := requestAt(versions, t, t.Attempts[i])
		q.Gone = timer == nil
		q.From, q.To = t.Attempts[i].N, t.Attempts[i].N
		if n := len(found) - 1; n >= 0 && found[n].Version == q.Version {
			found[n].From = q.From
			found[n].Maybe = max(found[n].Maybe, q.Maybe)
			continue
		}
		found = append(found, q)
	}
	return found, nil
}

// inForce is the place of the version that was in force at a time; -1: it is not
// among them. The newest is the first.
func inForce(versions []client.Timer, at time.Time) int {
	for i := range versions {
		if !versions[i].UpdatedAt.After(at) || versions[i].Version == 1 {
			return i
		}
	}
	return -1
}

func requestAt(versions []client.Timer, t *client.Task, a client.Attempt) requestData {
	at := a.Started
	i := inForce(versions, at)
	if i < 0 {
		return requestData{}
	}
	q := requestOf(&versions[i], t, a.N)
	if i > 0 {
		q.Since, q.Same = versions[0].Version, sameRequest(&versions[0], &versions[i])
	}
	if i+1 < len(versions) && at.Sub(versions[i].UpdatedAt) < storing && !sameRequest(&versions[i], &versions[i+1]) {
		q.Maybe = versions[i+1].Version
	}
	return q
}

// sameRequest reports whether two versions send the same.
func sameRequest(a, b *client.Timer) bool {
	x, y := a.Callback, b.Callback
	x.Timeout, x.Success, y.Timeout, y.Success = 0, "", 0, ""
	return text(x) == text(y)
}

// excerpt is how much of a body a page shows, in bytes.
const excerpt = 4096

// requestOf is what an attempt of a task sends by a version of its timer.
func requestOf(timer *client.Timer, t *client.Task, attempt int) requestData {
	c := &timer.Callback
	q := requestData{Version: timer.Version, Method: c.Method, URL: c.URL}
	kind := ""
	switch {
	case c.BodyText != nil:
		q.Body, kind = *c.BodyText, "text/plain; charset=utf-8"
	case c.BodyBase64 != nil:
		q.Body, kind = string(c.BodyBase64), "application/octet-stream"
	case c.Body != nil:
		if raw, ok := c.Body.(json.RawMessage); ok {
			q.Body, kind = string(raw), "application/json"
		}
	case c.Method != http.MethodGet:
		q.Envelope, q.Body, kind = true, envelope(timer, t, attempt), "application/json"
	}
	q.Headers, q.Hidden = sentHeaders(timer, t, attempt, kind), !maps.Equal(c.Headers, hidden(c.Headers))
	text := utf8.ValidString(q.Body)
	if text && len(q.Body) <= excerpt {
		q.Curl = curl(q.Method, q.URL, q.Headers, q.Body)
	}
	if len(q.Body) > excerpt {
		q.Cut, q.Body = len(q.Body), q.Body[:excerpt]
	}
	if text {
		q.Body = strings.ToValidUTF8(q.Body, "") // the cut may have split a character
	} else {
		q.Body = fmt.Sprintf("%q", q.Body)
	}
	return q
}

// envelope is the body of an attempt whose timer has none.
func envelope(timer *client.Timer, t *client.Task, attempt int) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Task    string `json:"task"`
		Timer   string `json:"timer"`
		App     string `json:"app"`
		Name    string `json:"name"`
		Due     string `json:"due"`
		Attempt int    `json:"attempt"`
	}{t.Key, t.TimerID, timer.App, timer.Name, t.Due.UTC().Format("2006-01-02T15:04:05.000Z"), attempt})
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
