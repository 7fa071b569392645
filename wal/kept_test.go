package wal

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// TestKeepsSettled: what is forgotten is replayed only when it is asked for, after a start or
// a crash too, and the watermarks are as they were told.
func TestKeepsSettled(t *testing.T) {
	fs := vfs.NewCrashableMem()
	cfg := quiet(fs)
	cfg.Keep = time.Hour
	j := start(t, cfg)
	for n := range uint64(20) {
		j.sync(j.Finish(nth(n)))
	}
	for _, w := range []engine.Watermarks{{1: 5, 2: 6}, {1: 7, 255: 8}} {
		if err := j.Forget(10, &w); err != nil {
			t.Fatal(err)
		}
		j.sync(j.Finish(nth(uint64(j.Next()))))
	}
	check := func(j *journal) {
		t.Helper()
		if w := j.Settled(); *w != (engine.Watermarks{1: 7, 2: 6, 255: 8}) {
			t.Errorf("settled: %v", w)
		}
		var kept, rest replayed
		for _, r := range []*replayed{&rest, &kept} {
			if err := j.Replay(r == &kept, r.begin, r.finish); err != nil {
				t.Fatal(err)
			}
		}
		if len(kept.finished) != 22 || len(rest.finished) != 12 || j.Len() != 12 {
			t.Errorf("%d and %d records, length %d; want 22, 12, 12", len(kept.finished), len(rest.finished), j.Len())
		}
	}
	check(j)
	cfg.FS = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 1))})
	again := start(t, cfg)
	check(again)
	again.end()
	j.end()

	cfg.FS, cfg.Keep = fs, 0 // it keeps nothing any more
	j = start(t, cfg)
	if j.Settled() != nil {
		t.Error("watermarks of a journal that keeps nothing")
	}
	_ = j.Forget(11, nil)
	j.sync(j.Finish(nth(22)))
	if j.kept.floor != 11 {
		t.Errorf("it keeps from %d on", j.kept.floor)
	}
	j.end()
}

// TestKeepsSoMuch: groups that are forgotten go after a time, and the oldest first when they
// are too many bytes.
func TestKeepsSoMuch(t *testing.T) {
	now := time.Now()
	k := kept{keep: time.Minute, bytes: 100}
	for i := range uint64(10) { // of 30 bytes, one each 10 s
		k.add(i, 30, now.Add(time.Duration(i)*10*time.Second))
	}
	for _, x := range []struct {
		settled, want uint64
		at            time.Duration
	}{
		{settled: 0, want: 0},
		{settled: 3, want: 0, at: 30 * time.Second},
		{settled: 4, want: 1, at: 40 * time.Second},  // 120 bytes
		{settled: 4, want: 3, at: 80 * time.Second},  // those of the first 20 s are old
		{settled: 10, want: 7, at: 90 * time.Second}, // 90 bytes
		{settled: 10, want: 9, at: 149 * time.Second},
		{settled: 10, want: 10, at: time.Hour},
		{settled: 4, want: 4, at: time.Hour},
	} {
		if got := k.droppable(x.settled, now.Add(x.at)); got != x.want {
			t.Errorf("forgotten up to %d, after %v: from %d on groups stay, want %d", x.settled, x.at, got, x.want)
		}
	}
}
