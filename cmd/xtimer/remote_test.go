package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/contexts"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/task"
	"xtimer/cmd/xtimer/timer"
	api "xtimer/httpapi/client"
)

// shell runs commands against a server, as a shell does.
type shell struct {
	t   *testing.T
	url string
}

// newShell has a real server of its own.
func newShell(t *testing.T) *shell {
	t.Setenv("NO_COLOR", "1")
	return &shell{t, serves(t, "--data-dir", t.TempDir()).url}
}

// result is what a command said, and its exit status.
type result struct {
	t           *testing.T
	line        string
	out, stderr string
	status      int
}

func (s *shell) run(stdin string, args ...string) result {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	var out, stderr bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(append(args, "--server", s.url))
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	cmd.SetIn(strings.NewReader(stdin))
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(&stderr, "xtimer: %v\n", err)
	}
	return result{s.t, strings.Join(args, " "), out.String(), stderr.String(), exit.StatusOf(err)}
}

// do runs a command that has to succeed.
func (s *shell) do(args ...string) string {
	s.t.Helper()
	r := s.run("", args...)
	if r.status != 0 {
		s.t.Fatalf("%s: status %d: %s", r.line, r.status, r.stderr)
	}
	return r.out
}

// want fails unless the command ended so, and said each of the words.
func (r result) want(status int, words ...string) {
	r.t.Helper()
	if r.status != status {
		r.t.Errorf("%s: status %d, want %d: %s%s", r.line, r.status, status, r.out, r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.out+r.stderr, w) {
			r.t.Errorf("%s: %q is missing in: %s%s", r.line, w, r.out, r.stderr)
		}
	}
}

// target is a receiver that answers with that status.
func target(t *testing.T, status int) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(s.Close)
	return s.URL
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestExitStatus(t *testing.T) {
	s := newShell(t)
	s.do("timer", "create", "--app", "a", "--name", "n", "--every", "1h", "--url", "http://127.0.0.1:1/")

	s.run("", "timer", "get", "a/n").want(0)
	s.run("", "timer", "create", "--app", "a", "--name", "n", "--every", "2h", "--url", "http://127.0.0.1:1/").want(exit.StatusConflict, "app a has another timer of that name", "to change it, use: xtimer timer apply")
	s.run("", "timer", "create", "-n", "a").want(exit.StatusUsage, "xtimer: required: --name, --url, one of --cron, --every, --at and --delay\n") // all that is missing
	s.run("", "timer", "create", "--app", "a", "--name", " ", "--every", "1s", "--url", "ftp://h", "--success", "fine").want(exit.StatusRefused,
		"xtimer: 3 fields are invalid:\n  --name: must be ", "\n  --url: must begin with http:// or https://", "\n  --success: ") // all that is wrong
	gone := nowhere(t)
	for _, args := range [][]string{{"timer", "list"}, {"timer", "upcoming", "1"}, {"task", "list"}, {"export"}, {"import", "/dev/null"}, {"verify", "--from", "1h"}, {"backup"}, {"clock", "reset"}, {"bench", "--rate", "1"}} {
		if args[0] == "import" {
			continue // nothing to send
		}
		(&shell{t, gone}).run("", args...).want(exit.StatusUnavailable, "no server at http://"+gone+"; start one with: xtimer serve")
	}

	for _, wrong := range [][]string{
		{"timer", "get"},
		{"timer", "get", "name"},
		{"timer", "list", "extra"},
		{"timer", "list", "--nonsense"},
		{"timer", "list", "-o", "xml"},
		{"timer", "create", "--at", "soon"},
		{"timer", "create", "--every", "soon"},
		{"timer", "create", "--body", "{"},
		{"timer", "create", "--label", "team"},
		{"timer", "create", "-f", "-", "--app", "a"},
		{"timer", "create", "-f", "/no/such/file"},
		{"timer", "enable"},
		{"timer", "enable", "a/n", "--all"},
		{"timer", "enable", "--app", "a", "--catch-up", "all"},
		{"timer", "disable", "a/n", "--until", "soon"},
		{"timer", "apply"},
		{"timer", "apply", "-f", "-", "--prune"},
		{"timer", "apply", "-f", "-", "-l", "team=a"},
		{"task", "list", "--from", "soon"},
		{"task", "retry"},
		{"task", "retry", "1_2", "--app", "a"},
		{"task", "nonsense"},
	} {
		s.run("", wrong...).want(exit.StatusUsage)
	}

	s.run("", "timer", "get", "a/other").want(exit.StatusNotFound, "xtimer: timer a/other not found\n")
	s.run("", "timer", "get", "other", "-n", "a").want(exit.StatusNotFound, "xtimer: timer a/other not found\n")
	s.run("", "timer", "upcoming", "17").want(exit.StatusNotFound, "timer 17 not found")
	s.run("", "timer", "run", "17").want(exit.StatusNotFound, "timer 17 not found")
	s.run("", "timer", "delete", "a/other").want(exit.StatusNotFound, "timer a/other not found")
	s.run("", "task", "get", "17_42").want(exit.StatusNotFound, "task 17_42 not found")
	s.run("", "task", "retry", "17_42").want(exit.StatusNotFound, "task 17_42 not found, or its timer was deleted")
	s.run("", "task", "list", "--timer", "a/other").want(exit.StatusNotFound, "timer a/other not found")
	s.run("", "timer", "list", "--status", "on").want(exit.StatusRefused, "status: \"on\" is not one of enabled, disabled, finished")
	s.run("", "timer", "disable", "a/other", "a/another").want(exit.StatusNotFound, "all 2 failed")

	s.run("", "timer", "disable", "a/n", "a/other").want(exit.StatusPartly, "disabled", "1 of 2 failed")
}

