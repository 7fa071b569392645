package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/exit"
)

// write makes a file of a folder.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const applyA = `
timers:
- app: a
  name: one
  schedule: {cron: "0 9 * * *", time_zone: Asia/Shanghai}
  callback: {url: "http://127.0.0.1:1/", body: {k: [1, "<"]}, headers: {X-A: b}}
  labels: {team: a}
- app: a
  name: two
  schedule: {every: 1h}
  callback: {url: "http://127.0.0.1:1/"}
  labels: {team: a}
`

const applyB = `{"app":"b","name":"three","schedule":{"every":3600000},"callback":{"url":"http://127.0.0.1:1/"},"labels":{"team":"b"}}`

func TestApply(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	write(t, dir, "a.yaml", applyA)
	write(t, dir, "b.json", applyB)

	s.run("", "timer", "apply", "-f", dir, "--dry-run").want(0, "+ a/one\n+ a/two\n+ b/three\n3 created,", "nothing was changed")
	if out := s.do("timer", "list"); strings.Count(out, "\n") != 1 {
		t.Fatalf("a dry run changed something:\n%s", out)
	}
	s.run("", "timer", "apply", "-f", dir).want(0, "3 created, 0 updated, 0 deleted, 0 unchanged, 0 failed\n")
	if out := s.do("timer", "apply", "-f", dir); out != "0 created, 0 updated, 0 deleted, 3 unchanged, 0 failed\n" {
		t.Errorf("a second apply says %s", out)
	}
	// What list prints is what apply takes, and says the same.
	for _, form := range []string{"yaml", "json"} {
		s.run(s.do("timer", "list", "-o", form), "timer", "apply", "-f", "-").want(0, "0 created, 0 updated, 0 deleted, 3 unchanged")
	}

	// Field by field: one changed, one set, one left out.
	write(t, dir, "a.yaml", strings.NewReplacer("0 9 * * *", "0 8 * * *", ", headers: {X-A: b}", ", timeout: 30s").Replace(applyA))
	const changes = `~ a/one
    callback.headers.X-A: "b" → not set
    callback.timeout: "15s" → "30s"
    schedule.cron: "0 9 * * *" → "0 8 * * *"
