package wal

import "golang.org/x/sys/unix"

// unitOf is what a file system counts in (bytes). Bsize is not: it is the size of
// its best transfer, over NFS a megabyte.
func unitOf(s *unix.Statfs_t) uint64 { return uint64(s.Frsize) }
