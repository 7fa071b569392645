package main

import (
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
