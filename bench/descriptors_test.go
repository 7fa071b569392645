package bench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestNoDescriptors leaves xtimer, under load, a few descriptors more than it has
// open, for which clients, calls and stores compete. If a store needs one and gets
// none, it may end as when a disk fails, and is started again. When there are
// descriptors again it takes connections and calls as before, and nothing is missing.
func TestNoDescriptors(t *testing.T) {
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 200), intervals: 20}
	tr.begin()
	tr.busy()
	mute := startMute(t)
	var lines bytes.Buffer
	for range 100 {
		fmt.Fprintf(&lines, `{"app":"mute","name":"m-%d","schedule":{"every":"1s"},"callback":{"url":%q,"timeout":"2s"}}`+"\n", names.Add(1), mute)
	}
	if _, err := createBatch(tr.p.url(""), lines.Bytes()); err != nil {
		t.Fatal(err)
	}
	pid := tr.p.cmd.Process.Pid
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	var was unix.Rlimit
	few := unix.Rlimit{Cur: uint64(len(open)) + 8}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
		t.Fatal(err)
	}
	few.Max = was.Max
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Skipf("the limit of a process cannot be set here: %v", err)
	}
	s := stop{down: time.Now()}
	for range 200 { // clients that only hold on to what they get
		if c, err := net.DialTimeout("tcp", tr.p.addr, time.Second); err == nil {
			defer c.Close()
		}
	}
	called, ended := tr.r.total(), false
	select {
	case <-tr.p.done:
		ended = true
	case <-time.After(4 * time.Second):
	}
	t.Logf("with %d descriptors: %d calls in 4 s; it ended: %v", few.Cur, tr.r.total()-called, ended)
	if ended {
		if status := tr.p.cmd.ProcessState.ExitCode(); status != 70 {
			t.Errorf("it ended with status %d", status)
		}
		tr.p.start()
	} else if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
		t.Fatal(err)
	}
	s.up = time.Now()
	tr.stops = append(tr.stops, s)
	if !ended && tr.p.metric("xtimer_http_accept_errors_total") == 0 {
		t.Error("it never lacked one: the trial says nothing")
	}
	tr.busy()
	tr.finish()
	tr.check(ended)
}
