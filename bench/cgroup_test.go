package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMemoryLimit fills xtimer with timers inside a control group with a memory
// limit, far more than fit: what does not fit is refused with a 503 that says so,
// the kernel kills nothing, and what was taken is called.
//
// In the short form they are due within a minute: all of them are in the wheel, and
// each that was taken is waited for. With XTIMER_TIMERS=5000000 XTIMER_MEMORY=512
// (MiB) they are of the coming hour, nobody waits for them, and all of them may fit:
// there the calls are those of the load beside them.
func TestMemoryLimit(t *testing.T) {
	limit, n := setting("XTIMER_MEMORY", 128), setting("XTIMER_TIMERS", 300_000)
	short := n <= 1_000_000
	beside(t)
	tr := &trial{t: t, program: limited(t, int64(limit)<<20), rate: setting("XTIMER_RATE", 300), intervals: 10}
	tr.begin()
	r := draw(tr.seed, 2)
	start, over := time.Now().Add(40*time.Second), 15*time.Second
	if !short {
		over = 55 * time.Minute
	}

	taken, refused, away := 0, 0, 0
	for i := 0; i < n && refused < 20; {
		var lines bytes.Buffer
		var dues []int64
		for range 1000 {
			due := start.Add(time.Duration(r.Int64N(int64(over))))
			oneShot(&lines, tr.r.url, due, patience)
			dues = append(dues, due.UnixMilli())
			i++
		}
		ids, err := createBatch(tr.p.url(""), lines.Bytes())
		switch {
		case err == nil:
			taken += 1000
			if short {
				tr.acknowledge(ids, dues)
			}
		case strings.Contains(err.Error(), "memory_full"):
			refused++
			time.Sleep(50 * time.Millisecond)
		case strings.Contains(err.Error(), "tier_unavailable") && away < 20: // a disk that all tests write to at once
			away++
		default:
			t.Fatalf("after %d timers: %v", taken, err)
		}
	}
	if refused == 0 && short {
		t.Errorf("all %d timers were taken: the trial says nothing of the limit", taken)
	}
	time.Sleep(2 * time.Second)
	rss := tr.p.rss()
	tr.finish()
	tr.check(false)
	t.Logf("limit %d MiB: %d timers taken, resident %d MiB then", limit, taken, rss>>20)
	select {
	case <-tr.p.done:
		t.Error("the process has ended")
	default:
	}
}

// limitMemory starts xtimer, from now on and until the test ends, in a control group
// with a memory limit, in bytes.
func limitMemory(t *testing.T, limit int64) {
	t.Helper()
	was := binary
	binary = limited(t, limit)
	t.Cleanup(func() { binary = was })
}

// limited makes a program that is xtimer in a control group with a memory limit, in bytes.
func limited(t *testing.T, limit int64) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "xtimer")
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", memoryGroup(t, limit), binary)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return program
}

// memoryGroup makes a control group with a memory limit, in bytes.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	root, file := "/sys/fs/cgroup", "memory.max"
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil {
		root, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
	}
	group := filepath.Join(root, "xtimer-trial-"+strconv.Itoa(os.Getpid()))
	err := os.Mkdir(group, 0o755)
	if err == nil {
		t.Cleanup(func() {
			for range 100 { // until its processes are gone
				if os.Remove(group) == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Errorf("cannot remove %s", group)
		})
		err = os.WriteFile(filepath.Join(group, file), []byte(strconv.FormatInt(limit, 10)), 0o644)
	}
	if err == nil {
		err = exec.Command("sh", "-c", "echo $$ > "+group+"/cgroup.procs").Run()
	}
	if err != nil {
		t.Skipf("no control group with a memory limit can be made here: %v", err)
	}
	return group
}
