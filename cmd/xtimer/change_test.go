package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
)

// TestDiff: the exit status says whether an apply would change something; nothing is changed.
func TestDiff(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	write(t, dir, "a.yaml", applyA)
	s.run("", "timer", "diff", "-f", dir).want(exit.StatusFailed, "+ a/one\n+ a/two\n")
	s.do("timer", "apply", "-f", dir)
	if out := s.do("timer", "diff", "-f", dir); out != "" {
		t.Errorf("no differences are %q", out)
	}
	write(t, dir, "a.yaml", strings.Replace(applyA, "0 9 * * *", "0 8 * * *", 1))
	s.run("", "timer", "diff", "-f", dir).want(exit.StatusFailed, "~ a/one\n    schedule.cron: \"0 9 * * *\" → \"0 8 * * *\"\n")
	s.run("", "timer", "diff", "-f", dir, "-o", "name").want(exit.StatusFailed, "a/one\n")
	s.run("", "timer", "get", "a/one").want(0, "0 9 * * *")
	s.run("", "timer", "diff", "-f", dir+"/none").want(exit.StatusUsage)
	(&shell{t, nowhere(t)}).run("", "timer", "diff", "-f", dir).want(exit.StatusUnavailable)
}

// editor is a program that edits as the script says; $1 is the file.
func editor(t *testing.T, script string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("VISUAL", name)
}

// TestEdit: what the editor saves is stored, unless it is invalid or the timer was changed
// by another; what is not stored is kept.
func TestEdit(t *testing.T) {
	s := newShell(t)
	t.Setenv("TMPDIR", t.TempDir())
	left := func(want int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(os.TempDir(), "xtimer-*.yaml"))
		if err != nil || len(files) != want {
			t.Errorf("%d files are left, want %d: %v", len(files), want, err)
		}
	}
	s.do("timer", "create", "-n", "a", "--name", "n", "--cron", "0 9 * * *", "--url", "http://127.0.0.1:1/", "--body", `{"amount":10.00}`)

	editor(t, `grep -q '^# The timer a/n, version 1' "$1" && sed -i 's/0 9 /0 8 /' "$1"`)
	s.run("", "timer", "edit", "a/n").want(0, "~ a/n\n    schedule.cron: \"0 9 * * *\" → \"0 8 * * *\"\n")
	s.run("", "timer", "get", "a/n").want(0, "0 8 * * *", "2 of")
	editor(t, "true")
	s.run("", "timer", "edit", "-n", "a", "n").want(0, "unchanged")
	editor(t, `: > "$1"`)
	s.run("", "timer", "edit", "a/n").want(0, "unchanged")
	editor(t, "exit 3")
	s.run("", "timer", "edit", "a/n").want(exit.StatusFailed, "the editor", "exit status 3")
	left(0)
	editor(t, `sed -i 's/0 8 /0 5 /' "$1"; exit 3`) // it crashed after a save
	s.run("", "timer", "edit", "a/n").want(exit.StatusFailed, "exit status 3", "The edited file is kept: "+os.TempDir())
	editor(t, `grep -q 'Not stored: ' "$1" && exit 3; sed -i 's/0 8 /61 8 /' "$1"`)
	s.run("", "timer", "edit", "a/n").want(exit.StatusFailed, "exit status 3", "The edited file is kept: "+os.TempDir())
	left(2)
	t.Setenv("TMPDIR", t.TempDir())

	// The reason is in the file when the editor opens again; left as it is, it is kept.
	editor(t, `grep -q 'Not stored: schedule.cron: ' "$1" || sed -i 's/0 8 /61 8 /' "$1"`)
	s.run("", "timer", "edit", "a/n").want(exit.StatusRefused, "schedule.cron: ", "The edited file is kept: "+os.TempDir())
	left(1)
	editor(t, `if grep -q 'Not stored: .*shedule' "$1"; then sed -i 's/shedule/schedule/; s/0 8 /0 7 /' "$1"; else sed -i 's/schedule/shedule/' "$1"; fi`)
	s.run("", "timer", "edit", "a/n").want(0, "→ \"0 7 * * *\"")
	editor(t, `sed -i 's/^name: n/name: m/' "$1"`)
	s.run("", "timer", "edit", "a/n").want(exit.StatusUsage, "app and name of a timer cannot be changed")
	left(2)

	// Another request comes in between.
	name, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	editor(t, name+" timer disable a/n --server "+s.url+` >/dev/null && sed -i 's/0 7 /0 6 /' "$1"`)
	s.run("", "timer", "edit", "a/n").want(exit.StatusConflict, "the timer was changed in the meantime", "The edited file is kept: ")
	s.run("", "timer", "get", "a/n").want(0, "0 7 * * *")
	left(3)
	s.run("", "timer", "edit", "a/other").want(exit.StatusNotFound, "timer a/other not found")
}

// TestWatch: after the list come the objects that change, each once, until Ctrl-C.
func TestWatch(t *testing.T) {
	s := newShell(t)
	s.do("timer", "create", "-n", "a", "--name", "n", "--every", "1h", "--url", target(t, 200))
	for _, x := range []struct {
		args   []string
		change func()
		first  string
		after  string
	}{
		{[]string{"timer", "list", "-n", "a"}, func() { s.do("timer", "disable", "a/n") }, "enabled", "disabled"},
		{[]string{"timer", "get", "a/n"}, func() { s.do("timer", "enable", "a/n") }, "disabled", "enabled"},
		{[]string{"task", "list", "-n", "a", "-o", "json"}, func() { s.do("timer", "run", "a/n") }, "", `"origin":"manual"`},
	} {
		cmd := program(t, append(x.args, "--watch", "--interval", "50ms", "--server", s.url)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		await := func(want string) {
			t.Helper()
			for want != "" {
				if !lines.Scan() {
					t.Fatalf("%v: it ended before %q", x.args, want)
				}
				if strings.Contains(lines.Text(), want) {
					return
				}
			}
		}
		await(x.first)
		x.change()
		await(x.after)
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: Ctrl-C: %v", x.args, err)
		}
		late.Stop()
	}
	s.run("", "timer", "get", "a/other", "--watch").want(exit.StatusNotFound)
	s.run("", "timer", "list", "--watch", "--interval", "0s").want(exit.StatusUsage, "--interval: must be at least 10ms")
}
