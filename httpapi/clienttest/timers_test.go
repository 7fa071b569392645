package client_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi/client"
)

// full is a timer in which every field that can be is set, and not by default.
func full() client.Definition {
	return client.Definition{
		App: "a", Name: "full / é",
		Schedule: client.Schedule{
			Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai", MaxRuns: 7, Jitter: 1500 * time.Millisecond,
			StartAt: time.Date(2030, 1, 1, 0, 0, 0, 250e6, time.UTC), EndAt: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC),
		},
		Callback: client.Callback{
			URL: "http://127.0.0.1:1/?a=b&c=<d>", Method: "PUT", Headers: map[string]string{"X-A": "b"},
			Body: json.RawMessage(`{"n":12345678901234567890,"h":"<&>"}`), Timeout: 90 * time.Second, Success: "200,300-399",
		},
		Retry: client.Retry{
			MaxAttempts: 2, Backoff: 5 * time.Millisecond, Multiplier: 1.5, MaxBackoff: time.Hour, Jitter: new(0.0), MaxAge: 36 * time.Hour,
		},
		Misfire: client.Misfire{Policy: "all", Window: new(time.Duration(0))},
		Overlap: "queue", Delivery: "at_most_once", Priority: new(0), StaleAfter: client.Duration(5 * time.Second),
		Labels: map[string]string{"team": "a", "empty": ""},
	}
}

