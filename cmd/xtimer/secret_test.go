package main

import (
	"strings"
	"testing"
)

// TestMissingSecret: a secret that the app does not have is named when a timer that sends it is
// created, and by each task that was not called because of it. So is a flow key that no flow limits.
func TestMissingSecret(t *testing.T) {
	s := newShell(t)
	pay := func(name string, more ...string) []string {
		return append([]string{"timer", "create", "--app", "shop", "--name", name, "--url", target(t, 200), "--secret-header", "Authorization: api-token", "--max-attempts", "1", "--flow", "partner"}, more...)
	}
	const unlimited, missing = "warning: no flow limits the key partner", "warning: the app has no secret api-token"
	s.run("", pay("one", "--delay", "1ms")...).want(0, "shop/one created", unlimited, missing)
	s.until(func() bool {
		return strings.Contains(s.do("task", "list", "--app", "shop"), "secret_missing api-token")
	})
	key := strings.TrimSpace(s.do("task", "list", "--app", "shop", "-o", "name"))
	s.run("", "task", "get", key).want(0, "secret_missing api-token")
	s.run("", "task", "get", key, "-o", "json").want(0, `"secret": "api-token"`)

	s.run("s3cr3t", "secret", "set", "api-token", "-n", "shop").want(0, "shop/api-token created")
	s.do("flow", "set", "partner", "--rate", "10", "-n", "shop")
	if r := s.run("", pay("two", "--delay", "1h")...); r.status != 0 || strings.Contains(r.stderr, "warning") {
		t.Errorf("%d %s", r.status, r.stderr)
	}
	s.run("", "task", "retry", key).want(0)
	s.until(func() bool { return strings.Contains(s.do("task", "get", key), "succeeded") })
}
