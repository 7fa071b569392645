package console

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// searchTime is how long a page looks for timers that match: the API gives short
// pages where a filter has no index, and no page waits for the whole table.
// sortTime of it goes to finding all of them, where they are to be sorted.
const (
	searchTime = 100 * time.Millisecond
	sortTime   = 60 * time.Millisecond
)

// listTimers is GET /timers.
func listTimers(v *visit) error {
	q := v.r.URL.Query()
	d := timersData{Filter: timerFilter(q), Sort: q.Get("sort"), Limit: 50, Cursor: q.Get("cursor"), url: v.r.URL}
	if n, err := strconv.Atoi(q.Get("limit")); err == nil && n >= 1 && n <= 500 {
		d.Limit = n
	}
	d.Failing = q.Get("failing") == "yes"
	d.Offset, _ = strconv.Atoi(q.Get("offset"))
	begin, whole := time.Now(), false
	if columns[strings.TrimPrefix(d.Sort, "-")] != nil {
		var err error
		if !d.Failing {
			if whole, err = d.findSorted(v, begin.Add(sortTime)); err != nil {
				return err
			}
		}
		d.PartSorted = !whole
	}
	if !whole {
		if err := d.find(v, begin.Add(searchTime)); err != nil {
			return err
		}
	}
	return v.show("timers", v.T("Timers"), &d)
}

// find finds one page, in the order of the API.
func (d *timersData) find(v *visit, end time.Time) error {
	next := d.Cursor
	d.Offset = 0
	for {
		options := []client.CallOption{client.LastTasks()}
		if d.Total == nil && !d.Failing {
			options = append(options, client.WithTotal())
		}
		l, err := v.api.TimerPage(v.ctx, d.Filter, d.Limit-len(d.Timers), next, options...)
		if err != nil {
			return err
		}
		if d.Total == nil {
			d.Total = l.Total
		}
		d.add(l)
		if next = l.NextCursor; next == "" || len(d.Timers) >= d.Limit || time.Now().After(end) {
			break
		}
	}
	if next != "" {
		d.More, d.NextPage = true, withQuery(d.url, "cursor", next, "offset", "")
	}
	d.sort()
	return nil
}

func timerFilter(q url.Values) client.TimerFilter {
	get := func(name string) string { return strings.TrimSpace(q.Get(name)) }
	return client.TimerFilter{App: get("app"), NamePrefix: get("name"), Search: get("q"), Status: get("status"), Label: get("label")}
}

type timersData struct {
	Filter     client.TimerFilter
	Sort       string // a column, "-" before it: downwards
	PartSorted bool   // of this page alone: there are too many
	Failing    bool   // only those whose last task failed
	Limit      int
	Cursor     string
	Offset     int           // of this page, among All
	All        int           // that match, if all are sorted
	Total      *client.Total // that match; nil: not counted
	Timers     []*client.Timer
	More       bool
	NextPage   string
	url        *url.URL
}

func (d *timersData) add(l *client.TimerList) {
	for i := range l.Timers {
		if t := &l.Timers[i]; !d.Failing || t.LastTask != nil && t.LastTask.Failing() {
			d.Timers = append(d.Timers, t)
		}
	}
}

// FirstPage is the list from its begin; "" on that page.
func (d *timersData) FirstPage() string {
	if d.Offset == 0 && (d.Cursor == "" || d.All > 0) {
		return ""
	}
	return withQuery(d.url, "cursor", "", "offset", "")
}

// actOnTimers is POST /timers/act: first it asks, with the count; then it does.
func actOnTimers(v *visit) error {
	f := v.r.PostForm
	d := actData{
		Action: f.Get("action"), IDs: f["id"], All: f.Get("all") == "yes", Filter: timerFilter(f),
		Reason: f.Get("reason"), Until: f.Get("until"), Back: inside(f.Get("back")),
	}
	if !slices.Contains([]string{"enable", "disable", "run", "delete"}, d.Action) {
		return &fault{http.StatusBadRequest, "Unknown action."}
	}
	if d.All {
		d.Filter.All = d.Filter == client.TimerFilter{}
		// Counting changes nothing; which action counts does not matter.
		op, err := v.api.EnableAll(v.r.Context(), d.Filter, client.DryRun())
		if err != nil {
			return err
		}
		d.Count = int(op.Count)
	} else {
		d.Count = len(d.IDs)
	}
	if d.Count == 0 {
		return noneSelected(d.Back)
	}
	if f.Get("confirmed") != "yes" || d.MustType() && !sameNumber(f.Get("typed"), d.Count) {
		d.Mistyped = f.Get("typed") != ""
		return v.show("confirm", v.T("Are you sure?"), &d)
	}
	rate := 0
	if d.Action == "run" {
		if rate, _ = strconv.Atoi(f.Get("rate")); rate < 1 || rate > mostRate {
			return &fault{http.StatusBadRequest, "The rate must be from 1 to 1000 a second."}
		}
	}
	if err := d.readUntil(v); err != nil {
		return err
	}
	w := &work{Title: v.Word(d.Action), Back: d.Back, Total: d.Count, gone: v.T("The timer was deleted.")}
	if d.All && d.Action != "run" {
		return v.start(w, func(ctx context.Context) error { return d.bulk(ctx, v.api, w) })
	}
	return v.start(w, func(ctx context.Context) error {
		ids := named(d.IDs)
		if d.All {
			ids = idsOf(v.api.Timers(ctx, d.Filter))
		}
		return w.each(ctx, ids, rate, func(id string) error { return d.one(ctx, v.api, id) })
	})
}

