package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkApply applies 10,000 timers of a file with the command line, and then
// the same file again, which has to change nothing.
func BenchmarkApply(b *testing.B) {
	const timers = 10_000
	p, dir := startProcess(b), b.TempDir()
	var file strings.Builder
	for i := range timers {
		fmt.Fprintf(&file, `{"app":"app-%d","name":"order-%d","schedule":{"cron":"%d 9 * * *"},"callback":{"url":"http://127.0.0.1:9/"}}`+"\n", i%20, i, i%60)
	}
	if err := os.WriteFile(filepath.Join(dir, "timers.json"), []byte(file.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	apply := func(want string) float64 {
		started := time.Now()
		out, err := exec.Command(binary, "timer", "apply", "-f", dir, "--server", p.addr).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			b.Fatalf("%v: %s", err, out[max(0, len(out)-500):])
		}
		return time.Since(started).Seconds()
	}
	b.ReportMetric(apply(fmt.Sprintf("%d created, 0 updated", timers)), "apply-s")
	b.ReportMetric(apply(fmt.Sprintf("0 created, 0 updated, 0 deleted, %d unchanged", timers)), "again-s")
}

// BenchmarkTail tells how long after its end a task is on the terminal of who
// follows the tasks, with 1,000 fires a second of which he follows ten.
func BenchmarkTail(b *testing.B) {
	p, r := startProcess(b), startReceiver(b)
	r.counting = true
	var lines strings.Builder
	for i := range 100 {
		app := "busy"
		if i == 0 {
			app = "followed"
		}
		fmt.Fprintf(&lines, `{"app":%q,"name":"n-%d","schedule":{"every":"100ms"},"callback":{"url":%q}}`+"\n", app, i, r.url)
	}
	if _, err := createBatch(p.url(""), []byte(lines.String())); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(binary, "task", "tail", "--app", "followed", "-o", "json", "--server", p.addr)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var after []time.Duration
	for s := bufio.NewScanner(out); len(after) < 200 && s.Scan(); {
		seen := time.Now()
		var task struct{ Ended time.Time }
		if err := json.Unmarshal(s.Bytes(), &task); err != nil {
			b.Fatal(err)
		}
		after = append(after, seen.Sub(task.Ended))
	}
	if len(after) < 200 {
		b.Fatalf("%d tasks were shown", len(after))
	}
	slices.Sort(after)
	b.ReportMetric(ms(after[len(after)/2]), "shown-after-p50-ms")
	b.ReportMetric(ms(after[len(after)*99/100]), "shown-after-p99-ms")
}
