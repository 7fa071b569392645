package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// until waits for something that other processes do.
func (s *shell) until(done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatal("it did not come about within a minute")
		}
	}
}

func TestTimerCommands(t *testing.T) {
	s := newShell(t)
	create := []string{
		"timer", "create", "--app", "a", "--name", "n/é", "--cron", "0 9 * * *", "--time-zone", "Asia/Shanghai", "--url", "http://127.0.0.1:1/x", "--method", "PUT",
		"--header", "X-A: b: c", "--header", "X-B:d", "--body", `{"k":"<"}`, "--timeout", "30s", "--success", "200", "--max-attempts", "2", "--overlap", "skip",
		"--delivery", "at_most_once", "--priority", "0", "--jitter", "2s", "--backoff", "2s", "--misfire", "skip", "--misfire-window", "1h", "--stale-after", "5s", "--label", "team=a", "--label", "empty=", "--start-at", "2030-01-01T00:00:00Z", "--end-at", "1924992000000", "--max-runs", "9",
	}
	s.run("", append(create, "--zone", "timer")...).want(0, "a/n/é created: ", "due 2030-01-01T09:00:0")
	s.run("", create...).want(0, "a/n/é unchanged: ")
	var got api.Timer
	if err := json.Unmarshal([]byte(s.do("timer", "get", "a/n/é", "-o", "json")), &got); err != nil {
		t.Fatal(err)
	}
	want := api.Definition{
		App: "a", Name: "n/é",
		Schedule: api.Schedule{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai", StartAt: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), EndAt: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), MaxRuns: 9, Jitter: 2 * time.Second},
		Callback: api.Callback{
			URL: "http://127.0.0.1:1/x", Method: "PUT", Headers: map[string]string{"X-A": "b: c", "X-B": "d"}, Body: json.RawMessage(`{"k":"<"}`),
			Timeout: 30 * time.Second, Success: "200",
		},
		Retry: api.Retry{MaxAttempts: 2, Backoff: 2 * time.Second}, Misfire: api.Misfire{Policy: "skip", Window: new(time.Hour)}, Overlap: "skip", Delivery: "at_most_once", Priority: new(0), StaleAfter: api.Duration(5 * time.Second), Labels: map[string]string{"team": "a", "empty": ""},
	}
	if changes, err := definition.Diff(want, got.Definition); err != nil || changes != nil {
		t.Errorf("%v, %v", changes, err)
	}
	for _, more := range [][]string{{"--every", "250ms", "--body-text", ""}, {"--delay", "7d"}, {"--at", "30m"}} {
		s.do(append([]string{"timer", "create", "--app", "b", "--name", more[0] + more[1], "--url", "http://127.0.0.1:1/"}, more...)...)
	}
	s.run("", "timer", "get", "b/--delay7d").want(0, "after 7d")

	s.run("", "timer", "list", "--app", "a", "-l", "team=a", "--utc").want(0, "a/n/é  enabled  0 9 * * * Asia/Shanghai  2030-01-01T01:00:0")
	if out := s.do("timer", "list", "--app", "none", "-o", "json"); !strings.Contains(out, `"timers": []`) {
		t.Errorf("none is %s", out)
	}
	r := s.run("", "timer", "list", "--limit", "2")
	if r.want(0, "first 2", "--limit 0"); strings.Count(r.out, "\n") != 3 {
		t.Errorf("%s", r.out)
	}
	s.run("", "timer", "upcoming", got.ID, "--n", "2", "--zone", "timer").want(0, "2030-01-01T09:00:0", "2030-01-02T09:00:0", "+08:00")
	s.run("", "timer", "disable", "a/n/é", "--reason", "why", "--until", "1h").want(0, "disabled")
	s.run("", "timer", "get", "a/n/é").want(0, "reason    why", "until")
	s.run("", "timer", "enable", "a/n/é", "--catch-up", "latest").want(0, "enabled")

	s.run("", "timer", "disable", "--app", "b", "--dry-run").want(0, "3 would be disabled.")
	s.run("", "timer", "disable", "--app", "b").want(0, "3 disabled.")
	s.run("", "timer", "enable", "--app", "b", "--status", "disabled").want(0, "3 enabled.")
	s.run("", "timer", "delete", "b/--at30m").want(0, "cancelled")
	s.run("\n", "timer", "delete", "--app", "b").want(exit.StatusFailed, "Delete 2 timers? [y/N]", "nothing was changed")
	s.run("", "timer", "delete", "--app", "b", "--yes").want(0, "2 deleted.")
	s.run("yes\n", "timer", "delete", "--all").want(0, "1 deleted.")
	s.run("", "timer", "delete", "--all").want(0, "0 deleted.") // nothing to ask about
}

func TestTaskCommands(t *testing.T) {
	s := newShell(t)
	s.do("timer", "create", "--app", "a", "--name", "good", "--cron", "0 0 1 1 *", "--url", target(t, 200))
	s.do("timer", "create", "--app", "a", "--name", "bad", "--cron", "0 0 1 1 *", "--url", target(t, 404))
	good := strings.TrimSpace(s.do("timer", "run", "a/good"))
	bad := strings.TrimSpace(s.do("timer", "run", "a/bad"))
	s.until(func() bool { return strings.Contains(s.do("task", "get", good), "succeeded") })
	s.until(func() bool { return strings.Contains(s.do("task", "get", bad), "failed") })
	s.run("", "task", "get", bad).want(0, "timer   a/bad", "origin  manual", "ATTEMPT", "404")

	only := func(key string, args ...string) {
		t.Helper()
		var list api.TaskList
		if err := json.Unmarshal([]byte(s.do(append([]string{"task", "list", "-o", "json"}, args...)...)), &list); err != nil {
			t.Fatal(err)
		}
		if key == "" && len(list.Tasks) == 0 {
			return
		}
		if len(list.Tasks) != 1 || list.Tasks[0].Key != key {
			t.Errorf("%v: %+v", args, list.Tasks)
		}
	}
	only(bad, "--status", "failed,dead")
	only(good, "--timer", "a/good", "--from", "1h", "--origin", "manual")
	only("", "--to", "1h")
	only("", "--app", "b")
	only(bad, "--limit", "1")

	s.run("", "task", "retry", "--app", "a", "--dry-run").want(0, "1 would be retried.")
	s.run("", "task", "retry", "--status", "failed", "--yes").want(0, "1 retried.")
	s.until(func() bool {
		return strings.Contains(s.do("task", "get", bad), "redrive") && strings.Contains(s.do("task", "get", bad), "failed")
	})
	s.run("", "task", "retry", bad).want(0, "retried")
	s.run("", "task", "retry", good).want(exit.StatusConflict, "succeeded")

	s.until(func() bool { return strings.Contains(s.do("task", "get", bad), "failed") })
	only(bad, "--code", "4xx")
	only("", "--code", "5xx")
	only(bad, "--search", "BAD")
	s.run("", "task", "dismiss", bad).want(0, "dismissed")
	s.run("", "task", "dismiss", good, "17_42").want(exit.StatusConflict, good, "task 17_42 not found")
	only(bad, "--dismissed")
	only("", "--status", "failed", "--dismissed=false")
	s.run("", "task", "retry", "--app", "a", "--dry-run").want(0, "0 would be retried.")
	s.run("", "timer", "list", "--search", "OO", "-o", "name").want(0, "a/good")
}

// TestTail: the built program shows tasks as they end, outlives a restart of the
// server, and ends well at Ctrl-C.
func TestTail(t *testing.T) {
	dir, addr := t.TempDir(), nowhere(t)
	server := serves(t, "--data-dir", dir, "--listen", addr)
	s := &shell{t, server.url}
	s.do("timer", "create", "--app", "a", "--name", "often", "--every", "50ms", "--url", target(t, 200))

	cmd := program(t, "task", "tail", "--app", "a", "-o", "json", "--server", addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	next := func() (task api.Task) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("it has ended: %s", stderr.String())
		}
		if err := json.Unmarshal(lines.Bytes(), &task); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return task
	}
	if task := next(); task.Name != "often" || task.Status != api.Succeeded {
		t.Errorf("%+v", task)
	}
	server.signal(syscall.SIGTERM)
	if status := server.ends(); status != 0 {
		t.Errorf("the server waits for who follows: %d", status)
	}
	restarted := time.Now()
	serves(t, "--data-dir", dir, "--listen", addr)
	for next().Due.Before(restarted) {
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("Ctrl-C: %v", err)
	}
	if said := stderr.String(); !strings.Contains(said, "the stream of tasks broke") || !strings.Contains(said, "is back") {
		t.Errorf("it says %s", said)
	}
}

// TestTailOfNothing: a server that was never there is a mistake, not one to wait for.
func TestTailOfNothing(t *testing.T) {
	s := &shell{t, "http://" + nowhere(t)}
	s.run("", "task", "tail").want(exit.StatusUnavailable, "no server at")
}
