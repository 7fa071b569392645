package wal

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// commits reads the number of commits from the journal's own metrics.
func (l *Log) commits() int {
	var w strings.Builder
	l.set.WritePrometheus(&w)
	for line := range strings.Lines(w.String()) {
		if v, ok := strings.CutPrefix(line, "xtimer_wal_sync_seconds_count "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(v))
			return n
		}
	}
	return 0
}

// cpuTime is what this process has used so far.
func cpuTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// diskUse is the sum of the files of a folder, as the disk counts them.
func diskUse(t testing.TB, dir string) (n uint64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if i, err := os.Stat(filepath.Join(dir, e.Name())); err == nil {
				n += uint64(i.Sys().(*syscall.Stat_t).Blocks) * 512
			}
		}
		return nil
	})
	return n
}
