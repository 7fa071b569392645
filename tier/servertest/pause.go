package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Pause stops it with SIGSTOP: connections stay, nothing is answered. It returns when
// all its threads stand still, which on a busy machine is later than the signal.
func (s *Server) Pause() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(patience); runs(s.cmd.Process.Pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

// Resume lets it go on after Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// runs reports whether a thread of a process has not been stopped; false where the
// system does not say.
func runs(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, t := range threads {
		b, err := os.ReadFile(t)
		if err != nil {
			continue // it has ended
		}
		if _, rest, ok := strings.Cut(string(b), ") "); ok && !strings.HasPrefix(rest, "T") {
			return true
		}
	}
	return false
}
