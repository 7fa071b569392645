package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// Damaged blocks of old history: who reads them gets an error, what else is there
// is read as before, and the store takes writes.
func TestDamagedHistory(t *testing.T) {
	mem := vfs.NewMem()
	s := small(mem)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	const n = 3000
	st := &engine.Settlement{Owner: "n"}
	nth := func(i int) *engine.Task {
		k := engine.Key{Timer: engine.TimerID(i%7 + 1), Due: benchNow + int64(i)}
		return &engine.Task{Key: k, Status: engine.Succeeded, Reason: strings.Repeat(engine.TimerID(uint64(i)*0x9E3779B97F4A7C15).String(), 3)}
	}
	for i := range n {
		x := nth(i)
		st.Tasks = append(st.Tasks, engine.Record{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	createOne(t, s, n) // not in the table of history
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	flipped := 0
	for _, f := range filesOf(t, mem) {
		if strings.HasSuffix(f.path, ".sst") && f.size > 100<<10 {
			b, err := mem.UnsafeGetFileDataBuffer(f.path)
			if err != nil {
				t.Fatal(err)
			}
			for at := len(b) / 4; at < len(b)/2; at++ {
				b[at] ^= 0xff
			}
			flipped++
		}
	}
	if flipped == 0 {
		t.Fatalf("no large table among %v", filesOf(t, mem))
	}

	var said bytes.Buffer
	s = small(mem)
	s.cfg.Exit = func(int) { t.Error("the store ends itself") }
	s.cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	read, refused := 0, 0
	for i := 0; i < n; i += 5 { // a block of a table has many
		switch got, err := s.Task(t.Context(), nth(i).Key); {
		case err != nil:
			refused++
		case fmt.Sprint(got) != fmt.Sprint(nth(i)):
			t.Fatalf("record %d is read as %v", i, got)
		default:
			read++
		}
	}
	t.Logf("%d records are read, %d are refused", read, refused)
	if read == 0 || refused == 0 {
		t.Error("they should be some of each")
	}
	if _, _, err := s.Tasks(t.Context(), engine.TaskFilter{}, engine.Key{}, n); err == nil {
		t.Error("the list of all is whole")
	}
	if err := s.Settle(t.Context(), st); err != nil { // so that a compaction has two tables to merge
		t.Fatal(err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Compact(t.Context(), []byte{kindMeta}, []byte{kinds}, false); err == nil {
		t.Error("a compaction says nothing of what is damaged")
	}
	createOne(t, s, n+1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if lines := strings.Count(said.String(), "the store is damaged"); lines == 0 || lines > 10 {
		t.Errorf("%d lines:\n%s", lines, said.String())
	}
}

// A sweep that is given up while its delete waits for the disk: the committer still
// judges it. Only the race detector sees it write to what was returned.
func TestDropIsGivenUp(t *testing.T) {
	var slow atomic.Bool
	s := small(tiertest.Watch(vfs.NewMem(), func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && slow.Load() {
			time.Sleep(200 * time.Millisecond)
		}
		return nil
	}))
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	slow.Store(true)
	go func() {
		_ = s.Settle(context.Background(), &engine.Settlement{Owner: "n", Marks: []engine.Mark{{Shard: 0, W: 1}}})
	}()
	time.Sleep(50 * time.Millisecond)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if dropped, err := s.dropRange(ctx, 0, hour, false); dropped || err == nil {
		t.Errorf("it was dropped: %v, %v", dropped, err)
	}
	time.Sleep(500 * time.Millisecond) // a call to the store would hide the race, and so would the next line
	slow.Store(false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func createOne(t *testing.T, s *Store, i int) {
	t.Helper()
	tm := benchTimer(i)
	if _, err := s.Apply(t.Context(), &engine.Change{Timer: tm, ID: tm.ID}); err != nil {
		t.Fatal(err)
	}
}

// TestSweepPastDamage: a finished timer whose definition is cut is not removed, and keeps
// neither history nor what ended after it from being removed.
func TestSweepPastDamage(t *testing.T) {
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const cut, n = 1, sweepPiece + 100
	var cs []*engine.Change
	for i := range n {
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: engine.TimerID(i + cut), Version: 1, Generation: 1, Status: engine.Finished}
		x.App, x.Name, x.At = "a", fmt.Sprint("n", i), benchNow-int64(n)+int64(i)
		x.Schedule.At, x.LastDue, x.UpdatedAt = x.At, x.At, x.At
		cs = append(cs, &engine.Change{Timer: x, ID: x.ID})
	}
	for _, a := range s.ApplyAll(t.Context(), cs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	old := &engine.Task{Key: engine.Key{Timer: cut, Due: benchNow - 10*day}, Status: engine.Succeeded}
	if err := s.Settle(t.Context(), &engine.Settlement{Tasks: []engine.Record{{Key: old.Key, Status: old.Status, Encoded: engine.AppendTask(nil, old)}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set(timerKey(nil, cut), []byte{1, 2}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Pay: []engine.Key{{Timer: 1, Due: 1}}, LeftOut: []int64{0}}); err != nil { // there is a view that has it
		t.Fatal(err)
	}
	if ts, next, err := s.Timers(t.Context(), engine.TimerFilter{}, "", 1000); err != nil || next != "" || len(ts) != n-1 {
		t.Errorf("%d timers are listed beside the one that cannot be read, %q, %v", len(ts), next, err)
	}
	if defs, err := s.Load(t.Context(), []engine.TimerID{cut, cut + 1}); err != nil || defs[1] == nil {
		t.Errorf("beside the one that cannot be read: %v, %v", defs, err)
	} else if _, err := engine.DecodeTimer(defs[0]); err == nil {
		t.Error("the one that cannot be read is read")
	}
	for range 20 {
		if _, err := s.Sweep(t.Context(), benchNow+day, benchNow+day, benchNow-5*day); err != nil && !errors.As(err, new(*engine.Damage)) {
			t.Fatal(err)
		}
	}
	if _, err := s.Task(t.Context(), old.Key); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("old history: %v", err)
	}
	for id := range engine.TimerID(n) {
		if _, err := s.Timer(t.Context(), id+1); id+1 != cut && !errors.Is(err, engine.ErrNotFound) {
			t.Fatalf("timer %d beside the one that cannot be read: %v", id+1, err)
		}
	}
}

// TestSweepPastDamagedRows: a recurring timer with an end whose definition is cut, and an
// Idempotency-Key whose row is cut, stay; what is beside them is archived and forgotten.
func TestSweepPastDamagedRows(t *testing.T) {
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const cut, n = 3, 5
	st := &engine.Settlement{Owner: "n"}
	for id := engine.TimerID(1); id <= n; id++ {
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: 1, Generation: 1, LastDue: benchNow}
		x.App, x.Name, x.Schedule.Every = "a", fmt.Sprint("n", id), time.Second
		once := &engine.Once{App: "a", Key: x.Name, Expires: benchNow}
		if a, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: id, Once: once}); err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
	}
	for shard := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: shard, W: benchNow})
	}
	for _, k := range [][]byte{timerKey(nil, cut), onceKey(nil, "a", fmt.Sprint("n", cut))} {
		if err := s.db.Set(k, []byte{1, 2}, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), benchNow, 0, 0); !errors.As(err, new(*engine.Damage)) {
		t.Errorf("a sweep past damage tells of %v", err)
	}
	if c, err := s.Counts(t.Context()); err != nil || c.Finished != n-1 {
		t.Errorf("beside the one that cannot be read: %+v, %v", c, err)
	}
	if ks, _, err := s.keys([]byte{kindOnceAt}, []byte{kindOnceAt + 1}, n); err != nil || len(ks) != 1 {
		t.Errorf("%d Idempotency-Keys are left, %v", len(ks), err)
	}
}

// TestReplayOverDamage: a start finds a record in its journal that is damaged in the store,
// and stores it again.
func TestReplayOverDamage(t *testing.T) {
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := engine.Key{Timer: 1, Due: benchNow}
	if err := s.db.Set(recordKey(nil, k), []byte{1, 2}, pebble.Sync); err != nil {
		t.Fatal(err)
	}
	r := &engine.Task{Key: k, Status: engine.Succeeded}
	st := &engine.Settlement{Owner: "n", Replayed: true, Tasks: []engine.Record{{Key: k, Status: r.Status, Encoded: engine.EncodeTask(r)}}}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Task(t.Context(), k); err != nil || got.Status != engine.Succeeded {
		t.Error(got, err)
	}
}