// TestTokenAndServer: from the environment, or from a flag; no secret in a help.
func TestTokenAndServer(t *testing.T) {
	t.Setenv("XTIMER_TOKENS", "*:admin:sesame")
	s := newShell(t)
	t.Setenv("XTIMER_TOKENS", "")
	s.run("", "timer", "list").want(exit.StatusDenied, "needs a token: set XTIMER_TOKEN")
	s.run("", "timer", "list", "--token", "wrong").want(exit.StatusDenied, "does not accept the token of --token")
	s.run("", "timer", "list", "--token", "sesame").want(0)
	t.Setenv("XTIMER_TOKEN", "sesame")
	s.run("", "timer", "list").want(0)
	r := s.run("", "timer", "list", "--help")
	if r.want(0, "--token"); strings.Contains(r.out, "sesame") {
		t.Error("the help shows the token")
	}
	t.Setenv("XTIMER_SERVER", strings.TrimPrefix(s.url, "http://"))
	out, stderr, status := runs(t, "timer", "list", "-o", "json")
	if status != 0 || !json.Valid([]byte(out)) {
		t.Errorf("status %d, %s%s", status, out, stderr)
	}
}

func TestCompletion(t *testing.T) {
	s := newShell(t)
	for _, name := range []string{"alpha", "beta"} {
		s.do("timer", "create", "--app", "a", "--name", name, "--every", "1h", "--url", "http://127.0.0.1:1/")
	}
	var timer api.Timer
	if err := json.Unmarshal([]byte(s.do("timer", "get", "a/beta", "-o", "json")), &timer); err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(s.do("timer", "run", "a/alpha"))
	complete := func(want, not string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		cmd := newRoot()
		cmd.SetArgs(append([]string{"__complete"}, args...))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.ExecuteContext(t.Context()); err != nil || !strings.Contains(out.String(), want) || not != "" && strings.Contains(out.String(), not) {
			t.Errorf("%v: %v, %s", args, err, out.String())
		}
	}
	t.Setenv("XTIMER_SERVER", s.url)
	complete("a/alpha\tevery 1h, enabled", "", "timer", "get", "")
	complete("a/beta", "alpha", "timer", "delete", "a/b")
	complete(timer.ID+"\ta/beta", "alpha", "timer", "run", timer.ID)
	complete(key, "", "task", "get", "")
	complete("dead", "", "task", "list", "--status", "")
	complete("yaml", "", "timer", "list", "-o", "")
	t.Setenv("XTIMER_SERVER", nowhere(t))
	complete(":1", "", "timer", "get", "") // an error, and not a word
}

// TestHelpListsTheCommands: all that are not hidden.
func TestHelpListsTheCommands(t *testing.T) {
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"--help"})
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	names := []string{"completion"} // which the library brings
	for _, c := range root.Commands() {
		if !c.Hidden && !c.IsAdditionalHelpTopicCommand() { // which are listed apart
			names = append(names, c.Name())
		}
	}
	for _, name := range names {
		if !strings.Contains(out.String(), "\n  "+name+" ") {
			t.Errorf("%s is not in the help: %s", name, out.String())
		}
	}
}

// TestRemoteHelp: each of the commands says what it does, and gives an example.
func TestRemoteHelp(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Short == "" || c.Example == "" {
			t.Errorf("%s: the help is not complete", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: a long line: %s", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(timer.New())
	walk(task.New())
	walk(contexts.New())
	for _, group := range []*cobra.Command{timer.New(), task.New(), contexts.New()} {
		if !strings.Contains(group.Long, exit.Help) {
			t.Errorf("%s: the help does not name the exit statuses", group.Name())
		}
	}
}
