package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/exit"
)

// local runs a command that needs no server of the test.
func local(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&stderr)
	cmd.SetIn(strings.NewReader(stdin))
	err := cmd.ExecuteContext(t.Context())
	if err != nil {
		stderr.WriteString("xtimer: " + err.Error() + "\n")
	}
	return result{t, strings.Join(args, " "), out.String(), stderr.String(), exit.StatusOf(err)}
}

// TestUsageErrors: an error of a command line names what is wrong, and what to write instead.
func TestUsageErrors(t *testing.T) {
	for _, x := range []struct{ args, want string }{
		{"timr list", `unknown command "timr" for "xtimer"; did you mean timer?`},
		{"timer gte a/x", `unknown command "gte" for "xtimer timer"; did you mean get?`},
		{"clock rset", `unknown command "rset" for "xtimer clock"; did you mean reset?`},
		{"timer frobnicate", `unknown command "frobnicate" for "xtimer timer"; see: xtimer timer --help`},
		{"timer list --ap b", `unknown flag --ap for "xtimer timer list"; did you mean --app?`},
		{"serve --lisen :1", `unknown flag --lisen for "xtimer serve"; did you mean --listen?`},
		{"timer list --frobnicate", `unknown flag --frobnicate for "xtimer timer list"; see: xtimer timer list --help`},
		{"timer list -x", `unknown flag -x for "xtimer timer list"; see: xtimer timer list --help`},
		{"timer list --limit many", `--limit: "many" is not a whole number`},
		{"timer list --limit", `--limit needs a value`},
		{"timer list -o xml", `--output: "xml" is not one of table, wide, name, json, yaml`},
		{"timer list --zone mars", `--zone: "mars" is not one of local, utc, timer`},
		{"timer create --every soon", `--every: "soon" is not a duration such as 250ms, 30m or 7d`},
		{"timer create -n a --name n --url http://127.0.0.1:1/ --every 1h --start-at 1763658000", `--start-at: 1763658000 is 1970-01-21T09:54:18.000Z: numbers are Unix time in milliseconds; did you mean seconds? Then write 1763658000000`},
		{"timer create -n a --name n --url http://127.0.0.1:1/ --every 1h --max-attempts 0", `--max-attempts: must be greater than 0; omit the flag for the default`},
		{"timer create -n a --name n --url http://127.0.0.1:1/ --every 1h --backoff 0s", `--backoff: must be greater than 0; omit the flag for the default`},
		{"timer get", `required: ID|APP/NAME; see: xtimer timer get --help`},
		{"timer get a/b c/d", `"xtimer timer get" takes ID|APP/NAME, not 2 arguments; see: xtimer timer get --help`},
		{"timer list extra", `"xtimer timer list" takes no arguments: extra; see: xtimer timer list --help`},
		{"timer apply extra", `"xtimer timer apply" takes no arguments: extra; see: xtimer timer apply --help`},
		{"timer apply", `required: --file`},
		{"verify", `required: --from`},
		{"preview", `required: CRON; see: xtimer preview --help`},
		{"timer get name", `"name" is neither the id of a timer nor APP/NAME; -n APP names the app`},
		{"timer enable", `required: names of timers, or filters such as --app or --label, or --all`},
		{"import -n shop x.ndjson", `--app applies only to an import with --from-crontab`},
		{"import --time-zone UTC", `--time-zone applies only to an import with --from-xtimer-mysql or --from-crontab`},
		{"import --from-xtimer-mysql x --time-zone UTC --system", `--system applies only to an import with --from-crontab`},
		{"context use", `required: NAME; see: xtimer context use --help`},
	} {
		local(t, "", strings.Fields(x.args)...).want(exit.StatusUsage, "xtimer: "+x.want+"\n")
	}
}

