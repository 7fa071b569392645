package main

import (
	"fmt"
	"strings"
	"testing"

	"xtimer/cmd/xtimer/exit"
)

func TestAppQuota(t *testing.T) {
	s := newShell(t)
	s.run("", "app", "quota", "shop").want(exit.StatusNotFound, "app shop has no quota")
	s.run("", "app", "quota", "shop", "--creates-per-second", "100", "--in-flight", "50").want(0, "the quota of shop created")
	s.run("", "app", "quota", "shop", "--creates-per-second", "2", "--in-flight", "50").want(0, "the quota of shop updated")
	s.run("", "app", "quota", "shop").want(0, "creates per second  2\n", "fires per second    no limit\n", "in flight           0 of 50\n")
	s.run("", "app", "quota", "shop").want(0, "timers              no limit\n")
	s.run("", "app", "quota", "shop", "-o", "json").want(0, `"creates_per_second": 2`)
	s.run("", "app", "quota", "shop", "--none", "--in-flight", "1").want(exit.StatusUsage, "--none")

	// An import into an app whose quota is smaller makes all timers.
	var lines strings.Builder
	for i := range 3 {
		fmt.Fprintf(&lines, `{"app":"shop","name":"n%d","schedule":{"every":"1h"},"callback":{"url":"http://127.0.0.1:9/"}}`+"\n", i)
	}
	s.run(lines.String(), "import").want(0, "3 created, 0 unchanged, 0 skipped, 0 conflict, 0 failed")

	s.run("", "app", "quota", "shop", "--timers", "3").want(0, "the quota of shop updated")
	s.run("", "app", "quota", "shop").want(0, "timers              3 of 3\n", "bytes               ")
	s.run(strings.Replace(lines.String(), "n0", "n3", 1), "import").want(exit.StatusPartly, "allows 3 timers: the app has 3, and the request adds 1")
	s.run(strings.Replace(lines.String(), "n0", "n3", 1), "import").want(exit.StatusPartly, "an admin can change the quota: xtimer app quota")
	s.run("", "timer", "create", "--app", "shop", "--name", "n3", "--every", "1h", "--url", "http://127.0.0.1:9/").want(exit.StatusExceeded, "adds 1; delete timers, or wait")
	s.run("", "app", "quota", "shop", "--none").want(0, "the quota of shop deleted")
	s.run("", "app", "quota", "shop", "--none").want(exit.StatusNotFound, "app shop has no quota")
}
