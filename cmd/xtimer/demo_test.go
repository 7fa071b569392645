package main

import (
	"os"
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

// TestDemoEndsWithItsReader: when its reader goes, such as head, the demonstration ends, and nothing of
// it stays.
func TestDemoEndsWithItsReader(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	cmd := program(t, "demo")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	_ = out.Close()
	_ = cmd.Wait()
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestDemoCluster shows the demonstration of several nodes until one was killed. Nothing of
// it stays.
func TestDemoCluster(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	cmd := program(t, "demo", "cluster", "--kills", "1")
	cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
	b, err := cmd.CombinedOutput()
	out := string(b)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		`MariaDB listens on 127\.0\.0\.1:\d+, Redis on 127\.0\.0\.1:\d+\n`,
		`the shards are divided: a 86, b 85, c 85;`,
		`node b, process \d+, is killed with SIGKILL; it has called [1-9]\d* timers\n`,
		`the other nodes called all of them within \d`,
		`  \d+ calls, \d+ of them repeated, 0 early\n$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("nothing matches %s", want)
		}
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if t.Failed() {
		t.Log(out)
	}
}
