package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const mebi = 1 << 20

func TestThresholds(t *testing.T) {
	for _, c := range []struct{ total, low, critical uint64 }{
		{8 * mebi, 2 * mebi, 1 * mebi},
		{64 * mebi, 16 * mebi, 8 * mebi},
		{1 << 30, 256 * mebi, 128 * mebi},
		{4 << 30, 1 << 30, 512 * mebi},
		{30 << 30, 1536 * mebi, 768 * mebi},
		{100 << 30, 2 << 30, 1 << 30},
		{20 << 40, 2 << 30, 1 << 30},
	} {
		low, critical := thresholds(c.total)
		if low != c.low || critical != c.critical {
			t.Errorf("%d MiB: %d, %d MiB", c.total/mebi, low/mebi, critical/mebi)
		}
	}
}

// A 64 MiB disk fills and empties again; states come and go in time, with no
// restart and no flutter at the edges, also while it cannot be read.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Int64
		var broken atomic.Bool
		free.Store(60)
		g := NewGuard("/data", func(string) (uint64, uint64, error) {
			if broken.Load() {
				return 0, 0, errors.New("gone")
			}
			return uint64(free.Load()) * mebi, 64 * mebi, nil
		}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- g.Run(ctx) }()
		for _, c := range []struct {
			free int64
			wait time.Duration
			want Space
		}{
			{60, 0, SpaceOK},
			{31, time.Second, SpaceOK}, // from here on it looks closer
			{15, 50 * time.Millisecond, SpaceLow},
			{17, 50 * time.Millisecond, SpaceLow},
			{19, 50 * time.Millisecond, SpaceLow},
			{7, 50 * time.Millisecond, SpaceCritical},
			{9, 50 * time.Millisecond, SpaceCritical},
			{10, 50 * time.Millisecond, SpaceLow},
			{0, 50 * time.Millisecond, SpaceCritical},
			{20, 50 * time.Millisecond, SpaceOK},
			{19, 50 * time.Millisecond, SpaceOK},
			{1, 50 * time.Millisecond, SpaceCritical},
			{60, 50 * time.Millisecond, SpaceOK},
		} {
			free.Store(c.free)
			time.Sleep(c.wait + time.Millisecond) // past its look, which takes no time
			synctest.Wait()
			if s := g.State(); s != c.want {
				t.Errorf("%d MiB free: %s, want %s", c.free, s, c.want)
			}
			if err := g.Err(); (err == nil) != (c.want == SpaceOK) {
				t.Errorf("%d MiB free: %v", c.free, err)
			}
		}
		free.Store(12)
		time.Sleep(time.Second)
		if err := g.Err(); err == nil || err.Error() != "the disk of /data is nearly full: 12.0 MiB of 64.0 MiB are free, new timers need 20.0 MiB" {
			t.Errorf("%v", err)
		}
		broken.Store(true)
		time.Sleep(time.Minute)
		if g.State() != SpaceLow {
			t.Errorf("unreadable: %s", g.State())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestStatfs(t *testing.T) {
	free, total, err := statfs(t.TempDir())
	if err != nil || free == 0 || total < free {
		t.Errorf("%d of %d: %v", free, total, err)
	}
	if _, _, err := statfs("/nowhere/at/all"); err == nil || !strings.Contains(fmt.Sprint(err), "/nowhere") {
		t.Errorf("%v", err)
	}
}
