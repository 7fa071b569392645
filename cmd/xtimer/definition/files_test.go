package definition

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	f := func(want string, names ...string) {
		t.Helper()
		all, err := Read(names, strings.NewReader("name: stdin\n"))
		if err != nil {
			t.Errorf("%v: %v", names, err)
			return
		}
		var got []string
		for _, s := range all {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %s", names, got, want)
		}
	}
	f("stdin", "-")
	f("a b", write("docs.yaml", "name: a\n---\n# nothing\n---\nname: b\n"))
	f("a b", write("list.yaml", "- name: a\n- {name: b}\n"))
	f("a b c", write("timers.yaml", "timers:\n- name: a\n- name: b\n---\nname: c\n"))
	f("", write("empty.yaml", ""))
	f("a b c", write("one.json", "{\n\t\"name\":\t\"a\"}\n[{\"name\":\"b\"}]{\"timers\":[{\"name\":\"c\"}],\"next_cursor\":\"x\"}"))
	f("😀/", write("escapes.json", `{"name":"\ud83d\ude00\/"}`))
	f("a", write("flow.yaml", "{name: a}"))
	write("tree/z.yml", "name: z")
	write("tree/a/b.json", `{"name":"b"}`)
	write("tree/.hidden/x.yaml", "name: x")
	write("tree/.y.yaml", "name: y")
	write("tree/README.md", "name: readme")
	f("b z", filepath.Join(dir, "tree"))

	all, err := Read([]string{write("values.yaml", `
app: a
name: n
schedule: {at: 2030-01-01T00:00:00.25Z, jitter: 1500}
callback: {url: u, body: {n: 12345678901234567890, s: "<", list: [1, 2.5, null, true]}, timeout: 1m30s}
labels: &l {team: a}
id: "17"
status: enabled
version: 3
last_task: {key: k}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d := all[0].Definition
	if !d.Schedule.At.Equal(time.Date(2030, 1, 1, 0, 0, 0, 250e6, time.UTC)) || d.Schedule.Jitter != 1500*time.Millisecond ||
		d.Callback.Timeout != 90*time.Second || d.Labels["team"] != "a" {
		t.Errorf("%+v", d)
	}

	bad := func(text, want string) {
		t.Helper()
		name := write("bad", text)
		_, err := Read([]string{name}, nil)
		if err == nil || exit.StatusOf(err) != exit.StatusUsage || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	bad("name: a\nschedule:\n  crom: x\n", "bad:3: schedule.crom: unknown key")
	bad("timers:\n- name: a\n- nam: b\n", "bad:3: timers[1].nam: unknown key")
	bad("{\"name\":\"a\"}\n\n{\"name\":\"b\",\"nam\":1}", "bad:3: nam: unknown key")
	bad("name: a\nname: b\n", "twice")
	bad("name: a\nlabels:\n  n: 1\n", "bad:3: labels.n: has to be a string")
	bad("name: a\nschedule: {every: soon}\n", `"soon" is neither a duration`)
	bad("name: a\npriority: high\n", "priority: cannot be a string")
	bad("name: [a\n", "did not find")
	bad("just words", "has to be a mapping")
	bad("timers: {a: b}", "has to be a list")
	bad("timers: []\nmore: 1", "more: unknown key")
}

var minusZero = regexp.MustCompile(`-0[^.0-9]`)

// FuzzRead: the timers of a file are refused in one line that names the
// file, or are the same again when they are printed and read.
func FuzzRead(f *testing.F) {
	f.Add("app: a\nname: n\nschedule: {at: 2030-01-01T00:00:00.25Z, jitter: 1500}\ncallback: {url: u, body: {n: 12345678901234567890, s: \"<\", list: [1, 2.5, null]}}\nlabels: &l {team: a}\n")
	f.Add("{\"timers\":[{\"name\":\"\\ud83d\\ude00\\/\"}],\"next_cursor\":\"x\"}\n[{\"name\":\"b\"}]")
	f.Add("- &a {name: a}\n- *a\n---\n# nothing\n---\nname: b\n")
	f.Add("&a [*a]")
	f.Add("name: a\nschedule: &s {every: 1h}\ncallback: {url: x, body: {? [1] : 2, .nan: .inf, <<: {a: 1}}}")
	f.Add("callback: {body: [2e19, -1e400, 12345678901234567890123]}")
	f.Add(`{"callback":{"body":[20000000000000000000,-1,1e3,0.5,-0]}}`)
	f.Add("callback: {body: !!binary /w==, headers: {a: ~}}\nlabels: {1: x}\n")
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text []byte) (all []Source, err error) {
			err = readDocuments("file", text, func(s Source) { all = append(all, s) })
			return all, err
		}
		all, err := read([]byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "file:") {
				t.Fatalf("where is it? %v", err)
			}
			return
		}
		for _, s := range all {
			b, err := json.Marshal(s.Definition)
			if err != nil {
				t.Fatalf("%v in %s", err, text)
			}
			if minusZero.Match(b) {
				continue // it is an integer in JSON, and YAML has none such
			}
			again, err := read(b)
			if err != nil || len(again) != 1 {
				t.Fatalf("%d timers, %v in %s", len(again), err, b)
			}
			if changes, err := Diff(s.Definition, again[0].Definition); err != nil || len(changes) > 0 {
				t.Fatalf("%s\nis another again: %v, %v", b, changes, err)
			}
		}
	})
}