// TestWhatIsSentComesBack: every field, zeros that say something among them; and
// to put back what was got changes nothing.
func TestWhatIsSentComesBack(t *testing.T) {
	c := newClient(t)
	text, none, at := "", time.Duration(0), full()
	at.Schedule = client.Schedule{At: time.Date(2030, 1, 1, 0, 0, 0, 1, time.UTC)} // not a whole ms
	delay, bytes := full(), full()
	delay.Schedule = client.Schedule{Delay: &none}
	delay.Callback.Body, delay.Callback.BodyText = nil, &text
	bytes.Schedule = client.Schedule{Every: 250 * time.Millisecond}
	bytes.Callback.Body, bytes.Callback.BodyBase64 = nil, []byte{}
	for i, d := range []client.Definition{full(), at, delay, bytes} {
		d.Name += fmt.Sprint(i)
		made, err := c.Put(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		if made.Result != client.Created {
			t.Errorf("%s", made.Result)
		}
		got, err := c.GetByName(t.Context(), d.App, d.Name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Schedule.At.Nanosecond() == 1 {
			d.Schedule.At = d.Schedule.At.Add(time.Millisecond - 1) // never early
		}
		if !reflect.DeepEqual(got.Definition, d) {
			t.Errorf("sent %+v\n got %+v", d, got.Definition)
		}
		if d.Schedule.Delay != nil {
			continue // one that is over is armed again
		}
		again, err := c.Put(t.Context(), got.Definition)
		if err != nil || again.Result != client.Unchanged || again.Timer.Version != 1 {
			t.Errorf("%+v, %v", again, err)
		}
	}
}

func TestWireForms(t *testing.T) {
	var s client.Schedule
	err := json.Unmarshal([]byte(`{"every":1500,"at":1763658000250,"jitter":"1h30m","delay":"0s","start_at":"2026-11-20T18:00:00.25+01:00","new_field":1}`), &s)
	if err != nil || s.Every != 1500*time.Millisecond || s.At.UnixMilli() != 1763658000250 || s.Jitter != 90*time.Minute ||
		s.Delay == nil || !s.StartAt.Equal(time.Date(2026, 11, 20, 17, 0, 0, 250e6, time.UTC)) {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{`{"every":"soon"}`, `{"every":1.5}`, `{"every":9223372036854775807}`, `{"at":"noon"}`, `{"delay":true}`} {
		if json.Unmarshal([]byte(bad), new(client.Schedule)) == nil {
			t.Errorf("%s was read", bad)
		}
	}
	for d, want := range map[time.Duration]string{24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 10 * time.Second: "10s"} {
		b, err := json.Marshal(client.Schedule{Every: d})
		if err != nil || string(b) != `{"every":"`+want+`"}` {
			t.Errorf("%s, %v", b, err)
		}
	}
}

// TestTheTypesAreTheDocuments: each type has the fields of its schema, no more
// and no less.
func TestTheTypesAreTheDocuments(t *testing.T) {
	b, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for schema, v := range map[string]any{
		"TimerInput": client.Definition{}, "ScheduleInput": client.Schedule{}, "CallbackInput": client.Callback{}, "RetryInput": client.Retry{},
		"MisfireInput": client.Misfire{}, "Timer": client.Timer{}, "TimerList": client.TimerList{}, "PutResult PutDryRun": client.PutResult{},
		"Task": client.Task{}, "Attempt": client.Attempt{}, "Phases": client.Phases{}, "TaskList": client.TaskList{}, "Operation": client.Operation{},
		"Preview": client.Preview{}, "Stats": client.Stats{}, "Version": client.Version{}, "Backup": client.Backup{},
		"Coming": client.Coming{}, "FailureList": client.Failures{}, "Trend": client.Trend{}, "System": client.System{}, "TokenGrant": client.Grant{},
		"Cluster": client.Cluster{}, "Node": client.Node{},
	} {
		var names []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				names = append(names, name)
			}
		}
		fields := map[string]bool{}
		for one := range strings.FieldsSeq(schema) {
			if doc.Components.Schemas[one].Properties == nil {
				t.Errorf("there is no schema %s", one)
			}
			for name := range doc.Components.Schemas[one].Properties {
				fields[name] = true
			}
		}
		for name := range fields {
			if i := slices.Index(names, name); i >= 0 {
				names = slices.Delete(names, i, i+1)
			} else {
				t.Errorf("%s lacks %s", schema, name)
			}
		}
		if len(names) > 0 {
			t.Errorf("%s has no %v", schema, names)
		}
	}
}

func TestChanges(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	first, err := c.Create(ctx, hourly("n"), client.IdempotencyKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Create(ctx, hourly("n")); err != nil || again.Result != client.Unchanged || again.Timer.ID != first.Timer.ID {
		t.Errorf("%+v, %v", again, err)
	}
	other := hourly("n")
	other.Priority = new(1)
	if _, err := c.Create(ctx, other); !hasCode(err, http.StatusConflict) {
		t.Errorf("%v", err)
	}
	if _, err := c.Put(ctx, other, client.IfMatch(7)); !hasCode(err, http.StatusPreconditionFailed) {
		t.Errorf("%v", err)
	}
	dry, err := c.Put(ctx, other, client.IfMatch(1), client.DryRun())
	if err != nil || dry.Result != client.Updated || dry.Timer.ID != "" {
		t.Errorf("%+v, %v", dry, err)
	}
	put, err := c.Put(ctx, other, client.IfMatch(1))
	if err != nil || put.Result != client.Updated || *put.Timer.Priority != 1 {
		t.Errorf("%+v, %v", put, err)
	}
	patched, err := c.Patch(ctx, first.Timer.ID, map[string]any{"priority": nil, "schedule": map[string]any{"every": "2h"}}, client.IfMatch(2))
	if err != nil || *patched.Priority != 5 || patched.Schedule.Every != 2*time.Hour {
		t.Errorf("%+v, %v", patched, err)
	}
	var stale *client.Error
	if _, err := c.Run(ctx, first.Timer.ID, client.IfMatch(2)); !errors.As(err, &stale) || stale.Status != http.StatusPreconditionFailed {
		t.Errorf("%v", err)
	}
	off, err := c.Disable(ctx, first.Timer.ID, client.Disabling{Reason: "why", Until: time.Now().Add(time.Hour)}, client.IfMatch(3))
	if err != nil || off.Status != client.Disabled || off.Reason != "why" || off.DisabledUntil.IsZero() {
		t.Errorf("%+v, %v", off, err)
	}
	if on, err := c.Enable(ctx, first.Timer.ID, client.CatchUpLatest, client.IfMatch(4)); err != nil || on.Status != client.Enabled {
		t.Errorf("%+v, %v", on, err)
	}
	if dues, err := c.Upcoming(ctx, first.Timer.ID, 3); err != nil || len(dues) != 3 || dues[2].Sub(dues[1]) != 2*time.Hour {
		t.Errorf("%v, %v", dues, err)
	}
	if _, err := c.DeleteByName(ctx, "a", "n", client.IfMatch(1)); !hasCode(err, http.StatusPreconditionFailed) {
		t.Errorf("%v", err)
	}
	if did, err := c.DeleteByName(ctx, "a", "n"); err != nil || did != client.Cancelled {
		t.Errorf("%s, %v", did, err)
	}
	if _, err := c.Get(ctx, first.Timer.ID); !client.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	if _, err := c.Put(ctx, client.Definition{App: "a"}); err == nil {
		t.Error("a timer without a name was put")
	}
	p, err := c.Preview(ctx, client.Schedule{Cron: "0 9 * * *"}, 2, time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || len(p.Dues) != 2 || !p.Dues[0].Equal(time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)) || p.Sentence == "" {
		t.Errorf("%+v, %v", p, err)
	}
	keyed := hourly("keyed")
	keyed.Flow = []string{"stripe"}
	p, err = c.PreviewTimer(ctx, keyed, 2, time.Time{})
	if err != nil || len(p.Warnings) != 1 || p.Warnings[0].Code != "flow_undefined" || p.Warnings[0].Flow != "stripe" {
		t.Errorf("%+v, %v", p, err)
	}
	if put, err := c.Put(ctx, keyed, client.DryRun()); err != nil || !slices.Equal(put.Warnings, p.Warnings) {
		t.Errorf("%+v, %v", put, err)
	}
}

// TestMany: more than a batch, more than a page.
func TestMany(t *testing.T) {
	c, ctx := newClient(t), t.Context()
	const n = 1_100
	all := func(yield func(client.Definition) bool) {
		for i := range n {
			d := hourly(fmt.Sprintf("n%04d", i))
			if i == 1050 {
				d.Schedule.Every = time.Millisecond // refused
			}
			if !yield(d) {
				return
			}
		}
	}
	i := 0
	for r, err := range c.CreateAll(ctx, all) {
		if err != nil {
			t.Fatal(err)
		}
		if (r.Error != nil) != (i == 1050) || r.Error != nil && (r.ID != "" || r.Error.Fields[0].Field != "schedule.every") {
			t.Fatalf("%d: %+v", i, r)
		}
		i++
	}
	if i != n {
		t.Fatalf("%d outcomes", i)
	}
	again, err := c.CreateBatch(ctx, []client.Definition{hourly("n0000"), {App: "a"}})
	if err != nil || again[0].Status != 200 || again[1].Error == nil || again[1].Error.Status != 422 {
		t.Errorf("%+v, %v", again, err)
	}

	seen := map[string]bool{}
	for tm, err := range c.Timers(ctx, client.TimerFilter{App: "a", NamePrefix: "n0", Status: client.Enabled}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[tm.Name] = true
	}
	if len(seen) != 1_000 {
		t.Errorf("%d timers on all pages", len(seen))
	}
	for range c.Timers(ctx, client.TimerFilter{}) {
		break // a reader may leave
	}
	page, err := c.TimerPage(ctx, client.TimerFilter{}, 7, "")
	if err != nil || len(page.Timers) != 7 || page.NextCursor == "" {
		t.Errorf("%+v, %v", page, err)
	}

	if _, err := c.DeleteAll(ctx, client.TimerFilter{}); !hasCode(err, http.StatusBadRequest) {
		t.Errorf("everything was to be deleted without saying so: %v", err)
	}
	op, err := c.DeleteAll(ctx, client.TimerFilter{All: true}, client.DryRun())
	if err != nil || op.Count != n-1 || !op.DryRun || !op.Ended {
		t.Errorf("%+v, %v", op, err)
	}
	if op, err = c.DeleteAll(ctx, client.TimerFilter{All: true}); err != nil || !op.Ended || op.Done != n-1 || op.Failed != 0 {
		t.Errorf("%+v, %v", op, err)
	}
}

// TestWait: more than 10,000 go on after the answer.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, step{status: 202, body: `{"id":"7","ended":false}`}, step{status: 200, body: `{"id":"7","done":1,"ended":false}`},
			step{status: 503}, step{status: 200, body: `{"id":"7","done":2,"ended":true}`})
		op, err := c.EnableAll(t.Context(), client.TimerFilter{All: true})
		if err != nil {
			t.Fatal(err)
		}
		var told []int64
		op, err = c.Wait(t.Context(), op, func(op *client.Operation) { told = append(told, op.Done) })
		if err != nil || !op.Ended || !slices.Equal(told, []int64{1, 2}) || s.seen[3].URL.Path != "/v1/operations/7" {
			t.Errorf("%+v, %v, told %v", op, err, told)
		}
	})
}

