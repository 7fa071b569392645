package wal

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Guard watches the free space of the filesystem that the data is on, so that a
// full disk ends in refused creates and not in Pebble's endless retry.
//
//	total     low: creates refused    critical: history paused
//	  8 MiB     2 MiB                   1 MiB
//	 64 MiB    16 MiB                   8 MiB      a quarter, an eighth
//	  4 GiB     1 GiB                 512 MiB
//	100 GiB     2 GiB                   1 GiB      never more than this
//
// What is left below critical is the reserve of what fires anyway: a journal
// takes at most eight log files and as many tables of the size of its memtable
// (2 × 8 × 16 MiB, and on a disk under 4 GiB 2 × 8 × 1/256 of it; over MySQL 4 more
// for what is kept), progress and
// owed rows take the rest. What lies between low and critical, as much again,
// is for the history of all that was acknowledged before creates were refused:
// 512 MiB are 4 million records. Both states end a quarter above where they
// began, without a restart.
type Guard struct {
	path  string
	read  func(path string) (free, total uint64, err error)
	log   *slog.Logger
	state atomic.Int32
	free  atomic.Uint64
	total atomic.Uint64
}

// Space says how much room there is.
type Space int32

// The states of a Guard.
const (
	SpaceOK       Space = iota
	SpaceLow            // creates are refused
	SpaceCritical       // no history is written either
)

func (s Space) String() string { return [...]string{"ok", "low", "critical"}[s] }

// NewGuard builds a guard of the filesystem of path. Read defaults to statfs,
// log to slog.Default().
func NewGuard(path string, read func(path string) (free, total uint64, err error), log *slog.Logger) *Guard {
	if read == nil {
		read = statfs
	}
	if log == nil {
		log = slog.Default()
	}
	return &Guard{path: path, read: read, log: log.With("part", "wal")}
}

// State is what the last look found; before Run it is SpaceOK.
func (g *Guard) State() Space { return Space(g.state.Load()) }

// Err returns why creates are refused; nil when they are not.
func (g *Guard) Err() error {
	s := g.State()
	if s == SpaceOK {
		return nil
	}
	total := g.total.Load()
	low, _ := thresholds(total)
	return fmt.Errorf("the disk of %s is nearly full: %s of %s are free, new timers need %s",
		g.path, mib(g.free.Load()), mib(total), mib(low+low/4))
}

func mib(n uint64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// Run looks every second until ctx ends, and every 50 ms while the space is
// less than twice the lower limit: a small disk fills in less than a second.
func (g *Guard) Run(ctx context.Context) error {
	for failed := false; ; {
		wait := time.Second
		switch free, total, err := g.read(g.path); {
		case err == nil:
			failed = false
			g.look(free, total)
			if low, _ := thresholds(total); free < 2*low {
				wait = 50 * time.Millisecond
			}
		case !failed:
			// What was known last stands until it can be read again.
			g.log.Error("the free space cannot be read", "dir", g.path, "error", err)
			failed = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (g *Guard) look(free, total uint64) {
	g.free.Store(free)
	g.total.Store(total)
	was := g.State()
	is := nextSpace(was, free, total)
	if is == was {
		return
	}
	g.state.Store(int32(is))
	level := slog.LevelWarn
	if is == SpaceOK {
		level = slog.LevelInfo
	}
	g.log.Log(context.Background(), level, "free space", "dir", g.path, "state", is.String(), "was", was.String(), "free", free, "total", total)
}

// thresholds of a filesystem of this size; they are drawn above.
func thresholds(total uint64) (low, critical uint64) {
	low = min(max(total/20, 1<<30), 2<<30, total/4)
	return low, low / 2
}

// nextSpace is the state that follows. Rising needs a quarter more than falling
// did, so that it does not flutter.
func nextSpace(was Space, free, total uint64) Space {
	low, critical := thresholds(total)
	if was == SpaceCritical {
		critical += critical / 4
	}
	if was >= SpaceLow {
		low += low / 4
	}
	switch {
	case free < critical:
		return SpaceCritical
	case free < low:
		return SpaceLow
	}
	return SpaceOK
}

// statfs reads what an ordinary user may still take.
func statfs(path string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", path, err)
	}
	unit := unitOf(&s)
	return unit * uint64(s.Bavail), unit * s.Blocks, nil
}
