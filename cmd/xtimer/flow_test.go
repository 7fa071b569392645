package main

import (
	"strings"
	"testing"

	"xtimer/cmd/xtimer/exit"
)

// A flow key and a target have the same commands, and show the same of how they stand.
func TestFlowAndTarget(t *testing.T) {
	s := newShell(t)
	for of, name := range map[string]string{"flow": "partner", "target": "http://127.0.0.1:9"} {
		run := func(args ...string) result { return s.run("", append([]string{of}, args...)...) }
		if of == "flow" {
			run = func(args ...string) result { return s.run("", append([]string{of, "-n", "shop"}, args...)...) }
		}
		run("show", name).want(exit.StatusNotFound, "was never paused or limited")
		run("set", name, "--rate", "10", "--breaker", "share=0.3,open=1m").want(0, name+" created")
		run("show", name).want(0, "LIMIT", "WAITING", "OLDEST", "WAIT ", "10 per 1s, breaker at 30% of 20")
		run("show", name, "-o", "json").want(0, `"rate": 10`, `"share": 0.3`, `"open": "1m"`)
		run("cooldown", name).want(exit.StatusUsage, "--until")
		run("cooldown", name, "--until", "3m").want(0, name+" closed until ")
		run("list").want(0, "closed until ")
		run("resume", name).want(0, name+" resumed")
		run("set", name, "--breaker", "of=20").want(0, name+" updated")
		run("list").want(0, "breaker at 50% of 20")
		run("set", name, "--breaker=shares=1").want(exit.StatusUsage, "share, of, within, open, max_open")
		run("set", name, "--breaker=of=x").want(exit.StatusUsage, "of")
		run("delete", name).want(0, name+" deleted")
	}
}

// A pause of what no timer uses has a warning, for it may have a typo.
func TestPauseOfWhatNothingUses(t *testing.T) {
	s := newShell(t)
	for _, name := range []string{"one", "two"} {
		s.do("timer", "create", "-n", "shop", "--name", name, "--delay", "1h", "--url", "http://127.0.0.1:9/x", "--flow", "partner-"+name)
	}
	const warning = "warning: "
	for _, args := range [][]string{
		{"flow", "-n", "shop", "pause", "partner-two"},
		{"flow", "-n", "shop", "pause", "partner*"},
		{"flow", "-n", "shop", "cooldown", "partner-one", "--until", "1m"},
		{"target", "pause", "HTTP://127.0.0.1:9"},
		{"target", "cooldown", "http://127.0.0.1:9", "--until", "1m"},
		{"app", "pause", "shop"},
		{"app", "pause", "--all"},
	} {
		if r := s.run("", args...); r.status != 0 || r.stderr != "" {
			t.Errorf("%s: %d %s", r.line, r.status, r.stderr)
		}
	}
	for args, want := range map[string]string{
		"flow -n shop pause partner-tow":                 "no timer of shop has the flow key partner-tow",
		"flow -n shop pause partners*":                   "no timer of shop has the flow key partners*",
		"flow -n shap pause partner-two":                 "no timer of shap has the flow key partner-two",
		"flow -n shop cooldown partner-tow --until 1m":   "no timer of shop has the flow key partner-tow",
		"target pause http://127.0.0.1:90":               "no timer calls http://127.0.0.1:90",
		"target cooldown http://127.0.0.1:90 --until=1m": "no timer calls http://127.0.0.1:90",
		"app pause shap":                                 "app shap has no timers",
	} {
		if r := s.run("", strings.Fields(args)...); r.status != 0 || r.stderr != warning+want+"\n" || r.out == "" {
			t.Errorf("%s: %d %q", r.line, r.status, r.stderr)
		}
	}
}

// A flow key with a space is refused, and is not two keys.
func TestFlowKeyWithSpace(t *testing.T) {
	newShell(t).run("", "timer", "create", "-n", "shop", "--name", "one", "--delay", "1h", "--url", "http://127.0.0.1:9/", "--flow", "a b").want(exit.StatusRefused, "--flow: a key must be 1 to 128 letters, digits")
}

// A key that only a pattern limits is shown with the pattern, and stays paused while the pattern is.
func TestFlowOfAPattern(t *testing.T) {
	s := newShell(t)
	run := func(args ...string) result { return s.run("", append([]string{"flow", "-n", "shop"}, args...)...) }
	run("set", "user-*", "--rate", "10").want(0)
	run("show", "user-1").want(0, "10 per 1s (user-*)")
	run("pause", "user-*").want(0)
	run("show", "user-1").want(0, "paused")
	run("resume", "user-1").want(0, "warning: user-1 stays paused", "user-1 resumed")
	run("resume", "user-*").want(0)
	if r := run("resume", "user-1"); r.status != 0 || r.stderr != "" {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	run("resume", "other").want(exit.StatusNotFound, "was never paused or limited")
}
