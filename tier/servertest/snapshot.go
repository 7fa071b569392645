package servertest

import (
	"os"
)

// Snapshot copies what is on the server's disk, as of now. The function that it returns puts
// the copy back, as an operator does who restores a snapshot of the disk: what was committed
// in between is lost. Both kill the server and start it again.
func (s *Server) Snapshot() (restore func()) {
	s.t.Helper()
	dir := s.t.TempDir()
	swap := func(to, from string) {
		s.t.Helper()
		s.Kill()
		err := os.RemoveAll(to)
		if err == nil {
			err = os.CopyFS(to, os.DirFS(from))
		}
		if err != nil {
			s.t.Fatalf("cannot copy the data of the server on %s: %v", s.Addr(), err)
		}
		s.Start()
	}
	swap(dir, s.dir)
	return func() {
		s.t.Helper()
		swap(s.dir, dir)
	}
}
