package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFullFileSystem fills a small file system under xtimer while it fires, in two
// steps. At the first, creates are refused with 507 and all that was taken is
// called on time. At the second there is no byte left: creates are refused, and if
// it ends, it does so as when a disk fails. When the space is back, it takes and
// calls again, nothing is missing, and verify finds nothing.
func TestFullFileSystem(t *testing.T) {
	const size = 256 << 20
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 100), intervals: 60}
	dir, outside := smallFileSystem(t, size)
	tr.begin("--data-dir", dir) // the last one counts
	tr.p.dir = outside          // what is kept if it fails
	if _, err := os.Stat(filepath.Join(tr.p.dir, "journal")); err != nil {
		t.Fatal(err)
	}
	tr.busy()

	ballast := filepath.Join(outside, "ballast")
	fill(t, ballast, size*8/10) // a quarter is what new timers want
	tr.await507(10 * time.Second)
	calls := tr.called(2 * time.Second)
	t.Logf("creates are refused: %d calls in 2 s", calls)
	if calls < 100 {
		t.Error("what was taken is not called")
	}
	fill(t, ballast, size)
	full := time.Duration(setting("XTIMER_FULL", 4)) * time.Second
	calls = tr.r.total()
	var s stop
	ended := false
	select {
	case <-tr.p.done:
		s.down, ended = time.Now(), true
		if status := tr.p.cmd.ProcessState.ExitCode(); status != 70 {
			t.Errorf("it ended with status %d", status)
		}
	case <-time.After(full):
		tr.await507(10 * time.Second)
	}
	t.Logf("not a byte is left: %d calls; it ended: %v", tr.r.total()-calls, ended)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if ended {
		tr.p.start()
		s.up = time.Now()
		tr.stops = append(tr.stops, s)
	}
	tr.busy()
	tr.finish()
	tr.check(ended)
	if out, err := exec.Command(binary, "verify", "--from", "10m", "--server", tr.p.url("")).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}

// await507 waits until a create is refused as the full disk's.
func (tr *trial) await507(within time.Duration) {
	tr.t.Helper()
	var got string
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		body := fmt.Sprintf(`{"app":"full","name":"f-%d","schedule":{"delay":"1000h"},"callback":{"url":%q}}`, names.Add(1), tr.r.url)
		r, err := client.Post(tr.p.url("/v1/timers"), "application/json", strings.NewReader(body))
		if err != nil {
			got = err.Error()
			continue
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if got = fmt.Sprint(r.StatusCode, " ", string(b)); r.StatusCode == http.StatusInsufficientStorage && bytes.Contains(b, []byte(`"disk_full"`)) {
			return
		}
	}
	tr.t.Errorf("a create on a full disk is not refused with 507 disk_full within %v: %s", within, got)
}

// called counts the calls of a while.
func (tr *trial) called(d time.Duration) int {
	was := tr.r.total()
	time.Sleep(d)
	return tr.r.total() - was
}

// smallFileSystem mounts a tmpfs of a size where only the test and xtimer see it:
// xtimer, from now on, is in the name space of the mount, where dir is; to the test
// it is outside.
func smallFileSystem(t *testing.T, size int) (dir, outside string) {
	t.Helper()
	dir = t.TempDir()
	ready := filepath.Join(t.TempDir(), "ready")
	holder := exec.Command("unshare", "-m", "sh", "-c", fmt.Sprintf("mount -t tmpfs -o size=%d none %s && touch %s && exec sleep 3600", size, dir, ready))
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Skipf("no name space can be made here: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- holder.Wait() }()
	t.Cleanup(func() {
		holder.Process.Kill()
		<-ended
	})
	for {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		select {
		case err := <-ended:
			ended <- err
			t.Skipf("no file system can be mounted here: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	inside := filepath.Join(t.TempDir(), "xtimer")
	script := fmt.Sprintf("#!/bin/sh\nexec nsenter -m -t %d -- %s \"$@\"\n", holder.Process.Pid, binary)
	if err := os.WriteFile(inside, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	was := binary
	binary = inside
	t.Cleanup(func() { binary = was })
	return dir, filepath.Join(fmt.Sprintf("/proc/%d/root", holder.Process.Pid), dir)
}

// fill makes a file as large as it may be, up to a size.
func fill(t *testing.T, path string, size int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for part := make([]byte, 64<<10); ; {
		st, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if st.Size() >= int64(size) {
			return
		}
		if _, err := f.Write(part); err != nil {
			if len(part) == 1 {
				return
			}
			part = part[:max(len(part)/2, 1)]
		}
	}
}
