package console

import (
	"encoding/json"
	"fmt"
	"time"

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
	Headers     map[string]string
	Body        string
	Envelope    bool // no body was given: the default one is sent
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
		q := requestOf(timer)
		return []requestData{q}, nil
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
		q := requestAt(versions, t.Attempts[i].Started)
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

func requestAt(versions []client.Timer, at time.Time) requestData {
	i := inForce(versions, at)
	if i < 0 {
		return requestData{}
	}
	q := requestOf(&versions[i])
	if i > 0 {
		q.Since, q.Same = versions[0].Version, sameRequest(&versions[0], &versions[i])
	}
	if i+1 < len(versions) && at.Sub(versions[i].UpdatedAt) < storing && !sameRequest(&versions[i], &versions[i+1]) {
		q.Maybe = versions[i+1].Version
	}
	return q
}

// sameRequest tells whether two versions send the same.
func sameRequest(a, b *client.Timer) bool {
	x, y := a.Callback, b.Callback
	x.Timeout, x.Success, y.Timeout, y.Success = 0, "", 0, ""
	return text(x) == text(y)
}

const excerpt = 4096

func requestOf(t *client.Timer) requestData {
	c := &t.Callback
	q := requestData{Version: t.Version, Method: c.Method, URL: c.URL, Headers: hidden(c.Headers)}
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
