package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// operations are the operations of the server's OpenAPI document: id → what a
// request has to look like.
func operations(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	b, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	all := map[string]*regexp.Regexp{}
	variable := regexp.MustCompile(`\\\{\w+\\\}`)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			pattern := variable.ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
			all[op.OperationID] = regexp.MustCompile("^" + strings.ToUpper(method) + " " + pattern + "$")
		}
	}
	return all
}

// watch notes the requests that a client makes.
type watch struct {
	mu   sync.Mutex
	seen []string
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.seen = append(w.seen, r.Method+" "+r.URL.EscapedPath())
	w.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// alone makes a call that a server without nodes refuses.
func alone(call func() error) func() error {
	return func() error {
		if err := call(); !client.IsNotFound(err) {
			return fmt.Errorf("a server that is alone answers %w", err)
		}
		return nil
	}
}

// TestTheClientKnowsEveryOperation: each operation of the document is there as a
// method, makes that request, and understands the answer.
func TestTheClientKnowsEveryOperation(t *testing.T) {
	w := &watch{}
	c := newClient(t, client.WithHTTPClient(&http.Client{Transport: w}))
	ctx := t.Context()
	put, err := c.Put(ctx, hourly("first"))
	if err != nil {
		t.Fatal(err)
	}
	id := put.Timer.ID
	made, err := c.Create(ctx, hourly("second"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.Run(ctx, id) // its target refuses connections
	if err != nil {
		t.Fatal(err)
	}
	f := client.TimerFilter{App: "a", NamePrefix: "none"}

	calls := map[string]func() error{
		"createTimer": func() error { _, err := c.Create(ctx, hourly("third")); return err },
		"listTimers":  func() error { return drain(c.Timers(ctx, f)) },
		"createTimers": func() error {
			_, err := c.CreateBatch(ctx, []client.Definition{hourly("fourth")})
			return err
		},
		"enableTimers":  func() error { _, err := c.EnableAll(ctx, f); return err },
		"disableTimers": func() error { _, err := c.DisableAll(ctx, f, client.Disabling{Reason: "r"}); return err },
		"deleteTimers":  func() error { _, err := c.DeleteAll(ctx, f); return err },
		"getOperation": func() error {
			op, err := c.DisableAll(ctx, client.TimerFilter{NamePrefix: "first"}, client.Disabling{})
			if err != nil || op.Count != 1 {
				t.Fatalf("%+v, %v", op, err)
			}
			_, err = c.Operation(ctx, op.ID)
			return err
		},
		"getTimerByName":    func() error { _, err := c.GetByName(ctx, "a", "first"); return err },
		"putTimer":          func() error { _, err := c.Put(ctx, hourly("first")); return err },
		"deleteTimerByName": func() error { _, err := c.DeleteByName(ctx, "a", "second"); return err },
		"getTimer":          func() error { _, err := c.Get(ctx, id); return err },
		"patchTimer":        func() error { _, err := c.Patch(ctx, id, map[string]any{"priority": 1}); return err },
		"deleteTimer": func() error {
			p, err := c.Put(ctx, hourly("to delete"))
			if err != nil {
				return err
			}
			_, err = c.Delete(ctx, p.Timer.ID)
			return err
		},
		"enableTimer": func() error { _, err := c.Enable(ctx, id, client.CatchUpNone); return err },
		"disableTimer": func() error {
			_, err := c.Disable(ctx, id, client.Disabling{Until: time.Now().Add(time.Hour)})
			return err
		},
		"runTimer":  func() error { _, err := c.Run(ctx, id, client.Force()); return err },
		"upcoming":  func() error { _, err := c.Upcoming(ctx, id, 3); return err },
		"preview":   func() error { _, err := c.Preview(ctx, client.Schedule{Cron: "@daily"}, 3, time.Time{}); return err },
		"listTasks": func() error { return drain(c.Tasks(ctx, client.TaskFilter{App: "a"})) },
		"streamTasks": func() error {
			for _, err := range c.Stream(ctx, client.TaskFilter{Statuses: []string{"nonsense"}}) {
				if !strings.Contains(err.Error(), "nonsense") {
					return err
				}
			}
			return nil
		},
		"retryTasks": func() error {
			_, err := c.RetryAll(ctx, client.TaskFilter{TimerID: made.Timer.ID}, client.DryRun())
			return err
		},
		"getTask": func() error { _, err := c.Task(ctx, key); return err },
		"retryTask": func() error {
			if err := c.Retry(ctx, key); !hasCode(err, http.StatusConflict) {
				t.Errorf("a task that is not dead was retried: %v", err)
			}
			return nil
		},
		"dismissTask": func() error {
			if _, err := c.Dismiss(ctx, key); !hasCode(err, http.StatusConflict) {
				t.Errorf("a task that did not fail was dismissed: %v", err)
			}
			return nil
		},
		"backup": func() error {
			_, err := c.Backup(ctx) // memory tiers cannot be copied
			if e := (*client.Error)(nil); errors.As(err, &e) {
				return nil
			}
			return err
		},
		"timerVersions": func() error { _, err := c.Versions(ctx, id, 2); return err },
		"coming":        func() error { _, err := c.Coming(ctx, "a", time.Now(), 10); return err },
		"upcomingHours": func() error {
			f, err := c.UpcomingHours(ctx, "a", 24)
			if err == nil && (len(f.Hours) != 24 || !f.Exact || f.Timers < 1 || f.Hours[1].Dues < 1) {
				t.Errorf("%+v", f)
			}
			return err
		},
		"listApps": func() error {
			p, err := c.Apps(ctx, "a", 0, "")
			if err == nil && (len(p.Apps) != 1 || p.Apps[0].App != "a" || p.Apps[0].Timers.Enabled < 1) {
				t.Errorf("%+v", p)
			}
			return err
		},
		"listFailures": func() error { _, err := c.Failures(ctx, client.TaskFilter{App: "a"}); return err },
		"getTrend":     func() error { _, err := c.Trend(ctx, 3); return err },
		"resetClock":   func() error { _, err := c.ResetClock(ctx, client.DryRun()); return err },
		"getCluster":   func() error { _, err := c.Cluster(ctx); return err },
		"drainNode":    alone(func() error { _, err := c.DrainNode(ctx, "n"); return err }),
		"undrainNode":  alone(func() error { _, err := c.UndrainNode(ctx, "n"); return err }),
		"evictNode":    alone(func() error { _, err := c.EvictNode(ctx, "n"); return err }),
		"getSystem":    func() error { _, err := c.System(ctx); return err },
		"getToken":     func() error { _, err := c.Grant(ctx); return err },
		"verify": func() error {
			v, err := c.Verify(ctx, client.Verification{From: time.Now().Add(-time.Minute)}, func(*client.Finding) {})
			if err == nil && v.Verdict != "proven" {
				t.Errorf("%+v", v)
			}
			return err
		},
		"getStats":   func() error { _, err := c.Stats(ctx); return err },
		"getVersion": func() error { _, err := c.Version(ctx); return err },
		"livez":      func() error { return c.Live(ctx) },
		"readyz":     func() error { return c.Ready(ctx) },
		"getMetrics": func() error { _, err := c.Metrics(ctx); return err },
		"getOpenAPI": func() error { _, err := c.OpenAPI(ctx); return err },
	}
	maps.Copy(calls, objectCalls(ctx, c))
	all := operations(t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		call := calls[id]
		if call == nil {
			t.Errorf("the client lacks %s", id)
			continue
		}
		w.seen = nil
		if err := call(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if !slices.ContainsFunc(w.seen, all[id].MatchString) {
			t.Errorf("%s made %v, not %v", id, w.seen, all[id])
		}
		delete(calls, id)
	}
	for id := range calls {
		t.Errorf("the document has no operation %s", id)
	}
}

func hasCode(err error, status int) bool {
	var e *client.Error
	return errors.As(err, &e) && e.Status == status
}

func drain[T any](seq func(func(T, error) bool)) (err error) {
	for _, e := range seq {
		err = e
	}
	return err
}
