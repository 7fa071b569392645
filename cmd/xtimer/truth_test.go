package main

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestLastTask: a list of a real server says how each timer's newest task ended, and
// --failing cuts it to the timers that fail.
func TestLastTask(t *testing.T) {
	s := newShell(t)
	for name, status := range map[string]int{"good": http.StatusOK, "bad": http.StatusNotFound} {
		s.do("timer", "create", "--app", "a", "--name", name, "--delay", "1ms", "--url", target(t, status))
	}
	s.do("timer", "create", "--app", "a", "--name", "new", "--delay", "1h", "--url", "http://127.0.0.1:1/")
	line := func(out, name string) string {
		for l := range strings.Lines(out) {
			if strings.HasPrefix(l, "a/"+name+" ") {
				return l
			}
		}
		return ""
	}
	var list string
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		list = s.do("timer", "list", "--app", "a")
		if strings.Contains(line(list, "good"), "succeeded") && strings.Contains(line(list, "bad"), "failed") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(list)
		}
	}
	if l := line(list, "new"); l == "" || strings.Contains(l, "succeeded") || strings.Contains(l, "failed") {
		t.Errorf("a timer without a task: %q", l)
	}
	if only := s.do("timer", "list", "--failing"); line(only, "bad") == "" || line(only, "good")+line(only, "new") != "" {
		t.Error(only)
	}
	for _, form := range []string{"json", "yaml"} {
		if out := s.do("timer", "list", "--app", "a", "-o", form); strings.Count(out, "last_task") != 2 {
			t.Errorf("as %s: %s", form, out)
		}
	}
	if out := s.do("timer", "list", "--failing", "-o", "json"); !strings.Contains(out, `"status": "failed"`) || strings.Contains(out, `"good"`) {
		t.Error(out)
	}
}

// TestRetryAsks: filters retry nothing before somebody has said yes to the number.
func TestRetryAsks(t *testing.T) {
	s := newShell(t)
	s.do("timer", "create", "--app", "a", "--name", "bad", "--every", "1h", "--url", target(t, http.StatusNotFound))
	key := strings.TrimSpace(s.do("timer", "run", "a/bad"))
	attempts := func() int { return strings.Count(s.do("task", "get", key), " 404 ") }
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.do("task", "get", key), "failed"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the task did not fail")
		}
	}
	s.run("n\n", "task", "retry", "--status", "failed").want(1, "Retry 1 tasks?", "nothing was changed")
	if n := attempts(); n != 1 {
		t.Errorf("%d attempts, and nobody said yes", n)
	}
	s.run("y\n", "task", "retry", "--status", "failed").want(0, "1 retried")
	s.run("", "task", "retry", "--status", "failed", "--dry-run").want(0, "would be")
	s.run("", "task", "retry", "--all", "--yes").want(0, "retried")
	if r := s.run("", "task", "retry", "7354000000000000000_1763658000250"); r.status == 0 || strings.Contains(r.out+r.stderr, "no such thing") {
		t.Errorf("%d %s%s", r.status, r.out, r.stderr)
	}
}
