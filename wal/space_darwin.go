package wal

import "golang.org/x/sys/unix"

// unitOf is what a file system counts in (bytes).
func unitOf(s *unix.Statfs_t) uint64 { return uint64(s.Bsize) }
