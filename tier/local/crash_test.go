package local

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
	"xtimer/wal/disk"
)

// How much of each trial every run does. The race detector makes them ten times
// as slow: race_test.go takes less.
var (
	powerChanges = 80       // that TestPowerLoss makes
	powerStep    = int64(5) // and loses the power at one write in so many
	errorStep    = int32(7) // TestDiskErrors fails one operation in so many
	bitFlips     = 100
	capTasks     = 2000 // an hour, in TestHistoryCap
)

var every = flag.Bool("every", false, "every write of a script of 200 steps, every operation of the disk, and 1,000 flipped bits")

// small is a store that flushes often. When its disk fails, the goroutine that
// found it stops for ever, with all its locks: to a test, the process has ended.
func small(fs vfs.FS) *Store {
	return New(Config{
		Dir: "/data/cold", FS: fs, MemTableBytes: 64 << 10, StallAfter: time.Minute, // the machine may be busy
		Exit: func(int) { select {} }, Log: slog.New(slog.DiscardHandler),
	})
}

func script(seed uint64) *tiertest.Script {
	rng := rand.New(rand.NewPCG(seed, seed))
	return tiertest.NewScript(func(_ string, n int) int { return rng.IntN(n) })
}

func dump(t *testing.T, s *Store) string {
	t.Helper()
	d, err := tiertest.Dump(t, s, tiertest.ScriptIDs())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// reopened is what a store on fs holds, after steps.
func reopened(t *testing.T, fs vfs.FS, steps ...tiertest.Step) string {
	t.Helper()
	s := small(fs)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, step := range steps {
		step.Do(t, s)
	}
	return dump(t, s)
}

// TestDiskErrors fails the n-th operation of the disk, for every n: what was
// acknowledged is there after a restart, and nobody waits for ever.
func TestDiskErrors(t *testing.T) {
	for _, sticky := range []bool{false, true} {
		step := errorStep // the rest by -run TestDiskErrors -every
		if testing.Short() {
			step = 17
		} else if *every {
			step = 1
		}
		for _, fault := range []error{syscall.EIO, syscall.ENOSPC, syscall.EMFILE} {
			for n := int32(0); ; n += step {
				if !diskError(t, n, sticky, fault) {
					t.Logf("%v, sticky %v: %d operations are the end", fault, sticky, n)
					break
				}
			}
		}
	}
}

// diskError runs a store whose n-th disk operation fails; false when it was
// never reached.
func diskError(t *testing.T, n int32, sticky bool, fault error) (reached bool) {
	disk := vfs.NewCrashableMem()
	hit := make(chan struct{}, 1)
	count := errorfs.OnIndex(n)
	var failing, dead atomic.Bool
	fs := tiertest.Watch(disk, func(op errorfs.Op) error {
		if dead.Load() {
			select {} // or its flushes, which fail at once, go on for ever
		}
		if fault == syscall.EMFILE && !takesDescriptor(op.Kind) || fault != syscall.EMFILE && !sticky && op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		if err := count.MaybeError(op); err != nil || failing.Load() {
			failing.Store(sticky)
			select {
			case hit <- struct{}{}:
			default:
			}
			return fault
		}
		return nil
	})
	acked := make(chan engine.TimerID, 1000)
	done := make(chan struct{}, 2)
	go func() {
		defer func() { done <- struct{}{} }()
		s := small(fs)
		s.cfg.Exit = func(int) {
			time.Sleep(10 * time.Millisecond) // others may be answered meanwhile
			done <- struct{}{}
			select {}
		}
		s.cfg.StallAfter = 500 * time.Millisecond
		if s.Open(context.Background()) != nil {
			return
		}
		for i := range 30 {
			id := engine.TimerID(i + 1)
			tm := benchTimer(i)
			tm.ID, tm.Callback.Body = id, make([]byte, 6000) // flushes now and then
			if _, err := s.Apply(context.Background(), &engine.Change{Timer: tm, ID: id}); err == nil {
				acked <- id
			} else if !failed(err) {
				t.Errorf("operation %d: %v", n, err)
			}
		}
		_ = s.Close()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute): // each of the 30 may wait for StallAfter, and a core for longer
		t.Fatalf("operation %d, %v, sticky %v: it hangs", n, fault, sticky)
	}
	dead.Store(true)
	promised := map[engine.TimerID]bool{}
	for len(acked) > 0 {
		promised[<-acked] = true
	}
	clone := disk.CrashClone(vfs.CrashCloneCfg{})
	s := small(clone)
	if err := s.Open(t.Context()); err != nil {
		if len(promised) == 0 {
			return true // it did not come into being
		}
		t.Fatalf("operation %d, %v: after a restart: %v", n, fault, err)
	}
	defer s.Close()
	for id := range promised {
		if _, err := s.Timer(t.Context(), id); err != nil {
			t.Fatalf("operation %d, %v, sticky %v: timer %d was acknowledged: %v", n, fault, sticky, id, err)
		}
	}
	return len(hit) > 0
}

// takesDescriptor reports whether an operation can fail because the process has none left.
func takesDescriptor(op errorfs.OpKind) bool {
	switch op {
	case errorfs.OpCreate, errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpReuseForWrite, errorfs.OpLock, errorfs.OpList:
		return true
	}
	return false
}

// failed reports whether an error is one that a failing disk may give.
func failed(err error) bool {
	return errors.Is(err, engine.ErrUnavailable) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) ||
		strings.Contains(err.Error(), "disk failed")
}

