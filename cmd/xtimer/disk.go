package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/wal"
)

const (
	syncs     = 300             // how many are measured …
	syncsTime = 3 * time.Second // … at most for this long
)

// disk measures the syncs of the data directory, on which every acknowledged
// write waits, and the room there is.
func (r *report) disk(ctx context.Context, dataDir string) spread {
	dir := nearest(dataDir)
	s, err := measureSync(ctx, dir)
	if err != nil {
		r.unusablef("%v", err)
		return s
	}
	r.line("disk", "fsync", "p50 %s  p99 %s  max %s  in %s", span.Millis(s.p50), span.Millis(s.p99), span.Millis(s.max), dir)
	if s.p99 > 50*time.Millisecond {
		r.worthf("a sync takes %s at p99: creates wait for it, calls do not", span.Millis(s.p99))
	}

	// The server's own guard judges what is free, by one look.
	look, done := context.WithCancel(ctx)
	defer done()
	guard := wal.NewGuard(dir, func(path string) (free, all uint64, err error) {
		defer done()
		free, all, err = space(path)
		if err == nil {
			r.line("disk", "free space", "%s of %s", size(free), size(all))
		}
		return free, all, err
	}, slog.New(slog.DiscardHandler))
	if err := errors.Join(guard.Run(look), guard.Err()); err != nil {
		r.unusablef("%v", err)
	}
	return s
}

// nearest is the directory, or the one in which it would be made.
func nearest(dir string) string {
	for {
		if i, err := os.Stat(dir); err == nil && i.IsDir() {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			return dir
		}
		dir = up
	}
}

// measureSync appends small blocks to a file of its own and syncs each.
func measureSync(ctx context.Context, dir string) (spread, error) {
	f, err := os.CreateTemp(dir, "doctor-*")
	if err != nil {
		return spread{}, fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()

	var took []time.Duration
	block := make([]byte, 4096)
	for end := time.Now().Add(syncsTime); len(took) < syncs && time.Now().Before(end) && ctx.Err() == nil; {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return spread{}, fmt.Errorf("cannot write to %s: %w", dir, err)
		}
		if err := f.Sync(); err != nil {
			return spread{}, fmt.Errorf("cannot sync in %s: %w", dir, err)
		}
		took = append(took, time.Since(start))
	}
	return spreadOf(took), nil
}

// space tells how many bytes of the file system are free for us, of how many.
func space(dir string) (free, all uint64, err error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, 0, err
	}
	block := uint64(st.Bsize)
	return st.Bavail * block, st.Blocks * block, nil
}
