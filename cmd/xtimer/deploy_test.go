package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricNames are all names of metrics in a file.
func metricNames(t *testing.T, file string) []string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\bxtimer_[a-z_]+`).FindAllString(string(b), -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// TestDeployMetrics holds the dashboard and the alerts against what a server, or a node of a
// cluster, really exposes: a panel without data looks like a service without trouble.
func TestDeployMetrics(t *testing.T) {
	code, page := serves(t, "--data-dir", t.TempDir()).get("/metrics")
	if code != 200 {
		t.Fatalf("/metrics = %d %s", code, page)
	}
	// A node exposes its metrics while it waits for the database, which is not there.
	code, ofNode := starts(t, "--data-dir", t.TempDir(), "--cluster", "--node", "a", "--advertise", "127.0.0.1:1",
		"--mysql-dsn", "x:x@tcp(127.0.0.1:1)/x", "--redis-addr", "127.0.0.1:1").get("/metrics")
	if code != 200 {
		t.Fatalf("/metrics of a node = %d %s", code, ofNode)
	}
	for _, file := range []string{"../../deploy/grafana.json", "../../deploy/alerts.yml"} {
		names := metricNames(t, file)
		if len(names) < 8 {
			t.Errorf("%s names only %v", file, names)
		}
		for _, n := range names {
			if !regexp.MustCompile(`(?m)^` + n + `[{ ]`).MatchString(page + ofNode) {
				t.Errorf("%s uses %s, which no server exposes", file, n)
			}
		}
	}
	for complaint := range strings.Lines(promtool(t, page, "check", "metrics")) {
		// What the library says of the process is not ours to name.
		if strings.HasPrefix(complaint, "xtimer_") && !strings.Contains(complaint, "no help text") || strings.Contains(complaint, "error") {
			t.Errorf("promtool: %s", complaint)
		}
	}
}

func TestDeployFiles(t *testing.T) {
	b, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Error("grafana.json is not JSON")
	}
	if out := promtool(t, "", "check", "rules", "../../deploy/alerts.yml"); strings.Contains(out, "FAILED") {
		t.Error(out)
	}
}

// TestUnit has systemd read the unit, where there is systemd.
func TestUnit(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	b, err := os.ReadFile("../../deploy/xtimer.service")
	if err != nil {
		t.Fatal(err)
	}
	name := t.TempDir() + "/xtimer.service"
	unit := strings.ReplaceAll(string(b), "/usr/local/bin/xtimer", "/bin/true")
	if err := os.WriteFile(name, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(verify, "verify", name).CombinedOutput()
	if err != nil || strings.Contains(string(out), "xtimer.service") {
		t.Errorf("%v\n%s", err, out)
	}
}

// promtool runs Prometheus's own checker, where it is there.
func promtool(t *testing.T, stdin string, args ...string) (says string) {
	t.Helper()
	name, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not here: make test fetches it where it can")
		return ""
	}
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil && len(out) == 0 {
		t.Errorf("promtool %v: %v", args, err)
	}
	return string(out)
}
