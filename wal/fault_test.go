package wal

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// script is what the sweeps run: records of up to 8 KiB, most of them waited
// for, some forgotten, so that log files rotate, memtables are flushed and
// tables compacted. It ends at the first error and returns what was acknowledged.
func script(j *journal, steps int) (acked, forgotten uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for n := range uint64(steps) {
		p := j.Finish(append(nth(n), make([]byte, 8<<10)...))
		if n%4 == 3 {
			continue
		}
		if err := j.Sync(ctx, p); err != nil {
			if ctx.Err() != nil {
				j.t.Error("Sync hangs")
			}
			return acked, forgotten
		}
		acked = n + 1
		if n%16 == 8 {
			forgotten = n - 4
			_ = j.Forget(engine.Position(forgotten), nil)
		}
	}
	return acked, forgotten
}

// patience is how long a process on a failing disk may go on without an end.
const patience = 10 * time.Second

// long asks for the whole of the sweeps, which take a minute.
var long = os.Getenv("XTIMER_TEST_LONG") != ""

// life is what became of a process on a failing disk.
type life struct {
	end              string // refused, died or whole
	acked, forgotten uint64
}

// live runs the script on fs until it ends or the process would.
func live(t *testing.T, fs vfs.FS, steps int) life {
	died := make(chan struct{})
	cfg := quiet(fs)
	cfg.StallAfter, cfg.ExitAfter = 100*time.Millisecond, 200*time.Millisecond
	cfg.Exit = func(int) { close(died) }
	opened, ended := make(chan error, 1), make(chan life, 1)
	go func() {
		j, err := tryStart(t, cfg)
		opened <- err // never sent when Open itself died
		if err != nil {
			return
		}
		l := life{end: "died"}
		l.acked, l.forgotten = script(j, steps)
		j.stop()
		select {
		case <-died:
		case err := <-j.ran:
			if err == nil {
				l.end, l.acked = "whole", uint64(j.Next())
			}
			closed := make(chan error, 1)
			go func() { closed <- j.Close() }()
			select {
			case <-died: // in the background, meanwhile
			case <-closed:
			}
		}
		ended <- l
	}()
	late := time.After(patience)
	var err error
	select {
	case err = <-opened:
	case <-died:
		select {
		case err = <-opened:
		default:
			return life{end: "died"}
		}
	case <-late:
		t.Fatal("Open hangs")
	}
	if err != nil {
		return life{end: "refused"}
	}
	select {
	case l := <-ended:
		return l
	case <-late:
		t.Fatal("the process neither goes on nor ends")
		return life{}
	}
}

// The disk fails at the i-th operation, once or from then on, for every i, or in the short form
// for every 23rd: what was acknowledged before is there afterwards, and nobody waits for ever.
func TestFailingDisk(t *testing.T) {
	steps, stride := 160, 23
	if long {
		stride = 1
	}
	for _, sticky := range []bool{false, true} {
		for _, fail := range []error{syscall.EIO, syscall.ENOSPC} {
			t.Run(fmt.Sprintf("%d,sticky=%v", fail, sticky), func(t *testing.T) {
				ends := map[string]int{}
				for i := int64(0); ; i += int64(stride) {
					mem := vfs.NewCrashableMem()
					var n atomic.Int64
					l := live(t, tiertest.Watch(mem, func(op errorfs.Op) error {
						if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
							if k := n.Add(1) - 1; k == i || sticky && k > i {
								return fail
							}
						}
						return nil
					}), steps)
					ends[l.end]++
					for seed, percent := range []int{0, 50, 100} {
						rnd := rand.New(rand.NewPCG(uint64(i), uint64(seed)))
						clone := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rnd})
						if err := recovered(t, clone, l.acked, l.forgotten); err != nil {
							t.Fatalf("failed at operation %d, %d%% of the rest written: %v", i, percent, err)
						}
					}
					if n.Load() <= i {
						t.Logf("failed at each of %d operations: %v", i, ends)
						if ends["refused"] == 0 || ends["died"] == 0 {
							t.Error("the sweep hit nothing")
						}
						return
					}
				}
			})
		}
	}
}
