package httpapi

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// exposed is the text of /metrics and the names in it.
func exposed(t *testing.T, n *testNode) (text string, types map[string]string) {
	types = map[string]string{}
	text = n.do("GET", "/metrics", "").want(200).body
	for line := range strings.SplitSeq(text, "\n") {
		if meta, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(meta, " ")
			types[name] = kind
		}
	}
	return text, types
}

func TestEveryMetricIsExplained(t *testing.T) {
	n := newNode(t)
	text, types := exposed(t, n)
	for name := range types {
		if help[name] == "" {
			t.Errorf("no help for %s", name)
		}
	}
	elsewhere := map[string]bool{ // counted by packages that this test does not run
		"xtimer_wal_sync_seconds": true, "xtimer_wal_entries": true, "xtimer_wal_unsynced": true,
		"xtimer_ownership_age_seconds": true,                                                                                    // of a store that another server may take over
		"xtimer_alert_overflow_total":  true, "xtimer_alerts_total": true, "xtimer_incidents": true, "xtimer_alert_queue": true, // of alerts
		// of a node
		"xtimer_lease_age_seconds": true, "xtimer_clock_offset_seconds": true, "xtimer_shards_owned": true, "xtimer_mirror_lag_seconds": true,
		"xtimer_quiet_seconds_total": true, "xtimer_takeovers_total": true, "xtimer_handover_seconds": true,
	}
	for name := range help {
		if types[name] == "" && !elsewhere[name] {
			t.Errorf("help for %s, which is not exposed", name)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		name, _, _ := strings.Cut(line, " ")
		if name, _, _ = strings.Cut(name, "{"); name == "" || name == "#" {
			continue
		}
		if types[name] == "" && types[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")] == "" {
			t.Errorf("no type for %s", line)
		}
	}
}

func TestPromtoolTakesTheMetrics(t *testing.T) {
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: apt-get install prometheus")
	}
	text, _ := exposed(t, newNode(t))
	cmd := exec.CommandContext(t.Context(), tool, "check", "metrics")
	cmd.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