// TestBatchesFit: no batch has more timers or bytes than the server takes.
func TestBatchesFit(t *testing.T) {
	var counts []int
	c, err := client.New("http://xtimer.test", client.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		b, err := io.ReadAll(r.Body)
		n := bytes.Count(b, []byte("\n"))
		if err != nil || len(b) > 8<<20 || n > 1000 || r.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%d timers in %d bytes, %v", n, len(b), err)
		}
		counts = append(counts, n)
		results := strings.Repeat(`{"status":201,"id":"1"},`, n)
		return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(`{"results":[` + results[:len(results)-1] + `]}`))}, nil
	})}))
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 400_000)
	n := 0
	for r, err := range c.CreateAll(t.Context(), func(yield func(client.Definition) bool) {
		for i := range 2_025 {
			d := hourly("n")
			if i >= 2_000 {
				d.Callback.BodyText = &big
			}
			if !yield(d) {
				return
			}
		}
	}) {
		if n++; err != nil || r.ID != "1" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if n != 2_025 || !slices.Equal(counts, []int{1000, 1000, 20, 5}) {
		t.Errorf("%d outcomes, batches of %v", n, counts)
	}
}

func TestFilters(t *testing.T) {
	c, s := scripted(t, step{status: 200, body: "{}"})
	at := time.Date(2026, 11, 20, 17, 0, 0, 250e6, time.UTC)
	_, err := c.TaskPage(t.Context(), client.TaskFilter{App: "a b", TimerID: "7", Statuses: []string{"failed", "dead"}, From: at, To: at.Add(time.Hour), Origin: "manual"}, 3, "c")
	const tasks = "app=a+b&cursor=c&from=2026-11-20T17%3A00%3A00.250Z&limit=3&origin=manual&status=failed%2Cdead&timer_id=7&to=2026-11-20T18%3A00%3A00.250Z"
	if got := s.seen[0].URL.RawQuery; err != nil || got != tasks {
		t.Errorf("%s, %v", got, err)
	}
	_, err = c.DisableAll(t.Context(), client.TimerFilter{App: "a", NamePrefix: "n/", Status: "enabled", Label: "t=a,e!=b"}, client.Disabling{}, client.DryRun())
	if got := s.seen[1].URL.RawQuery; err != nil || got != "app=a&dry_run=true&label=t%3Da%2Ce%21%3Db&name_prefix=n%2F&status=enabled" {
		t.Errorf("%s, %v", got, err)
	}
}