0 created, 1 updated, 0 deleted, 2 unchanged, 0 failed`
	s.run("", "timer", "apply", "-f", dir, "--dry-run").want(0, changes)
	s.run("", "timer", "get", "a/one").want(0, "0 9 * * *")
	s.run("", "timer", "apply", "-f", dir).want(0, changes)
	s.run("", "timer", "get", "a/one").want(0, "0 8 * * *", "timeout   30s")

	var told struct {
		DryRun  bool `json:"dry_run"`
		Results []struct {
			Result  string
			Changes []struct{ Field, From, To string }
		}
	}
	write(t, dir, "b.json", strings.Replace(applyB, "3600000", `"2h"`, 1))
	if err := json.Unmarshal([]byte(s.do("timer", "apply", "-f", dir, "-o", "json", "--dry-run")), &told); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "b.json", strings.Replace(applyB, `"labels"`, `"flow":["partner"],"labels"`, 1))
	const undefined = "~ b/three\n    flow: not set → [\"partner\"]\n    flow_undefined: no flow limits the key partner"
	s.run("", "timer", "apply", "-f", dir, "--dry-run").want(0, undefined)
	if len(told.Results) != 3 || told.Results[2].Result != "updated" || told.Results[2].Changes[0] != (struct{ Field, From, To string }{"schedule.every", `"1h"`, `"2h"`}) || !told.DryRun {
		t.Errorf("%+v", told)
	}
}

// TestApplyMany: a second apply of an app with many, and of more
// apps than workers, changes nothing; of those that are changed, all are.
func TestApplyMany(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	const big, apps = 160, 40
	file := func(every string, changed int) {
		var b strings.Builder
		for i := range big {
			fmt.Fprintf(&b, `{"app":"big","name":"n-%d","priority":%d,"schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:1/"}}`+"\n", i, i/(big-changed))
		}
		for i := range apps {
			fmt.Fprintf(&b, `{"app":"app-%d","name":"n","schedule":{"every":%q},"callback":{"url":"http://127.0.0.1:1/"}}`+"\n", i, every)
		}
		write(t, dir, "a.json", b.String())
	}
	file("1h", 0)
	s.run("", "timer", "apply", "-f", dir).want(0, "200 created, 0 updated, 0 deleted, 0 unchanged, 0 failed\n")
	s.run("", "timer", "apply", "-f", dir).want(0, "0 created, 0 updated, 0 deleted, 200 unchanged, 0 failed\n")
	file("2h", 60)
	s.run("", "timer", "apply", "-f", dir).want(0, "0 created, 100 updated, 0 deleted, 100 unchanged, 0 failed\n")
	s.run("", "timer", "apply", "-f", dir).want(0, "0 created, 0 updated, 0 deleted, 200 unchanged, 0 failed\n")
}

// TestApplyKeepsBodies: a body of JSON is sent as it is written, with all digits of
// its numbers, and a second apply of it changes nothing.
func TestApplyKeepsBodies(t *testing.T) {
	s := newShell(t)
	const app, body = `"app":"a","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:1/","body":`, `{"id":12345678901234567890123,"amount":10.00,"s":"\u00e4","o":{"z":[1e2]}}`
	file := `{"name":"one",` + app + body + "}}\n" + `[ { ` + app + " 10.00}, \"name\" : \"two\" }\t,{\"name\":\"three\"," + app + body + "}}]"
	for _, made := range []string{"3 created, 0 unchanged", "0 created, 3 unchanged"} {
		s.run(file, "timer", "create", "-f", "-").want(0, made)
	}
	s.do("timer", "create", "--app", "a", "--name", "four", "--every", "1h", "--url", "http://127.0.0.1:1/", "--body", body)
	list := s.do("timer", "list", "-o", "json")
	for _, w := range []string{`"id": 12345678901234567890123,`, `"amount": 10.00,`, `"s": "\u00e4"`, `1e2`} {
		if strings.Count(list, w) != 3 {
			t.Errorf("%s is not there three times: %s", w, list)
		}
	}
	if !strings.Contains(list, `"body": 10.00`) {
		t.Error(list)
	}
	s.run(file, "timer", "apply", "-f", "-").want(0, "0 created, 0 updated, 0 deleted, 3 unchanged")
	s.run(list, "timer", "apply", "-f", "-").want(0, "0 created, 0 updated, 0 deleted, 4 unchanged")
	s.run(s.do("timer", "list", "-o", "yaml"), "timer", "apply", "-f", "-").want(0, "0 created, 0 updated, 0 deleted, 4 unchanged")
}

func TestApplyPrunes(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	write(t, dir, "a.yaml", applyA)
	write(t, dir, "b.json", applyB)
	s.do("timer", "apply", "-f", dir)
	write(t, dir, "a.yaml", applyA[:strings.Index(applyA, "- app: a\n  name: two")])
	if err := os.Remove(filepath.Join(dir, "b.json")); err != nil {
		t.Fatal(err)
	}
	there := func(names ...string) {
		t.Helper()
		out := s.do("timer", "list")
		if strings.Count(out, "\n") != len(names)+1 {
			t.Errorf("want %v, there are\n%s", names, out)
		}
		for _, n := range names {
			if !strings.Contains(out, n+" ") {
				t.Errorf("%s is gone", n)
			}
		}
	}
	prune := []string{"timer", "apply", "-f", dir, "--prune", "-l", "team=a"}
	s.run("", append(prune, "--dry-run")...).want(0, "- a/two\n", "1 deleted")
	s.run("n\n", prune...).want(exit.StatusFailed, "Delete 1 timers", "nothing was changed")
	there("a/one", "a/two", "b/three")

	// Nothing is deleted when something failed.
	write(t, dir, "bad.yaml", "app: a\nname: bad\nschedule: {cron: 61 * * * *}\ncallback: {url: 'http://127.0.0.1:1/'}\n")
	s.run("", append(prune, "--yes")...).want(exit.StatusPartly, "! a/bad: "+filepath.Join(dir, "bad.yaml")+":1: ", "schedule.cron", "1 failed", "1 of 2 failed")
	there("a/one", "a/two", "b/three")
	if err := os.Remove(filepath.Join(dir, "bad.yaml")); err != nil {
		t.Fatal(err)
	}

	s.run("y\n", prune...).want(0, "- a/two\n0 created, 0 updated, 1 deleted, 1 unchanged, 0 failed")
	there("a/one", "b/three")

	// With -n, the timers of other apps stay.
	s.do("timer", "create", "-n", "b", "--name", "five", "--every", "1h", "--url", "http://127.0.0.1:1/", "--label", "team=a")
	s.run("", "timer", "apply", "-n", "a", "-f", dir, "--prune", "-l", "team=a", "--yes").want(0, "0 created, 0 updated, 0 deleted, 1 unchanged")
	there("a/one", "b/three", "b/five")
	s.do("timer", "delete", "b/five")

	// A folder that is empty by mistake deletes nothing.
	s.run("", "timer", "apply", "-f", t.TempDir(), "--prune", "-l", "team=a", "--yes").want(exit.StatusUsage, "the files have no timer")
	there("a/one", "b/three")
}

func TestApplyRefuses(t *testing.T) {
	s := newShell(t)
	s.run("app: a\n", "timer", "apply", "-f", "-").want(exit.StatusUsage, "stdin:1: the timer needs an app and a name")
	s.run(applyB+"\n"+applyB, "timer", "apply", "-f", "-").want(exit.StatusUsage, "stdin:2: b/three is also defined at stdin:1")
	s.run("app: a\nname: n\nshedule: {}\n", "timer", "apply", "-f", "-").want(exit.StatusUsage, "stdin:3: shedule: unknown key")
	const zero = "app: a\nname: n\nschedule: {every: 1h}\ncallback: {url: 'http://127.0.0.1:1/'}\nretry: {jitter: 0, %s}\n"
	for _, field := range []string{"max_attempts: 0", "backoff: 0s", "multiplier: 0.0", "max_age: 0"} {
		name, _, _ := strings.Cut(field, ":")
		s.run(fmt.Sprintf(zero, field), "timer", "apply", "-f", "-").want(exit.StatusUsage, "stdin:5: ", "retry."+name+": must be greater than 0")
	}
	s.run(strings.Replace(fmt.Sprintf(zero, "backoff: 1s"), "every: 1h", "every: 1h, start_at: 1763658000", 1), "timer", "apply", "-f", "-").want(exit.StatusUsage, "1763658000 is a Unix time in seconds")
	s.run(fmt.Sprintf(zero, "max_attempts: null"), "timer", "apply", "-f", "-").want(0, "1 created")
}

// TestApplyDryRunAsksTheServer: what an apply would be refused, a dry run says of
// each timer with its place, and ends as the apply does; it changes nothing.
func TestApplyDryRunAsksTheServer(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	write(t, dir, "a.yaml", applyA)
	s.do("timer", "apply", "-f", dir)
	before := s.do("timer", "list", "-o", "yaml")

	write(t, dir, "a.yaml", strings.NewReplacer("every: 1h", "every: 1ms").Replace(applyA))
	write(t, dir, "b.json", strings.Replace(applyB, "http:", "ftp:", 1))
	write(t, dir, "c.json", strings.NewReplacer("three", "four", `"every":3600000`, `"cron":"61 * * * *"`).Replace(applyB))
	write(t, dir, "d.json", strings.Replace(applyB, "three", "five", 1))
	line := func(name, at, of string) string {
		return "! " + name + ": " + filepath.Join(dir, at) + ": " + of
	}
	said := []string{
		line("a/two", "a.yaml:8", "schedule.every: "), line("b/three", "b.json:1", "callback.url: "), line("b/four", "c.json:1", "schedule.cron: "),
		"+ b/five", "1 created, 0 updated, 0 deleted, 1 unchanged, 3 failed (nothing was changed)\n", "3 of 5 failed",
	}
	// Where something is refused nothing is pruned, nor said to be.
	dry := s.run("", "timer", "apply", "-f", dir, "--dry-run", "--prune", "-l", "team=a")
	dry.want(exit.StatusPartly, said...)
	if after := s.do("timer", "list", "-o", "yaml"); after != before {
		t.Errorf("a dry run changed\n%s\nto\n%s", before, after)
	}
	s.run("", "timer", "apply", "-f", filepath.Join(dir, "c.json"), "--dry-run").want(exit.StatusRefused, "the server refused the timer", "schedule.cron")

	s.run("", "timer", "apply", "-f", dir).want(exit.StatusPartly, strings.ReplaceAll(dry.out, " (nothing was changed)", ""))
}

// TestDefaults: what a file leaves out is not a difference to what the server
// filled in.
func TestDefaults(t *testing.T) {
	s := newShell(t)
	for _, callback := range []string{`{"url":"http://127.0.0.1:1/"}`, `{"url":"http://127.0.0.1:1/","method":"GET"}`, `{"url":"http://127.0.0.1:1/","body_text":""}`} {
		for _, schedule := range []string{`{"every":"1h"}`, `{"cron":"@daily"}`, `{"at":"2030-01-01T00:00:00.0005Z"}`, `{"delay":"24h"}`, `{"every":"90m","start_at":1893456000250,"max_runs":3}`} {
			doc := `{"app":"a","name":"n","schedule":` + schedule + `,"callback":` + callback + `}`
			s.run(doc, "timer", "apply", "-f", "-").want(0)
			s.run(doc, "timer", "apply", "-f", "-").want(0, "1 unchanged")
			s.run(doc, "timer", "create", "-f", "-").want(0, "0 created, 1 unchanged, 0 refused")
		}
	}
}
