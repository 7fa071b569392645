package console

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// showTimer is GET /timers/{id}.
func showTimer(v *visit) error {
	id := v.r.PathValue("id")
	d := timerData{}
	err := into(&d.Timer)(v.api.Get(v.ctx, id))
	var problem *client.Error
	if gone := errors.As(err, &problem) && problem.Status == http.StatusNotFound; err != nil && !gone {
		return err
	} else if gone {
		// A deleted timer is still what it was.
		vs, err2 := v.api.Versions(v.ctx, id, 20)
		if err2 != nil || len(vs) == 0 {
			return err
		}
		d.Timer, d.Gone = vs[0], true
	}
	v.timer, v.app = d.Timer.Schedule.TimeZone, d.Timer.App
	err = together(
		func() error {
			vs, err := v.api.Versions(v.ctx, id, 20)
			d.Versions = changes(vs)
			return err
		},
		func() (err error) {
			if !d.Gone {
				d.Dues, err = v.api.Upcoming(v.ctx, id, 20)
			}
			return err
		},
		func() error {
			p, err := v.api.Preview(v.ctx, d.Timer.Schedule, 1, v.Now)
			if err == nil {
				d.Preview = *p
			}
			return nil // a schedule that was taken once may be none today
		},
		func() error {
			return into(&d.Tasks)(v.api.TaskPage(v.ctx, client.TaskFilter{TimerID: id}, 50, v.query("cursor")))
		},
	)
	if err != nil {
		return err
	}
	if d.Tasks.NextCursor != "" {
		d.Older = withQuery(v.r.URL, "cursor", d.Tasks.NextCursor)
	}
	for _, t := range slices.Backward(d.Tasks.Tasks) {
		d.Chart.add(&t)
	}
	title := d.Timer.Name
	if title == "" {
		title = d.Timer.ID
	}
	return v.show("timer", title, &d)
}

type timerData struct {
	Timer    client.Timer
	Gone     bool
	Dues     []time.Time
	Preview  client.Preview // zero: there is none
	Tasks    client.TaskList
	Older    string
	Versions []versionData
	Chart    runsChart
}

// Definition is the timer as it was sent, for reading; secrets of headers hidden.
func (d *timerData) Definition() string {
	def := d.Timer.Definition
	def.Callback.Headers = hidden(def.Callback.Headers)
	b, err := json.MarshalIndent(def, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// HasHidden reports whether a header of the callback is hidden.
func (d *timerData) HasHidden() bool {
	return !maps.Equal(d.Timer.Callback.Headers, hidden(d.Timer.Callback.Headers))
}

// dots stand for a secret.
const dots = "••••••"

// hidden has dots for the values of headers that are likely secrets: somebody
// may look over the shoulder.
func hidden(headers map[string]string) map[string]string {
	out := maps.Clone(headers)
	for name := range out {
		n := strings.ToLower(name)
		for _, word := range []string{"authorization", "cookie", "token", "secret", "key", "password"} {
			if strings.Contains(n, word) {
				out[name] = dots
			}
		}
	}
	return out
}

// runsChart is the last tasks: their dues, the lateness of what succeeded and of the rest,
// and a mark for each task that has no lateness, as its request never reached its target.
type runsChart struct{ Due, Good, Bad, Unsent []*float64 }

// add adds a task that has ended, or was called.
func (c *runsChart) add(t *client.Task) {
	if len(t.Attempts) == 0 && isOpen(t) {
		return
	}
	x := float64(t.Due.UnixMilli()) / 1000
	var good, bad, unsent *float64
	switch {
	case t.LatenessMS == nil:
		unsent = new(1.0)
	case t.Status == client.Succeeded:
		good = t.LatenessMS
	default:
		bad = t.LatenessMS
	}
	c.Due, c.Good, c.Bad, c.Unsent = append(c.Due, &x), append(c.Good, good), append(c.Bad, bad), append(c.Unsent, unsent)
}

// Columns for uPlot.
func (c *runsChart) Columns() [][]*float64 { return [][]*float64{c.Due, c.Good, c.Bad, c.Unsent} }

// versionData is one version, with what it changed.
type versionData struct {
	Version int
	At      time.Time
	Status  string
	By      string // the name of the token; "": not known
	Changes []fieldChange
}

type fieldChange struct{ Field, Was, Is string }

// changes says of each version what it changed in the one before it.
func changes(vs []client.Timer) []versionData {
	out := make([]versionData, len(vs))
	for i := range vs {
		t := &vs[i]
		out[i] = versionData{Version: t.Version, At: t.UpdatedAt, Status: t.Status, By: t.UpdatedBy}
		if i+1 == len(vs) {
			continue
		}
		is, was := flat(t), flat(&vs[i+1])
		fields := slices.Sorted(maps.Keys(is))
		for f := range was {
			if _, ok := is[f]; !ok {
				fields = append(fields, f)
			}
		}
		for _, f := range fields {
			if is[f] != was[f] {
				out[i].Changes = append(out[i].Changes, fieldChange{f, was[f], is[f]})
			}
		}
	}
	return out
}

// flat is a timer's definition and status as "callback.url" → value.
func flat(t *client.Timer) map[string]string {
	def := t.Definition
	def.Callback.Headers = hidden(def.Callback.Headers)
	out := map[string]string{"status": t.Status}
	if t.Reason != "" {
		out["reason"] = t.Reason
	}
	flatten(out, "", tree(def))
	return out
}

func flatten(out map[string]string, at string, v any) {
	if m, ok := v.(map[string]any); ok {
		for k, x := range m {
			flatten(out, strings.TrimPrefix(at+"."+k, "."), x)
		}
		return
	}
	if s, ok := v.(string); ok {
		out[at] = s
		return
	}
	b, _ := json.Marshal(v) // it was JSON a moment ago
	out[at] = string(b)
}

// tree is a value as its JSON reads.
func tree(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	var out any
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber() // a body may have numbers that a float64 would round
	if err := d.Decode(&out); err != nil {
		panic("BUG: " + err.Error())
	}
	return out
}

func text(v any) string {
	b, _ := json.Marshal(v) // it came from JSON
	return string(b)
}

func timerPath(id string) string { return "/timers/" + url.PathEscape(id) }