// killed is a store as a kill leaves it, and all that is in it: a part of that in tables, which
// were flushed and merged, and a part in the log.
func killed(t *testing.T) (disk vfs.FS, want string) {
	t.Helper()
	mem := vfs.NewMem()
	s := small(mem)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := script(7)
	for range 3 {
		for range 25 {
			r.Step().Do(t, s)
		}
		if err := s.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		r.Step().Do(t, s)
	}
	want = dump(t, s)
	// Files that Pebble writes while they are copied would be of several instants.
	for m := s.db.Metrics(); m.Flush.NumInProgress+m.Compact.NumInProgress > 0; m = s.db.Metrics() {
		time.Sleep(time.Millisecond)
	}
	disk = copyFS(t, mem, "", 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := openFlipped(t, copyFS(t, disk, "", 0)); err != nil || got != want {
		t.Fatalf("it opens with %v and\n%s", err, tiertest.Diff(got, want))
	}
	return disk, want
}

// TestBitFlips flips one bit anywhere in a closed store: it refuses to open, or
// a read returns an error, or all that was acknowledged is there.
func TestBitFlips(t *testing.T) {
	killed, want := killed(t)
	flips, refused := bitFlips, 0
	if testing.Short() {
		flips = 30
	} else if *every {
		flips = 1000
	}
	files := filesOf(t, killed)
	for i := range flips {
		f := files[i%len(files)]
		if f.size == 0 {
			continue
		}
		at := rand.New(rand.NewPCG(1, uint64(i))).Int64N(f.size * 8)
		got, err := openFlipped(t, copyFS(t, killed, f.path, at))
		if err != nil {
			refused++
			continue
		}
		if got != want {
			t.Errorf("bit %d of %s: it opens with something else:\n%s", at, f.path, tiertest.Diff(got, want))
		}
	}
	t.Logf("%d of %d flips were refused", refused, flips)
}

// openFlipped reads a store that may be damaged; that it calls Exit is a
// refusal, too.
func openFlipped(t *testing.T, fs vfs.FS) (string, error) {
	type outcome struct {
		got string
		err error
	}
	done := make(chan outcome, 2)
	go func() {
		s := small(fs)
		s.cfg.Exit = func(int) {
			done <- outcome{err: errors.New("it ended itself")}
			select {}
		}
		if err := s.Open(context.Background()); err != nil {
			done <- outcome{err: err}
			return
		}
		got, err := tiertest.Dump(t, s, tiertest.ScriptIDs())
		_ = s.Close()
		done <- outcome{got, err}
	}()
	o := <-done
	return o.got, o.err
}

type file struct {
	path string
	size int64
}

func filesOf(t *testing.T, fs vfs.FS) (out []file) {
	t.Helper()
	names, err := fs.List("/data/cold")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		p := fs.PathJoin("/data/cold", n)
		if st, err := fs.Stat(p); err == nil && !st.IsDir() && n != "LOCK" {
			out = append(out, file{p, st.Size()})
		}
	}
	return out
}

// copyFS copies the store's files, with one bit of one of them turned over.
func copyFS(t *testing.T, from vfs.FS, path string, bit int64) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	if err := to.MkdirAll("/data/cold", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range filesOf(t, from) {
		r, err := from.Open(f.path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		if f.path == path {
			b[bit/8] ^= 1 << (bit % 8)
		}
		w, err := to.Create(f.path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
	}
	return to
}

// TestLostTail takes acknowledged commits away from the end of the log: the
// start notices, unless it is told to accept it.
func TestLostTail(t *testing.T) {
	mem := vfs.NewMem()
	s := small(mem)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	create := func(id engine.TimerID) {
		t.Helper()
		tm := benchTimer(int(id))
		tm.ID = id
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: tm, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	create(1)
	early := copyFS(t, mem, "", 0)
	create(2)
	late := copyFS(t, mem, "", 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The note of the later state beside the log of the earlier one.
	b := readFile(t, late, "/data/cold/watermark")
	w, err := early.Create("/data/cold/watermark", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()

	s = small(early)
	if err := s.Open(t.Context()); !errors.Is(err, disk.ErrTailLost) {
		t.Fatalf("the loss was not noticed: %v", err)
	}
	s.cfg.AcceptLoss = true
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	s.cfg.AcceptLoss = false
	if err := s.Open(t.Context()); err != nil {
		t.Fatalf("once accepted, it is forgotten: %v", err)
	}
	_ = s.Close()
}

func readFile(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	r, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestFatal sees what a failing sync leaves: the process ends, and nobody is answered.
func TestFatal(t *testing.T) {
	var toggle errorfs.Toggle
	toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync {
			if strings.HasSuffix(op.Path, ".log") {
				return syscall.EIO
			}
		}
		return nil
	})
	code := make(chan int, 1)
	s := small(errorfs.Wrap(vfs.NewMem(), &toggle))
	s.cfg.Exit = func(c int) { code <- c; select {} }
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	toggle.On()
	tm := benchTimer(1)
	_, err := s.Apply(t.Context(), &engine.Change{Timer: tm, ID: tm.ID})
	if err == nil || !failed(err) {
		t.Fatalf("a create whose sync failed: %v", err)
	}
	if got := <-code; got != 70 {
		t.Fatalf("exit status %d", got)
	}
	if err := s.Close(); err == nil {
		t.Fatal("Close does not report that the disk failed")
	}
}