const (
	// mostUntyped is how many timers a click alone can change. Of more, the number has
	// to be typed: so many are no slip of the hand.
	mostUntyped = 20
	// mostRate is how many a second a person can ask for.
	mostRate = 1000
	// defaultRate is what the form offers.
	defaultRate = 50
)

// MustType reports whether the number has to be typed.
func (d *actData) MustType() bool { return d.Count > mostUntyped }

// Rate is what the form offers, in calls a second.
func (d *actData) Rate() int { return defaultRate }

// sameNumber reports whether a person typed the number, with or without separators.
func sameNumber(typed string, n int) bool {
	return strings.NewReplacer(",", "", " ", "", "\u202f", "", "\u00a0", "").Replace(typed) == strconv.Itoa(n)
}

func idsOf(timers iter.Seq2[client.Timer, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for t, err := range timers {
			if !yield(t.ID, err) {
				return
			}
		}
	}
}

type actData struct {
	Action string
	IDs    []string
	All    bool
	Filter client.TimerFilter
	Reason string
	Until  string // as the input has it
	Back   string
	Count  int

	until time.Time // zero: without an end

	Mistyped bool
}

// readUntil reads until when timers are to be disabled, in the zone that the form was
// shown in.
func (d *actData) readUntil(v *visit) (err error) {
	if d.Until == "" {
		return nil
	}
	v.timer, v.Choice = v.r.PostForm.Get("zone"), "timer"
	if d.until, err = v.wall(d.Until); err != nil {
		return &fault{http.StatusBadRequest, "The time cannot be read: write it like 2026-11-20T17:00:00."}
	}
	return nil
}

func (d *actData) one(ctx context.Context, api *client.Client, id string) (err error) {
	switch d.Action {
	case "enable":
		_, err = api.Enable(ctx, id, "")
	case "disable":
		_, err = api.Disable(ctx, id, client.Disabling{Reason: d.Reason, Until: d.until})
	case "run":
		_, err = api.Run(ctx, id)
	case "delete":
		_, err = api.Delete(ctx, id)
	}
	return err
}

// bulk has the API do it to all that match.
func (d *actData) bulk(ctx context.Context, api *client.Client, w *work) error {
	var op *client.Operation
	var err error
	switch d.Action {
	case "enable":
		op, err = api.EnableAll(ctx, d.Filter)
	case "disable":
		op, err = api.DisableAll(ctx, d.Filter, client.Disabling{Reason: d.Reason, Until: d.until})
	case "delete":
		op, err = api.DeleteAll(ctx, d.Filter)
	}
	if err != nil {
		return err
	}
	w.follow(op)
	op, err = api.Wait(ctx, op, w.follow)
	w.follow(op)
	return err
}

// actOnTimer is POST /timers/{id}/{action}.
func actOnTimer(v *visit) error {
	id := v.r.PathValue("id")
	f := v.r.PostForm
	d := actData{Action: v.r.PathValue("action"), IDs: []string{id}, Count: 1, Reason: f.Get("reason"), Until: f.Get("until"), Back: timerPath(id)}
	switch d.Action {
	case "delete":
		if v.r.PostForm.Get("confirmed") != "yes" {
			return v.show("confirm", v.T("Are you sure?"), &d)
		}
		if err := d.one(v.ctx, v.api, id); err != nil {
			return err
		}
		return redirect("/timers")
	case "run":
		key, err := v.api.Run(v.ctx, id)
		if err != nil {
			return err
		}
		return redirect("/tasks/" + url.PathEscape(key))
	case "enable", "disable":
		if err := d.readUntil(v); err != nil {
			return err
		}
		if err := d.one(v.ctx, v.api, id); err != nil {
			return err
		}
		return redirect("/timers/" + url.PathEscape(id))
	}
	return nothing(v)
}

// follow shows how far the API's own operation has come.
func (w *work) follow(op *client.Operation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = true
	w.Total, w.done, w.failed, w.err = int(op.Count), int(op.Done), int(op.Failed), op.Error
}
