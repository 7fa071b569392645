package local

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// An entry of the index of failures that does not say whose it is, as they all
// were once, is found by its record.
func TestFailureWithoutItsApp(t *testing.T) {
	s := New(Config{Dir: "/cold", FS: vfs.NewMem(), MemTableBytes: 1 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st engine.Settlement
	want := map[string][]int64{}
	for i := range 10 {
		x := &engine.Task{Key: engine.Key{Timer: 1, Due: int64(1000 + i)}, App: []string{"a", "b"}[i%2], Status: engine.Dead}
		st.Tasks = append(st.Tasks, engine.Record{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
		want[x.App] = append(want[x.App], x.Key.Due)
	}
	if err := s.Settle(t.Context(), &st); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := s.db.Set(timeKey(nil, kindFailure, int64(1000+i), 1), none, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Marks: []engine.Mark{{Shard: 0, W: 1}}}); err != nil {
		t.Fatal(err) // readers see what stands since the last commit
	}
	for app, dues := range want {
		ts, _, err := s.Tasks(t.Context(), engine.TaskFilter{App: app, Statuses: []engine.TaskStatus{engine.Dead}}, engine.Key{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, x := range slices.Backward(ts) {
			got = append(got, x.Key.Due)
		}
		if !slices.Equal(got, dues) {
			t.Errorf("failures of %s: %v, want %v", app, got, dues)
		}
	}
}

// A page of the index of failures reads fewer records than one of history does: each is
// a seek of its own.
func TestFailuresOfAPage(t *testing.T) {
	s := New(Config{Dir: "/cold", FS: vfs.NewMem(), MemTableBytes: 1 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st engine.Settlement
	for i := range taskSteps {
		x := &engine.Task{Key: engine.Key{Timer: 1, Due: int64(1000 + i)}, App: "a", Status: engine.Dead}
		st.Tasks = append(st.Tasks, engine.Record{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
	}
	if err := s.Settle(t.Context(), &st); err != nil {
		t.Fatal(err)
	}
	f, pages := engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Dead}, Class: "timeout"}, 0
	for next := (engine.Key{}); pages == 0 || next != (engine.Key{}); pages++ {
		ts, before, err := s.Tasks(t.Context(), f, next, 100)
		if err != nil || len(ts) > 0 {
			t.Fatal(len(ts), err)
		}
		next = before
	}
	if pages < seekSteps || pages > seekSteps+1 {
		t.Errorf("%d pages, want %d", pages, seekSteps)
	}
}

// TestTasksOfAChangedTimer: a page of the tasks of a timer that was changed often does not
// hold the bodies of all its versions.
func TestTasksOfAChangedTimer(t *testing.T) {
	// All of it in one memtable: to read it from there allocates nothing.
	s := New(Config{Dir: "/cold", FS: vfs.NewMem(), MemTableBytes: 64 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const large, versions = 500 << 10, 24
	x := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, At: 1000, LastDue: 1000}
	x.App, x.Name, x.Schedule.At = "a", "n", 1000
	x.Callback.HasBody, x.Callback.Body = true, bytes.Repeat([]byte{'x'}, large)
	if _, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: 1}); err != nil {
		t.Fatal(err)
	}
	for x.Version < versions {
		next := *x
		next.Version++
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: &next, ID: 1, Was: x.Version}); err != nil {
			t.Fatal(err)
		}
		x = &next
	}
	done := &engine.Task{Key: engine.Key{Timer: 1, Due: 1000}, App: "a", Status: engine.Succeeded}
	if err := s.Settle(t.Context(), &engine.Settlement{Tasks: []engine.Record{{Key: done.Key, Status: done.Status, Encoded: engine.AppendTask(nil, done), Alone: true}}}); err != nil {
		t.Fatal(err)
	}
	// The least of several reads: a Pebble built with -race copies all that an iterator
	// passes, in about one iterator of seven, to find callers that keep it.
	least := uint64(math.MaxUint64)
	for range 10 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ts, _, err := s.Tasks(t.Context(), engine.TaskFilter{Timer: 1}, engine.Key{}, 10)
		runtime.ReadMemStats(&after)
		if err != nil || len(ts) != 1 {
			t.Fatal(ts, err)
		}
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	if least > versions*large/4 {
		t.Errorf("%d bytes were allocated for %d versions of %d", least, versions, large)
	}
}
