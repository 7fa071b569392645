package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestDemo(t *testing.T) {
	out, errs, status := runs(t, "demo", "--for", "3s")
	if status != 0 || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	for _, want := range []string{
		`API       http://127\.0\.0\.1:\d+\n`,
		`console   http://127\.0\.0\.1:\d+/\n`,
		`curl http://127\.0\.0\.1:\d+/v1/timers`,
		`(?m)^  \d\d:\d\d:\d\d\.\d{3}  one-shot    \d\d:\d\d:\d\d\.\d{3}   +\d+(\.\d+)? ms        1  200$`,
		`(?m)  interval  .* 200$`,
		`(?m)  cron  .* 200$`,
		`(?m)  flaky  .* 1  503 will be retried$`,
		`(?m)  flaky  .* 2  503 will be retried$`,
		`(?m)  flaky  .* 3  200$`,
		`  calls    \d+, of 4 timers, in 3\.\d s\n`,
		`  late     p50 \d.* ms   p99 .* ms   max .* ms`,
		`  early    0\n`,
		`  flaky    answered 503, 503, 200, succeeded with attempt 3\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nothing matches %s", want)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("there are colours, and this is no terminal")
	}
	if t.Failed() {
		t.Log(out)
	}
}
