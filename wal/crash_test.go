package wal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
	"xtimer/wal/disk"
)

// recovered opens a crashed file system and holds what the journal promises: all
// that was acknowledged and not forgotten is there, as a prefix of what was
// appended, and positions go on.
func recovered(t *testing.T, fs vfs.FS, acked, forgotten uint64) error {
	t.Helper()
	l := New(quiet(fs))
	if err := l.Open(context.Background()); err != nil {
		return err
	}
	defer l.Close()
	var r replayed
	if err := l.Replay(false, r.begin, r.finish); err != nil {
		return err
	}
	if l.kept.floor > forgotten {
		return fmt.Errorf("forgotten up to %d, asked for was %d", l.kept.floor, forgotten)
	}
	next, err := r.inOrder(l.kept.floor)
	if err != nil {
		return err
	}
	if next < acked || uint64(l.Next()) != next {
		return fmt.Errorf("replayed up to %d, acknowledged were %d; next is %d", next, acked, l.Next())
	}
	return nil
}

// Power fails at every commit, with none, some or all of what was not synced on
// the disk.
func TestCrashClones(t *testing.T) {
	percents := []int{0, 30, 70, 100}
	runs := 3
	if testing.Short() {
		runs = 1
	}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		fs := vfs.NewCrashableMem()
		j := start(t, quiet(fs))
		var n, forgotten uint64
		for step := range 120 {
			for range 1 + rnd.IntN(20) {
				// Large enough that memtables are flushed and log files rotated.
				j.Finish(append(nth(n), make([]byte, rnd.IntN(2000))...))
				n++
			}
			if rnd.IntN(3) > 0 {
				j.sync(engine.Position(n - 1))
			}
			if rnd.IntN(4) == 0 {
				forgotten = max(forgotten, rnd.Uint64N(n+1))
				_ = j.Forget(engine.Position(forgotten), nil)
			}
			acked := j.durable.Load()
			clone := fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percents[rnd.IntN(4)], RNG: rnd})
			if err := recovered(t, clone, acked, forgotten); err != nil {
				t.Fatalf("seed %d, step %d, %d acknowledged: %v", seed, step, acked, err)
			}
		}
		j.end()
	}
}

// A power failure at any moment of the first start leaves a folder that opens.
func TestCrashWhileCreating(t *testing.T) {
	for i := 1; ; i++ {
		mem := vfs.NewCrashableMem()
		var clones []*vfs.MemFS
		var steps atomic.Int64
		fs := tiertest.Watch(mem, func(op errorfs.Op) error {
			switch op.Kind {
			case errorfs.OpCreate, errorfs.OpRename, errorfs.OpRemove, errorfs.OpMkdirAll, errorfs.OpFileSync:
				if steps.Add(1) != int64(i) {
					break
				}
				for k, pct := range []int{0, 20, 50, 50, 50, 80, 100} {
					rnd := rand.New(rand.NewPCG(uint64(i), uint64(k)))
					clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: pct, RNG: rnd}))
				}
			}
			return nil
		})
		j := start(t, quiet(fs))
		j.end()
		if len(clones) == 0 {
			if i < 20 {
				t.Fatalf("only %d steps", i)
			}
			return
		}
		for k, c := range clones {
			if err := recovered(t, c, 0, 0); err != nil {
				t.Fatalf("step %d, clone %d: %v", i, k, err)
			}
		}
	}
}

// Forgetting is not synced: a crash may bring back what was forgotten, in whole
// groups, and must not take an empty journal for one that lost its tail.
func TestForgetThenCrash(t *testing.T) {
	for _, percent := range []int{0, 100} {
		fs := vfs.NewCrashableMem()
		j := start(t, quiet(fs))
		for n := range uint64(50) {
			j.sync(j.Finish(nth(n)))
		}
		_ = j.Forget(50, nil)
		for j.Len() > 0 {
			_ = j.Forget(50, nil)
		}
		crash := func() *vfs.MemFS {
			return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(1, 1))})
		}
		if err := recovered(t, crash(), 50, 50); err != nil {
			t.Fatal(err)
		}
		j.sync(j.Finish(nth(50))) // durable, and with it the forgetting before it
		clone := crash()
		if err := recovered(t, clone, 51, 50); err != nil {
			t.Fatal(err)
		}
		again := start(t, quiet(clone))
		if again.kept.floor != 50 || again.Len() != 1 {
			t.Errorf("forgotten up to %d, %d left", again.kept.floor, again.Len())
		}
		again.end()
		j.end()
	}
}

// A journal that lost its last records is refused, with both figures, unless
// that is accepted; then positions go on after the gap, and once is enough.
func TestLostTail(t *testing.T) {
	fs := vfs.NewCrashableMem()
	j := start(t, quiet(fs))
	for n := range uint64(10) {
		j.sync(j.Finish(nth(n)))
	}
	before := fs.CrashClone(vfs.CrashCloneCfg{})
	for n := range uint64(10) {
		j.sync(j.Finish(nth(10 + n)))
	}
	j.end()
	// The disk of before, with the mark of now.
	mark, err := fs.UnsafeGetFileDataBuffer("/data/wal/watermark")
	if err != nil {
		t.Fatal(err)
	}
	put(t, before, "/data/wal/watermark", mark)
	cfg := quiet(before)
	_, err = tryStart(t, cfg)
	if !errors.Is(err, disk.ErrTailLost) || !strings.Contains(err.Error(), "at number 10") || !strings.Contains(err.Error(), "20 was durable") {
		t.Fatalf("%v", err)
	}
	cfg.AcceptDataLoss = true
	j = start(t, cfg)
	if r := j.replay(); len(r.finished) != 10 {
		t.Errorf("%d records", len(r.finished))
	}
	if p := j.Finish(nth(20)); p != 20 {
		t.Errorf("position %d", p)
	}
	j.end()
	cfg.AcceptDataLoss = false
	j = start(t, cfg)
	if r := j.replay(); len(r.finished) != 11 || j.Len() != 21 {
		t.Errorf("%d records, len %d", len(r.finished), j.Len())
	}
	_ = j.Forget(15, nil) // into the gap
	j.end()
	j = start(t, cfg)
	if j.kept.floor != 10 || j.Len() != 11 {
		t.Errorf("floor %d, len %d", j.kept.floor, j.Len())
	}
	j.end()
}

// A journal in use is not trusted without its mark, and one of a newer xtimer is
// refused.
func TestRefused(t *testing.T) {
	for says, spoil := range map[string]func(fs vfs.FS, j *journal) error{
		"watermark is missing": func(fs vfs.FS, _ *journal) error { return fs.Remove("/data/wal/watermark") },
		"journal format 02": func(_ vfs.FS, j *journal) error {
			return j.folder.DB.Set(keyVersion, []byte{formatVersion + 1}, pebble.Sync)
		},
	} {
		fs := vfs.NewMem()
		j := start(t, quiet(fs))
		if err := spoil(fs, j); err != nil {
			t.Fatal(err)
		}
		j.end()
		if _, err := tryStart(t, quiet(fs)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v", err)
		}
	}
}