// TestContexts: a command takes its server and token from the context that is named, else
// from the current one; the file is for its owner only.
func TestContexts(t *testing.T) {
	t.Setenv("XTIMER_TOKENS", "*:admin:sesame")
	s := newShell(t)
	t.Setenv("XTIMER_TOKENS", "")
	config, tokens := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("XTIMER_SERVER", "")
	write(t, tokens, "prod", "sesame\n")

	local(t, "", "context", "list", "-o", "name").want(0)
	local(t, "", "context", "use", "prod").want(exit.StatusNotFound, `context "prod" not found: no context is defined; define it with: xtimer context set prod --server URL`)
	local(t, "", "context", "set", "prod").want(exit.StatusUsage, "required: --server")
	local(t, "", "context", "set", "prod", "--server", s.url, "--token-file", tokens+"/none").want(exit.StatusUsage, "cannot read the token of the context prod")
	local(t, "", "context", "set", "prod", "--server", s.url, "--token-file", tokens+"/prod").want(0)
	local(t, "wrong\n", "context", "set", "bad", "--server", s.url, "--token", "-").want(0)
	local(t, "", "context", "set", "gone", "--server", nowhere(t)).want(0)

	name := filepath.Join(config, "xtimer", "contexts.yaml")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	r := local(t, "", "context", "list")
	if r.want(0, "*        prod", "file "+tokens+"/prod", "stored"); strings.Contains(r.out, "wrong") {
		t.Error("list shows a token")
	}
	if r = local(t, "", "context", "list", "-o", "json"); strings.Contains(r.out, "wrong") || !strings.Contains(r.out, `"current": "prod"`) {
		t.Errorf("%s", r.out)
	}

	local(t, "", "timer", "list").want(0) // the first context is the current one
	local(t, "", "timer", "list", "--context", "bad").want(exit.StatusDenied, "does not accept the token of the context bad")
	local(t, "", "timer", "list", "--context", "none").want(exit.StatusNotFound, `context "none" not found; the contexts are: bad, gone, prod`)
	local(t, "", "timer", "list", "--server", s.url).want(exit.StatusDenied, "needs a token") // no other server gets the token
	t.Setenv("XTIMER_CONTEXT", "gone")
	local(t, "", "export").want(exit.StatusUnavailable, "no server at")
	local(t, "", "timer", "list", "--context", "prod").want(0)
	t.Setenv("XTIMER_TOKEN", "wrong")
	local(t, "", "timer", "list", "--context", "prod").want(0) // a flag counts more than the environment
	t.Setenv("XTIMER_CONTEXT", "prod")
	local(t, "", "timer", "list").want(exit.StatusDenied, "the token of XTIMER_TOKEN")
	t.Setenv("XTIMER_TOKEN", "")
	t.Setenv("XTIMER_SERVER", nowhere(t))
	local(t, "", "timer", "list").want(exit.StatusUnavailable)
	t.Setenv("XTIMER_SERVER", "")
	t.Setenv("XTIMER_CONTEXT", "")

	local(t, "", "context", "use", "gone").want(0, "gone: http://127.0.0.1")
	local(t, "", "timer", "list").want(exit.StatusUnavailable)
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	local(t, "", "__complete", "timer", "list", "--context", "").want(0, "bad\t", "prod\t"+s.url)
	local(t, "", "context", "delete", "gone").want(0)
	local(t, "", "context", "delete", "gone").want(exit.StatusNotFound)
	r = local(t, "", "context", "list", "-o", "name")
	if got := strings.Fields(r.out); !slices.Equal(got, []string{"bad", "prod"}) {
		t.Errorf("%v", got)
	}
	write(t, filepath.Dir(name), "contexts.yaml", "contexs: []\n")
	local(t, "", "timer", "list").want(exit.StatusUsage, name, "contexs")
}

// TestOutputs: each form of each command that shows objects; name is what other commands take.
func TestOutputs(t *testing.T) {
	s := newShell(t)
	for _, name := range []string{"one", "two"} {
		s.run("", "timer", "create", "-n", "a", "--name", name, "--every", "1h", "--url", "http://127.0.0.1:1/", "-o", "name").want(0, "a/"+name+"\n")
	}
	if got := s.do("timer", "list", "-n", "a", "-o", "name"); got != "a/one\na/two\n" {
		t.Errorf("%q", got)
	}
	if got := s.do("timer", "get", "-n", "a", "two", "-o", "name"); got != "a/two\n" {
		t.Errorf("%q", got)
	}
	key := strings.TrimSpace(s.do("timer", "run", "a/one", "-o", "name"))
	s.until(func() bool { return s.do("task", "list", "-n", "a", "-o", "name") == key+"\n" })
	s.run("", "timer", "list", "-o", "wide").want(0, "CALLS", "POST http://127.0.0.1:1/")
	s.run("", "task", "list", "-o", "wide").want(0, "ORIGIN", "manual")
	s.run("", "task", "get", key, "-o", "name").want(0, key)
	s.run("", "timer", "upcoming", "-n", "a", "one", "--n", "1", "-o", "name").want(0, "T")
	s.run("", "timer", "disable", "a/one", "-o", "name").want(0, "a/one\n")
	s.run(`{"name":"three","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:1/"}}`, "timer", "apply", "-n", "b", "-f", "-", "-o", "name").want(0, "b/three\n")
	s.run(applyB, "timer", "apply", "-n", "a", "-f", "-").want(exit.StatusUsage, "the timer is of the app b, not of a as --app says")
	s.run("", "timer", "delete", "-n", "a", "one", "two", "-o", "name").want(0, "one\ntwo\n")
}

// TestFigures: stats and top of a real server.
func TestFigures(t *testing.T) {
	s := newShell(t)
	s.do("timer", "create", "-n", "a", "--name", "n", "--every", "1h", "--url", target(t, 200))
	key := strings.TrimSpace(s.do("timer", "run", "a/n"))
	s.until(func() bool { return strings.Contains(s.do("task", "get", key), "succeeded") })
	s.run("", "stats").want(0, "timers", "1 enabled, 0 disabled, 0 finished", "tier cold", "available")
	s.run("", "stats", "-o", "json").want(0, `"enabled": 1`)
	s.until(func() bool { return strings.Contains(s.do("top", "--once"), "http://127.0.0.1:") })
	s.run("", "top", "-o", "name").want(0, "a\n")
	s.run("", "top", "-n", "none").want(0, "APP, TARGET")
	s.run("", "top", "--interval", "1ms").want(exit.StatusUsage, "--interval: must be at least 100ms")
}

// TestExitCodesInTheGuide: the page has the table of the help.
func TestExitCodesInTheGuide(t *testing.T) {
	page, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	help := local(t, "", "help", "exit-codes")
	for _, s := range exit.Statuses {
		if row := fmt.Sprintf("| %d | %s |\n", s.Status, s.Meaning); !strings.Contains(string(page), row) {
			t.Errorf("docs/cli.md lacks %s", row)
		}
		help.want(0, s.Meaning)
	}
}
