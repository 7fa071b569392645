package servertest

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// CPU is the processor time that the server has used since its start (Linux).
func (s *Server) CPU() time.Duration {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatalf("cannot read the processor time of the server on %s: %v", s.Addr(), err)
	}
	// The second field is the program's name in brackets, with anything in it.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+2:])
	user, _ := strconv.ParseInt(string(f[11]), 10, 64)
	system, _ := strconv.ParseInt(string(f[12]), 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
