package local

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
)

// TestDiskFullAndFree lets tables find no space, until writes are refused, and
// gives the space back: the store goes on without a restart, and has lost
// nothing that it acknowledged.
func TestDiskFullAndFree(t *testing.T) {
	var toggle errorfs.Toggle
	toggle.Injector = errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})
	s := small(errorfs.Wrap(vfs.NewMem(), &toggle))
	s.cfg.StallAfter = 300 * time.Millisecond // longer than a pause of backgroundError
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	acked := map[engine.TimerID]bool{}
	create := func(i int) error {
		tm := benchTimer(i)
		tm.Callback.Body = make([]byte, 8000)
		_, err := s.Apply(t.Context(), &engine.Change{Timer: tm, ID: tm.ID})
		if err == nil {
			acked[tm.ID] = true
		}
		return err
	}
	toggle.On()
	n, refused := 0, 0 // in a row: one may be a machine that stands still
	for ; refused < 5 && n < 10_000; n++ {
		switch err := create(n); {
		case err == nil:
			refused = 0
		case errors.Is(err, engine.ErrUnavailable):
			refused++
		default:
			t.Fatalf("create %d without space: %v", n, err)
		}
	}
	if refused < 5 {
		t.Fatalf("%d creates were taken without space", n)
	}
	for id := range acked {
		if _, err := s.Timer(t.Context(), id); err != nil {
			t.Fatalf("while the disk is full, timer %d: %v", id, err)
		}
	}
	t.Logf("%d creates, %d taken", n, len(acked))
	toggle.Off()
	for began := time.Now(); create(n+2) != nil; n++ {
		if time.Since(began) > 20*time.Second {
			t.Fatal("it does not go on when there is space again")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for id := range acked {
		if _, err := s.Timer(t.Context(), id); err != nil {
			t.Fatalf("timer %d was acknowledged: %v", id, err)
		}
	}
}

// TestHistoryCap drops the oldest hours when history is larger than it may be,
// and never the hour that is being written.
func TestHistoryCap(t *testing.T) {
	s := small(vfs.NewMem())
	s.cfg.HistoryMaxBytes = int64(capTasks) * 150
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const hours = 10
	for h := range int64(hours) {
		st := &engine.Settlement{Owner: "n"}
		for i := range capTasks {
			task := &engine.Task{Key: engine.Key{Timer: engine.TimerID(i + 1), Due: benchNow + h*hour + int64(i)}, Status: engine.Failed}
			task.Reason = strings.Repeat(engine.TimerID(uint64(i)*0x9E3779B97F4A7C15).String(), 3)
			st.Tasks = append(st.Tasks, engine.Record{Key: task.Key, Status: task.Status, Encoded: engine.AppendTask(nil, task)})
		}
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	size, err := s.historyBytes()
	if err != nil || size < s.cfg.HistoryMaxBytes {
		t.Fatalf("%d bytes of history: %v", size, err)
	}
	now := benchNow/hour*hour + (hours-1)*hour + hour/2
	for range hours {
		before, _ := s.Task(t.Context(), engine.Key{Timer: 5, Due: benchNow + 4*hour + 4})
		for range 3 { // until the space is back, one hour is enough
			if _, err := s.Sweep(t.Context(), now, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Task(t.Context(), engine.Key{Timer: 5, Due: benchNow + 5*hour + 4}); before != nil && err != nil {
			t.Fatal("two hours were dropped at once")
		}
		if err := s.db.Flush(); err != nil { // as time would
			t.Fatal(err)
		}
		if err := s.db.Compact(t.Context(), []byte{kindFailure}, []byte{kindRecord + 2}, false); err != nil {
			t.Fatal(err)
		}
		now += capEvery
	}
	if size, err = s.historyBytes(); err != nil || size > s.cfg.HistoryMaxBytes {
		t.Fatalf("%d bytes of history are left: %v", size, err)
	}
	for h, want := range map[int64]bool{0: false, 1: false, hours - 1: true} {
		_, err := s.Task(t.Context(), engine.Key{Timer: 5, Due: benchNow + h*hour + 4})
		if got := err == nil; got != want {
			t.Fatalf("hour %d: %v", h, err)
		}
		from := (benchNow + h*hour) / hour * hour
		if ms, err := s.LeftOut(t.Context(), from, from+hour); err != nil || (len(ms) == 60) == want {
			t.Fatalf("hour %d: kept is %v, and %d of its minutes are told as left out: %v", h, want, len(ms), err)
		}
	}
	if _, err := s.LastTask(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
}
