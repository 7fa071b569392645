package wal

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// slow is a disk whose syncs take as long as delay says.
func slow(delay *atomic.Int64) vfs.FS {
	return tiertest.Watch(vfs.NewMem(), func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			time.Sleep(time.Duration(delay.Load()))
		}
		return nil
	})
}

// While the disk stalls nothing on the fire path waits, it shows how much is at
// stake, Err reports it after 10 s, and all goes on when the disk does.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		j := start(t, quiet(slow(&delay)))
		defer j.end()
		delay.Store(int64(15 * time.Second))
		begin := time.Now()
		var last engine.Position
		for n := range uint64(1000) {
			j.Begin(sample)
			last = j.Finish(nth(n))
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(begin); d != time.Second {
			t.Errorf("appending took %s", d)
		}
		if n, age := j.Unsynced(); n != 2000 || age != time.Second {
			t.Errorf("%d unsynced for %s", n, age)
		}
		time.Sleep(8 * time.Second)
		if err := j.Err(); err != nil {
			t.Errorf("after 9 s: %v", err)
		}
		time.Sleep(2 * time.Second)
		if err := j.Err(); !errors.Is(err, ErrStalled) {
			t.Errorf("after 11 s: %v", err)
		}
		delay.Store(0)
		j.sync(last)
		time.Sleep(time.Second)
		if n, _ := j.Unsynced(); n != 0 || j.Err() != nil {
			t.Errorf("%d unsynced, %v", n, j.Err())
		}
	})
}

// After a minute the process ends itself, though its disk takes no last words.
func TestStallForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var delay atomic.Int64
		cfg := quiet(slow(&delay))
		code := make(chan int, 1)
		cfg.Exit = func(c int) { code <- c; runtime.Goexit() }
		j := start(t, cfg)
		delay.Store(int64(time.Hour))
		at := time.Now()
		p := j.Finish(nth(0))
		if err := j.Sync(t.Context(), p); err == nil || !strings.Contains(err.Error(), "stalls") {
			t.Errorf("%v", err)
		}
		if c := <-code; c != 70 {
			t.Errorf("exit code %d", c)
		}
		if d := time.Since(at); d != 61*time.Second {
			t.Errorf("after %s", d)
		}
		<-j.ran
		_ = j.Close()
	})
}

// A process that was stopped for minutes in the middle of a commit goes on: its disk
// has not had that time.
func TestStoppedProcess(t *testing.T) {
	cfg := quiet(vfs.NewMem())
	cfg.Exit = func(int) { t.Error("the process ends itself") }
	l := New(cfg)
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := committer{Log: l}
	c.alarm = time.AfterFunc(time.Hour, func() {})
	defer c.alarm.Stop()
	l.flying = time.Now().Add(-3 * time.Minute) // and the alarm rings once, when it goes on
	done := make(chan struct{})
	go func() { defer close(done); c.stalled() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not go on")
	}
}

// A failed sync of the log ends the process, and the result was not acknowledged.
func TestFatal(t *testing.T) {
	var fail atomic.Bool
	cfg := quiet(tiertest.Watch(vfs.NewMem(), func(op errorfs.Op) error {
		if fail.Load() && (op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync) && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	}))
	code := make(chan int, 1)
	cfg.Exit = func(c int) { code <- c }
	j := start(t, cfg)
	j.sync(j.Finish(nth(0)))
	fail.Store(true)
	err := j.Sync(t.Context(), j.Finish(nth(1)))
	if err == nil || !strings.HasPrefix(err.Error(), "journal /data/wal: ") || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("%v", err)
	}
	if c := <-code; c != 70 {
		t.Errorf("exit code %d", c)
	}
	if j.Err() == nil || j.Forget(1, nil) == nil {
		t.Error("a broken journal says it is well")
	}
}
